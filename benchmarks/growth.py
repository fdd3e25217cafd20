"""What an index of 10,000, 100,000 and 1,000,000 pictures costs: to build, to open, and a query of each kind.

Run ``python benchmarks/growth.py``. Vectors of 512 numbers are drawn around a centre for each 50 pictures, and places
(16 of 512 in half precision) and the levels of AVSL (3 of 512, as fixed weights compare them) at random; pictures are
neither listed nor seen. Files larger than ``--gigabytes`` are not written: their figures follow the line through the
two sizes below. Times are of one thread, in processor time, with the files in the machine's cache; memory is what no
file backs. Inverted lists take over from flat search above `lookalike.app.own.cells.FLAT`; here they are made at every
size but the least, beside their recall of the ten that flat search finds. Ratios are to faiss alone, which holds the
same vectors in memory and reads each of them: of structure those of the whole pictures.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import torch
from measure import Finding, conclude, own_megabytes, parser, timed
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.app.own import search
from lookalike.app.own.index import TOGETHER, Index, Tensors, read_parts, tidied, write_part
from lookalike.app.own.picture_files import Stamp
from lookalike.app.own.search import WAYS, First

DIM, PLACES, LEVELS, TOP, QUERIES = 512, 16, 3, 10, 20
PER_CENTRE, NOISE = 50, 1.5
OPENED_S, COSINE_S, STRUCTURE_S, RECALL = 10.0, 1.0, 1.0, 90.0  # of a million


def drawn(kind: str, start: int, count: int, generator: torch.Generator) -> Tensors:
    if kind == "fixed weights":
        return {"embedding": torch.randn(count, LEVELS * DIM, generator=generator).div_(DIM**0.5)}
    numbers = torch.arange(start, start + count) // PER_CENTRE
    shown = range(int(numbers[0]), int(numbers[-1]) + 1)
    centres = torch.stack([torch.randn(DIM, generator=torch.Generator().manual_seed(each)) for each in shown])
    noise = torch.randn(count, DIM, generator=generator)
    vectors = F.normalize(centres[numbers - numbers[0]].add_(noise, alpha=NOISE), dim=1)
    if kind == "cosine":
        return {"embedding": vectors}
    places = torch.randn(count, PLACES, DIM, generator=generator).add_(vectors[:, None], alpha=DIM**0.5)
    return {"embedding": vectors, "regions": F.normalize(places, dim=2).half()}


def built(folder: Path, kind: str, stamps: list[Stamp]) -> float:
    """Seconds to write an index, without drawing what it holds."""
    generator, seconds = torch.Generator().manual_seed(0), 0.0
    for start in range(0, len(stamps), TOGETHER):
        some = stamps[start : start + TOGETHER]
        tensors = drawn(kind, start, len(some), generator)
        seconds += timed(lambda some=some, tensors=tensors: write_part(folder, "drawn", some, tensors))[1]  # type: ignore[misc]
    return seconds


def by_fixed_weights(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    """Flat search by the squared distance of the vectors that fixed weights make."""
    asked = query["embedding"][0]

    def score(part: Tensors) -> Tensor:
        return 2 * (part["embedding"] @ asked) - torch.linalg.vector_norm(part["embedding"], dim=1).square()

    values, places = index.scored(score).sort(descending=True, stable=True)
    return places[:count], values[:count]


def queried(first: Callable[..., First], index: Index) -> tuple[list[set[int]], float]:
    """Places that queries find, and the median of their seconds, after one to warm up."""
    found, seconds = [], []
    for place in torch.linspace(0, len(index) - 1, QUERIES).long():
        query = index.rows(place[None])
        (places, _), took = timed(lambda query=query: first(nn.Identity(), query, index, TOP))  # type: ignore[misc]
        found.append(set(places.tolist()))
        seconds.append(took)
    return found, statistics.median(seconds[1:])


def alone(file: Path, kind: str, stamps: list[Stamp]) -> dict[str, float]:
    """What faiss takes for the same vectors: seconds to write and to read a file of them, memory, a flat query."""
    generator, seconds = torch.Generator().manual_seed(0), 0.0
    size = LEVELS * DIM if kind == "fixed weights" else DIM
    index = faiss.IndexFlatL2(size) if kind == "fixed weights" else faiss.IndexFlatIP(size)
    for start in range(0, len(stamps), TOGETHER):
        vectors = drawn(kind, start, len(stamps[start : start + TOGETHER]), generator)["embedding"].numpy()
        seconds += timed(lambda vectors=vectors: index.add(vectors))[1]  # type: ignore[misc]
    seconds += timed(lambda: faiss.write_index(index, str(file)))[1]
    del index
    before = own_megabytes()
    index, opened = timed(lambda: faiss.read_index(str(file)))
    memory = own_megabytes() - before
    queries = [index.reconstruct(int(place))[None] for place in torch.linspace(0, len(stamps) - 1, QUERIES).long()]
    times = [timed(lambda query=query: index.search(query, TOP))[1] for query in queries]  # type: ignore[misc]
    return {
        "build, s": seconds,
        "open, s": opened,
        "memory, MB": memory,
        "query, ms": 1e3 * statistics.median(times[1:]),
    }


def measured(folder: Path, kind: str, count: int) -> dict[str, float]:
    """Figures of one index, by what they are of."""
    folder.mkdir()
    stamps = [Stamp(f"{number:07}.jpg", 1, 1, 1) for number in range(count)]
    figures = {"build, s": built(folder, kind, stamps)}
    figures["file, MB"] = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    before = own_megabytes()
    index, figures["open, s"] = timed(lambda: tidied(folder, "drawn", stamps, read_parts(folder, "drawn")))
    figures["memory, MB"] = own_megabytes() - before
    first = by_fixed_weights if kind == "fixed weights" else WAYS[kind].first
    flat, seconds = queried(first, index)
    figures["query, ms"] = 1e3 * seconds
    for what, value in alone(folder.with_name("alone.faiss"), kind, stamps).items():
        name, unit = what.split(", ")
        figures[f"{name} of faiss alone, {unit}"] = value
        if value:  # memory that was free before costs a small index none
            figures[f"{name}, times faiss alone"] = figures[what] / value
    if kind == "cosine" and count > 10_000:
        search.FLAT, usual = 0, search.FLAT
        _, figures["lists: build, s"] = timed(lambda: first(nn.Identity(), index.rows(torch.tensor([0])), index, TOP))
        listed, figures["lists: query, ms"] = queried(first, index)
        figures["lists: query, ms"] *= 1e3
        figures["lists: file, MB"] = sum(path.stat().st_size for path in folder.glob("*.faiss")) / 1e6
        shared = sum(len(one & other) for one, other in zip(flat, listed, strict=True))
        figures["lists: recall of ten, %"] = 100 * shared / (TOP * QUERIES)
        search.FLAT = usual
    return figures


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, nargs=3, default=[10_000, 100_000, 1_000_000])
    options.add_argument("--gigabytes", type=float, default=3.0, help="of one index, from the two lesser sizes' on")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    sizes, findings = arguments.pictures, []
    limits = {
        ("cosine", "open, s"): OPENED_S,
        ("cosine", "query, ms"): 1e3 * COSINE_S,
        ("structure", "query, ms"): 1e3 * STRUCTURE_S,
        ("cosine", "lists: recall of ten, %"): RECALL,
    }
    bytes_of = {"cosine": 4 * DIM, "structure": 4 * DIM + 2 * PLACES * DIM, "fixed weights": 4 * LEVELS * DIM}
    for kind, each in bytes_of.items():
        known: list[dict[str, float]] = []
        for count in sizes:
            if fits := each * count <= 1e9 * arguments.gigabytes:
                with tempfile.TemporaryDirectory() as scratch:
                    known.append(measured(Path(scratch) / "index", kind, count))
            else:
                slope = (count - sizes[1]) / (sizes[1] - sizes[0])
                known.append(
                    {
                        what: last + slope * (last - known[0][what])
                        for what, last in known[1].items()
                        if "alone" not in what
                    }
                )
            for what, value in known[-1].items():
                limit = limits.get((kind, what)) if count == sizes[-1] else None
                name, unit = what.rsplit(", ", 1)
                said = f"{kind}, {count} pictures: {name}{'' if fits else ', extrapolated'}"
                findings.append(Finding(said, unit, value, limit, at_least=name.endswith("of ten")))
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
