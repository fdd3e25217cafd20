"""Search of a folder: the ways of comparing pictures, the tensors kept of each, and the pictures that come first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast, overload

import torch
from filelock import FileLock
from PIL import Image
from torch import Tensor, nn
from tqdm import tqdm

from lookalike.app.own.arguments import on_disk
from lookalike.app.own.cells import FLAT, candidates
from lookalike.app.own.index import TOGETHER, Index, Part, Tensors, read_parts, tidied, write_part
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import Stamp, image_batches, pictures_in, read_image
from lookalike.base.checks import require_known
from lookalike.base.files import require_finite
from lookalike.base.tensors import unit
from lookalike.explanations.decomposition import SIDE, located_by
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation as Levels
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML, LocatedEmbedder
from lookalike.methods.diml.representation import Representation as Located
from lookalike.methods.diml.retrieval import reordered
from lookalike.models.embedder import Embedder

BATCH = 32
LONGEST = 200  # bytes of a folder's name that its index bears, too: a name has at most 255
FORMAT = 3  # of the index; another one is another index
REORDERED = 100  # pictures whose order structural matching decides, as in DIML's paper
First = tuple[Tensor, Tensor]  # places of the first pictures (K,) int64, and their scores (K,)


@dataclass(frozen=True)
class Hit:
    """A picture that was found.

    Attributes:
        path: of the picture.
        score: how it compares with the query, by the way's measure.
    """

    path: Path
    score: float


@dataclass
class Gallery:
    """A folder of pictures that can be searched.

    Attributes:
        folder: of the pictures.
        model: that sees them.
        way: name of the way of comparing.
        index: what is kept of them.
        unreadable: a line for each picture that could not be read.
        new: number of pictures that were looked at by this call.
    """

    folder: Path
    model: OpenModel
    way: str
    index: Index
    unreadable: list[str] = field(default_factory=list)
    new: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether every picture is compared, and not only candidates among more than `cells.FLAT`."""
        return len(self.index) <= FLAT or WAYS[self.way].first == _by_graph

    @overload
    def search(self, query: Path | str, top: int = 10) -> list[Hit]: ...

    @overload
    def search(self, query: list[Path] | list[str], top: int = 10) -> list[list[Hit]]: ...

    def search(self, query: Path | str | list[Path] | list[str], top: int = 10) -> list[Hit] | list[list[Hit]]:
        """Pictures that look most like a query, which does not find itself.

        Args:
            query: a picture file; or several, which the network sees together.
            top: number of pictures.

        Returns:
            The hits, best first; of several queries those of each, in their order.

        Raises:
            ValueError: naming the first query that cannot be read, or for fewer than one picture.
        """
        if isinstance(query, Path | str):
            return self._found([on_disk(query)], top)[0]
        return self._found([on_disk(each) for each in query], top)

    @torch.inference_mode()
    def search_picture(self, picture: Image.Image, top: int = 10) -> list[Hit]:
        """Pictures that look most like one in memory, of which one may be a copy.

        Args:
            picture: in RGB, as `lookalike.workflow.data.rgb.as_rgb` makes it.
            top: number of pictures.

        Raises:
            ValueError: for fewer than one picture.
        """
        if top < 1:
            raise ValueError(f"top={top}: at least one picture is found")
        network, (_, way) = self.model.network, way_of(self.model.network, self.way)
        kept = _kept(self.model, way, self.model.transform(picture)[None], [Path("the query")])
        first = way.first(network, kept, self.index, min(top, len(self.index)))
        return [Hit(self.folder / self.index.stamps[place].name, score) for place, score in _pairs(*first)]

    @torch.inference_mode()
    def _found(self, queries: Sequence[Path], top: int) -> list[list[Hit]]:
        if top < 1:
            raise ValueError(f"top={top}: at least one picture is found")
        network, (_, way), found = self.model.network, way_of(self.model.network, self.way), list[list[Hit]]()
        for start in range(0, len(queries), BATCH):
            some = queries[start : start + BATCH]
            kept = _kept(self.model, way, torch.stack([read_image(self.model, each) for each in some]), some)
            for row, query in enumerate(some):
                of_query = {name: each[row : row + 1] for name, each in kept.items()}
                first = _pairs(*way.first(network, of_query, self.index, min(top + 1, len(self.index))))
                hits = [Hit(self.folder / self.index.stamps[place].name, score) for place, score in first]
                found.append([hit for hit in hits if not _is_same(hit.path, query)][:top])
        return found


@torch.inference_mode()
def open_gallery(model: OpenModel, folder: Path | str, *, store: Path | str, way: str | None = None) -> Gallery:
    """Look at the pictures of a folder, unless an earlier call did.

    Args:
        model: that sees them.
        folder: any pictures, at any depth.
        store: folder that keeps what was seen.
        way: a key of `lookalike.app.own.search.WAYS`, by default the model's own.

    Raises:
        ValueError: for a folder without pictures, or without any that can be read, a way that is not the model's, or a
            model that makes numbers that are not finite.
    """
    folder, store = on_disk(folder), Path(store)
    chosen, how = way_of(model.network, way)
    place, digest = index_place(model, folder, store, chosen)
    listed = pictures_in(folder)
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".lock"):  # a second call waits, and finds what the first has seen
        parts = read_parts(place, digest)
        held = {stamp for part in parts for stamp in part.stamps}
        missing = [stamp for stamp in listed if stamp not in held]
        unreadable = _look_at(model, how, folder, missing, place, digest, parts)
        index = tidied(place, digest, listed, parts)
    if not len(index):
        raise ValueError(f"{folder}: none of its {len(listed)} pictures can be read; the first: {unreadable[0]}")
    return Gallery(folder, model, chosen, index, unreadable, len(missing) - len(unreadable))


def index_place(model: OpenModel, folder: Path, store: Path, way: str) -> tuple[Path, str]:
    """Folder of the index, and the digest of the model and the way that looked at the pictures.

    Args:
        model: that sees them.
        folder: of the pictures.
        store: folder that keeps indexes.
        way: of comparing.
    """
    digest = hashlib.sha256(f"{model.digest} {way} {FORMAT}".encode()).hexdigest()
    whole = folder.resolve()
    name = os.fsencode(whole.name)[:LONGEST].decode("utf-8", "ignore")
    return store / f"{name}-{hashlib.sha256(os.fsencode(whole)).hexdigest()[:12]}" / digest[:16], digest


def _look_at(
    model: OpenModel, way: Way, folder: Path, stamps: Sequence[Stamp], place: Path, digest: str, parts: list[Part]
) -> list[str]:
    """Represent pictures, and write and append their parts.

    Returns:
        Why some of them cannot be read, a line each.
    """
    unreadable: list[str] = []
    threads = os.cpu_count() or 1
    shown = tqdm(total=len(stamps), desc=f"look at {folder}", unit=" pictures", disable=len(stamps) < TOGETHER // 8)
    with shown:
        for start in range(0, len(stamps), TOGETHER):
            some = stamps[start : start + TOGETHER]
            kept, seen = [], []
            paths = [folder / stamp.name for stamp in some]
            for rows, images, faults in image_batches(model, paths, batch_size=BATCH, threads=threads):
                unreadable += faults.values()
                seen += [some[row] for row in rows]
                if rows:
                    kept.append(_kept(model, way, images, [paths[row] for row in rows]))
                shown.update(len(rows) + len(faults))
            if seen:
                whole = {name: torch.cat([each[name] for each in kept]) for name in kept[0]}
                parts.append(write_part(place, digest, seen, whole))
    return unreadable


def _kept(model: OpenModel, way: Way, images: Tensor, paths: Sequence[Path]) -> Tensors:
    """Tensors that a way of comparing keeps of pictures.

    Raises:
        ValueError: naming the first picture of which the model makes a number that is not finite.
    """
    kept = way.keep(model.network, images)
    for row, path in enumerate(paths):
        require_finite(f"{path}, seen by {model.name}", {name: each[row] for name, each in kept.items()})
    return kept


def _pairs(places: Tensor, scores: Tensor) -> list[tuple[int, float]]:
    return list(zip(places.tolist(), scores.tolist(), strict=True))


def _is_same(path: Path, query: Path) -> bool:
    return path == query or (path.name == query.name and path.resolve() == query.resolve())


@dataclass(frozen=True)
class Way:
    """A way of comparing pictures, by the tensors that it keeps of them.

    Attributes:
        measure: what scores are.
        explained_by: method of `lookalike.explain` whose measure it is, or is part of it.
        keep: of a network and images ``(N, 3, H, W)``, tensors with N rows.
        first: of a network, what is kept of a query (tensors with one row), an index and a number, the first pictures.
    """

    measure: str
    explained_by: str | None
    keep: Callable[[nn.Module, Tensor], Tensors]
    first: Callable[[nn.Module, Tensors, Index, int], First]


def ways_of(network: nn.Module) -> dict[str, Way]:
    """The ways in which a network's pictures can be compared, its own first."""
    if isinstance(network, AVSL):
        return {"graph": WAYS["graph"]}
    embedder = network.embedder if isinstance(network, LocatedEmbedder) else network
    names = ["structure", "cosine"] if isinstance(network, LocatedEmbedder) else ["cosine", "structure"]
    if isinstance(embedder, Embedder) and embedder.parts is not None:
        names = ["cosine"]  # each stripe has a layer of its own
    return {name: WAYS[name] for name in names}


def way_of(network: nn.Module, name: str | None) -> tuple[str, Way]:
    """A way by its name, or the network's own.

    Raises:
        ValueError: for a way in which this network's pictures cannot be compared.
    """
    ways = ways_of(network)
    chosen = name or next(iter(ways))
    require_known("way", chosen, ways)
    return chosen, ways[chosen]


def _embeddings(network: nn.Module, images: Tensor) -> Tensors:
    if isinstance(network, LocatedEmbedder):
        return {"embedding": network.represent(images).global_vector}
    return {"embedding": unit(network(images))}


def _regions(network: nn.Module, images: Tensor) -> Tensors:
    """In 16 bits, which moves a similarity by about 1e-4: a hundred thousand pictures take 1.6 GB and not 3.3."""
    seen = _located(network).represent(images)
    return {"embedding": seen.global_vector, "regions": seen.regions.half()}


@cache
def _located(network: nn.Module) -> LocatedEmbedder:
    return network if isinstance(network, LocatedEmbedder) else located_by(cast(Embedder, network), SIDE)


def _levels(network: nn.Module, images: Tensor) -> Tensors:
    levels: Levels = cast(AVSL, network)(images)
    return levels.state()


def _by_cosine(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    asked = query["embedding"][0]

    def cosine(part: Tensors) -> Tensor:
        return (part["embedding"] @ asked).clamp(-1, 1)  # rounding leaves more between equal pictures

    if len(index) <= FLAT:
        return _greatest(index.scored(cosine), count)
    near = candidates(index, asked, count)
    places, scores = _greatest(cosine(index.rows(near, "embedding")), count)
    return near[places], scores


def _by_structure(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    """The first by cosine in the order of cosine plus structural similarity."""
    places, cosine = _by_cosine(network, query, index, max(count, REORDERED))
    kept = index.rows(places)
    matcher = network.matcher if isinstance(network, DIML) else StructuralMatcher()
    asked, found = _as_located(query), _as_located(kept)
    match = matcher.matching(asked.regions, asked.global_vector, found.regions[None], found.global_vector[None])
    structural = match.similarity[0]
    order = reordered(torch.arange(len(places))[None], cosine[None], structural[None])[0][:count]
    return places[order], (cosine + structural)[order]


def _as_located(kept: Tensors) -> Located:
    return Located(kept["regions"].float(), kept["embedding"])


def _by_graph(network: nn.Module, query: Tensors, index: Index, count: int) -> First:
    asked = Levels.from_state(query)
    distance = cast(AVSL, network).distance
    places, score = _greatest(index.scored(lambda part: -distance(asked, Levels.from_state(part))[0]), count)
    return places, -score


def _greatest(scores: Tensor, count: int) -> First:
    """Places of the greatest scores, and these; the first place on ties."""
    values, places = scores.sort(descending=True, stable=True)
    return places[:count], values[:count]


WAYS = {
    "cosine": Way("cosine", None, _embeddings, _by_cosine),
    "structure": Way("cosine + structural similarity", "structure", _regions, _by_structure),
    "graph": Way("distance", "graph", _levels, _by_graph),
}
