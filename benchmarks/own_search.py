"""A search among 10,000 pictures that an index knows: by cosine, with structural matching, and the whole command.

Run ``python benchmarks/own_search.py``. What is kept of the pictures is drawn at random (512 numbers, or with 16 places
of 512 in half precision); the folder holds as many links to one picture. A query of a living process decodes a picture,
shows it to the network and searches; the search is timed by itself too. One thread, processor time. What larger folders
cost: ``growth.py``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from measure import Finding, conclude, median_seconds, parser, seconds_of_command
from PIL import Image
from torch.nn import functional as F

from lookalike.app.own.index import TOGETHER, Tensors, write_part
from lookalike.app.own.models import OpenModel, open_model
from lookalike.app.own.picture_files import pictures_in
from lookalike.app.own.search import index_place, open_gallery, way_of
from lookalike.workflow.data.pictures import read_picture

WAYS = ("cosine", "structure")
QUERY_S, SEARCH_S, COMMAND_S = 0.1, 0.01, 4.0
REPEATS = 11


def drawn(count: int, like: Tensors, generator: torch.Generator) -> Tensors:
    """What a model keeps of some pictures, at random."""
    return {
        name: F.normalize(torch.randn(count, *each.shape[1:], generator=generator), dim=-1).to(each.dtype)
        for name, each in like.items()
    }


def write_index(model: OpenModel, folder: Path, store: Path, way: str) -> None:
    place, digest = index_place(model, folder, store, way)
    generator, stamps = torch.Generator().manual_seed(0), pictures_in(folder)
    with torch.inference_mode():
        like = way_of(model.network, way)[1].keep(model.network, torch.zeros(1, 3, 224, 224))
    for start in range(0, len(stamps), TOGETHER):
        some = stamps[start : start + TOGETHER]
        write_part(place, digest, some, drawn(len(some), like, generator))


def searched(model: OpenModel, folder: Path, query: Path, way: str) -> tuple[float, float, float]:
    """Seconds to open a gallery, of a query, and of its search alone: medians after one to warm up."""
    start = time.process_time()
    gallery = open_gallery(model, folder, store=folder.parent / "store", way=way)
    opened = time.process_time() - start
    assert gallery.new == 0
    how = way_of(model.network, way)[1]
    with torch.inference_mode():
        kept = how.keep(model.network, model.transform(read_picture(query))[None])
        seconds = median_seconds(
            {
                "query": lambda: gallery.search(query),
                "search": lambda: how.first(model.network, kept, gallery.index, 11),
            },
            REPEATS,
        )
    return opened, seconds["query"], seconds["search"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=10_000)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    findings = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, query, weights = Path(scratch) / "pictures", Path(scratch) / "query.png", Path(scratch) / "squeeze.pth"
        folder.mkdir()
        Image.effect_noise((64, 64), 60).save(query)
        for number in range(arguments.pictures):
            (folder / f"{number}.png").symlink_to(query)
        from torchvision.models import squeezenet1_1

        torch.save(squeezenet1_1().state_dict(), weights)
        name = f"untrained:squeezenet1_1={weights}"
        model = open_model(name)
        for way in WAYS:
            write_index(model, folder, folder.parent / "store", way)
            opened, seconds, alone = searched(model, folder, query, way)
            what = f"{way}, {arguments.pictures} pictures"
            findings.append(Finding(f"a query by {what}, decoded and seen", "s", seconds, QUERY_S))
            findings.append(Finding(f"its search alone, {what}", "s", alone, SEARCH_S))
            findings.append(Finding(f"opening the index, {what}", "s", opened))
            line = [sys.executable, "-m", "lookalike", "search", name, str(query), "--in", str(folder)]
            seconds, _ = seconds_of_command(
                [*line, "--by", way, "--index", str(folder.parent / "store"), "--top", "10"]
            )
            findings.append(Finding(f"the command, {what}, ten hits explained", "s", seconds, COMMAND_S))
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
