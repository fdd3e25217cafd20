"""A served folder of 10,000 files like photographs: start, a query, its reasons, memory.

Run ``python benchmarks/serving.py`` on idle cores. Files are JPEG of 500 x 375 pixels, smooth fields of colour with
noise, each another; the network is SqueezeNet, whose weights come with lookalike. The first start looks at every file,
the second finds them known. A query is a file of its own, sent as its bytes over the loopback, one at a time; times are
by the clock, those inside the service without what carries bytes and JSON. Its parts are the service's own functions in
a thread of this process: decoding with resizing, the network, the search. ``--pictures 30 --queries 5`` tries it.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from measure import Finding, conclude, parser
from PIL import Image

from lookalike.app.own.models import open_model
from lookalike.app.own.search import WAYS, Gallery, open_gallery
from lookalike.workflow.data.pictures import read_sent

SIZE = (500, 375)
QUERY_MS = 100.0
PARTS = ("decoding and resizing", "the network", "the search")
MODEL = "untrained:squeezenet1_1"


def write_photograph(path: Path, random: np.random.Generator) -> None:
    """A file of smooth fields of colour with noise."""
    fields = Image.fromarray(random.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize(SIZE, Image.Resampling.BICUBIC)
    noise = random.normal(0, 12, (SIZE[1], SIZE[0], 1))
    Image.fromarray((np.asarray(fields) + noise).clip(0, 255).astype(np.uint8)).save(path, quality=85)


class Served(NamedTuple):
    """A service that answers.

    Attributes:
        port: of it.
        process: id.
        start_s: until it said so.
    """

    port: int
    process: int
    start_s: float


@contextmanager
def served(folder: Path, port: int) -> Iterator[Served]:
    """The service of a folder, in a process of its own."""
    line = [sys.executable, "-m", "lookalike", "serve", str(folder / "pictures"), "--model", MODEL]
    begun = time.monotonic()
    process = subprocess.Popen(
        [*line, "--port", str(port), "--index", str(folder / "store")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if " at http" not in (said := process.stdout.readline()):
        raise SystemExit(f"the service did not start: {said}")
    try:
        yield Served(port, process.pid, time.monotonic() - begun)
    finally:
        process.terminate()
        process.wait()


def asked(port: int, data: bytes, *, why: bool) -> tuple[float, float]:
    """Milliseconds of a search by the clock, and by the answer."""
    begun = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", f"/search?top=12&why={str(why).lower()}", data)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert len(answer["hits"]) == 12
    return 1000 * (time.monotonic() - begun), answer["milliseconds"]


@torch.inference_mode()
def parts(gallery: Gallery, data: bytes) -> dict[str, float]:
    """Milliseconds of the parts of a search, as `Gallery.search_picture` has them."""
    network, way, times = gallery.model.network, WAYS[gallery.way], [time.monotonic()]
    image = gallery.model.transform(read_sent(data))
    times.append(time.monotonic())
    seen = way.keep(network, image[None])
    times.append(time.monotonic())
    way.first(network, seen, gallery.index, 12)
    times.append(time.monotonic())
    return {part: 1000 * took for part, took in zip(PARTS, np.diff(times), strict=True)}


def peak_megabytes(process: int) -> float:
    """The most memory that a process has held."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=10_000)
    options.add_argument("--queries", type=int, default=300)
    options.add_argument("--port", type=int, default=8799)
    arguments = options.parse_args()
    random, findings = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "pictures").mkdir()
        for number in range(arguments.pictures):
            write_photograph(folder / "pictures" / f"{number:05}.jpg", random)
        queries = []
        for _ in range(arguments.queries):
            write_photograph(folder / "query.jpg", random)
            queries.append((folder / "query.jpg").read_bytes())
        for start in ("first start, every file looked at", "second start, files known"):
            with served(folder, arguments.port) as service:
                findings.append(Finding(f"{start}", "s", service.start_s))
                if start.startswith("first"):
                    continue
                asked(service.port, queries[0], why=False)
                plain = [asked(service.port, data, why=False) for data in queries]
                for what, part in (("by the clock", 0), ("inside the service", 1)):
                    times = [each[part] for each in plain]
                    limit = QUERY_MS if part == 0 else None
                    findings.append(Finding(f"a query, {what}, median", "ms", statistics.median(times), limit))
                    findings.append(Finding(f"a query, {what}, 99 %", "ms", float(np.quantile(times, 0.99)), limit))
                reasons = [asked(service.port, data, why=True)[0] for data in queries[:20]]
                findings.append(Finding("a query with twelve reasons, median", "ms", statistics.median(reasons)))
                findings.append(Finding("memory at most", "MB", peak_megabytes(service.process)))
        gallery = open_gallery(open_model(MODEL), folder / "pictures", store=folder / "store")
        with ThreadPoolExecutor(1) as thread:  # as in the service
            of_queries = list(thread.map(partial(parts, gallery), [queries[0], *queries]))[1:]
        for part in PARTS:
            median = statistics.median(each[part] for each in of_queries)
            findings.append(Finding(f"a query, {part}, median", "ms", median))
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
