"""Structural matching and re-ranking by shared neighbours in a gallery of 60,502 images.

Run ``python benchmarks/at_size.py``. DIML: the 100 nearest by global similarity, then their order by structure, G = 4
and D = 128, per query and in processor time on one thread, from representations in a file that is mapped, not read (so
memory is what the process holds of its own). Beside float32 stands float16: half the file, and by how much a
similarity then differs. Shared neighbours (k = 4, as on Stanford Online Products): all scores of some queries, and the
memory above the embeddings.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import torch
from measure import Finding, conclude, own_megabytes, parser, timed
from torch import Tensor
from torch.nn import functional as F

from lookalike.base.files import read_tensors, write_tensors
from lookalike.methods.contextual.retrieval import Reranker
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.similarity import candidate_similarity
from lookalike.metrics.ranking import nearest
from lookalike.workflow.running.machine import peak_megabytes, resident_megabytes

SIDE, DIM, TRUNCATION = 4, 128, 100
FIRST_MS, SECOND_MS, SHARED_MB = 0.6, 0.5, 2000.0


def held_by(call: Callable[[], object]) -> float:
    """The most memory of its own that a call holds at a time, looked at every millisecond beside it."""
    ctypes.CDLL(None).malloc_trim(0)  # gives back what earlier calls freed, else this one would seem to need nothing
    before, seen, ended = own_megabytes(), [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.001):
            seen.append(own_megabytes() - before)

    watch = threading.Thread(target=look)
    watch.start()
    try:
        call()
    finally:
        ended.set()
        watch.join()
    return max(seen)


def write_images(path: Path, count: int) -> None:
    """Five images per class, whose locations show common parts in any order, in single and in half precision."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(8, DIM, generator=generator)
    regions = torch.empty(count, SIDE**2, DIM)
    for start in range(0, count, 5):
        some = regions[start : start + 5]
        places = torch.randint(len(parts), some.shape[:2], generator=generator)
        some.copy_(0.5 * parts[places] + 0.7 * torch.randn(DIM, generator=generator))
        some += 0.8 * torch.randn(some.shape, generator=generator)
    vectors = F.normalize(regions.mean(dim=1), dim=-1)
    regions = F.normalize(regions, dim=-1)
    write_tensors(path, {"embedding": vectors, "regions": regions, "half": regions.half()}, {})


def structural(path: Path, queries: int) -> list[Finding]:
    tensors = read_tensors(path)[0]
    vectors, count = tensors["embedding"], len(tensors["embedding"])

    def found() -> Tensor:
        return nearest(vectors[:queries], vectors, TRUNCATION, self_match=False)[1]

    candidates, first = timed(found)

    def flat() -> None:
        index = faiss.IndexFlatIP(DIM)
        index.add(vectors.numpy())
        index.search(vectors[:queries].numpy(), TRUNCATION)

    _, searched = timed(flat)
    matching = StructuralMatcher().matching

    def matched(regions: Tensor) -> Tensor:
        sides = regions[:queries], vectors[:queries], regions, vectors
        return candidate_similarity(*sides, candidates, matching)

    single, second = timed(lambda: matched(tensors["regions"]))
    half, second_half = timed(lambda: matched(tensors["half"]))
    first_held, second_held = held_by(found), held_by(lambda: matched(tensors["regions"]))  # untimed, as it looks on
    images = Representation(tensors["regions"], vectors)
    order = StructuralMatcher().rank(images[:queries], images, depth=1)
    print(f"first of {queries} rankings that are the query itself: {(order[:, 0] == torch.arange(queries)).sum()}")
    each, what = 1e3 / queries, f"{count} images"
    nearest_of = f"{TRUNCATION} nearest, {what}, plain: faiss flat"
    return [
        Finding(
            nearest_of,
            "ms per query",
            first * each,
            FIRST_MS,
            plain=searched * each,
        ),
        Finding(f"order of {TRUNCATION} by structure, {what}", "ms per query", second * each, SECOND_MS),
        Finding(f"the same in float16, {what}", "ms per query", second_half * each, plain=second * each),
        Finding("largest difference of a structural similarity in float16", "", float((single - half).abs().max())),
        Finding(f"memory of its own, {queries} queries, first stage", "MB", first_held),
        Finding(f"memory of its own, {queries} queries, second stage", "MB", second_held),
        Finding("mapped file in float32", "MB", tensors["regions"].nbytes / 1e6),
    ]


def shared(count: int, queries: int) -> list[Finding]:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(count // 5 + 1, 512, generator=generator)
    embeddings = centres[torch.arange(count) // 5] + 2.4 * torch.randn(count, 512, generator=generator)
    before = resident_megabytes()
    reranker, prepared = timed(lambda: Reranker(embeddings, 4))
    rows = torch.split(torch.arange(queries), 256)
    _, scored = timed(lambda: [reranker(some).sum() for some in rows])
    what = f"shared neighbours, {count} images"
    return [
        Finding(f"{what}: prepared", "s", prepared),
        Finding(f"{what}: scores of the whole gallery", "ms per query", 1e3 * scored / queries),
        Finding(f"{what}: beyond the embeddings", "MB", peak_megabytes() - before, SHARED_MB),
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=60_502)
    options.add_argument("--queries", type=int, default=2_000)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    faiss.omp_set_num_threads(1)
    findings = shared(arguments.images, arguments.queries)  # first: a peak is that of the process
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.safetensors"
        write_images(path, arguments.images)
        findings = structural(path, arguments.queries) + findings
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
