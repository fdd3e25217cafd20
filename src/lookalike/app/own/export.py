"""A model in files that need nothing of this package: weights, ONNX, preprocessing and an index of a folder."""

from __future__ import annotations

import ast
import inspect
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.app.own.index import Tensors
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import read_image, tell_passed_over
from lookalike.app.own.search import Gallery, open_gallery
from lookalike.base.checks import require_new_folder, workflow_extra
from lookalike.base.files import write_json, write_tensors, write_text
from lookalike.base.tensors import unit
from lookalike.base.text import in_shell
from lookalike.methods.avsl.head import LevelHead, average_max_pool
from lookalike.methods.avsl.model import AVSL, select_stages
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.retrieval import fixed_error, fixed_weights
from lookalike.methods.avsl.scoring import weighted_vectors
from lookalike.methods.diml.head import mean_vector
from lookalike.methods.diml.model import LocatedEmbedder
from lookalike.models.backbones import DEVIATION, MEAN
from lookalike.workflow.data import rgb

WEIGHTS, GRAPH, PREPROCESSING, USE = "model.safetensors", "model.onnx", "preprocessing.json", "use.py"
SERVICE, CONTAINER, REQUIREMENTS = "service.py", "Dockerfile", "requirements.txt"
INDEX, PICTURES, CERTIFICATE = "index.faiss", "pictures.json", "certificate.json"
TOLERANCE = 1e-4  # of any number of a vector, between ONNX and torch
TRIED = 4  # pictures whose vectors are compared
TEMPLATES = Path(__file__).with_name("exported")
RGB = "# as_rgb\n"  # where that module's source goes
NEEDED = ("anyio", "faiss-cpu", "fastapi", "numpy", "onnxruntime", "pillow", "uvicorn")  # by what is exported
INNER_PRODUCT, SQUARED_DISTANCE = "inner product", "squared distance"
COSINE = "cosine"


@dataclass(frozen=True)
class Vectors:
    """A network from images to vectors, with the measure that compares them.

    Attributes:
        network: images ``(N, 3, H, W)`` to vectors ``(N, D)``, in evaluation mode.
        measure: how two are compared: ``inner product`` or ``squared distance``.
        says: what that is of the model's own way of comparing.
        kept: from what an index keeps of N pictures, by ``way``, to the same vectors ``(N, D)``.
        certificate: by name, what is proven of it; empty where it is the model's own measure.
    """

    network: nn.Module
    measure: str
    says: str
    kept: Callable[[Tensors], Tensor]
    certificate: dict[str, Any]


@dataclass(frozen=True)
class Export:
    """Files of an export, with their vectors, their error against torch and the pictures of the index.

    Attributes:
        files: their paths.
        vectors: what the vectors are.
        difference: largest one of any number of a vector between ONNX and torch.
        gallery: pictures of the index, if there is one.
    """

    files: tuple[Path, ...]
    vectors: Vectors
    difference: float
    gallery: Gallery | None


def export_model(model: OpenModel, target: Path, *, folder: Path | None = None, store: Path) -> Export:
    """Write a model, and an index of a folder, as files that other programs read.

    `WEIGHTS` are all weights of the model, `GRAPH` makes vectors of images as `vectors_of` says, `PREPROCESSING` says
    how a picture becomes an image and how two vectors are compared, `USE` has functions that do it without this
    package, which `SERVICE` offers to others, in a `CONTAINER` with its `REQUIREMENTS`. With a folder also `INDEX` and
    `PICTURES`, and of an AVSL model the `CERTIFICATE` of its fixed weights.

    Args:
        model: that is written.
        target: folder, which must not hold anything yet.
        folder: pictures of the index.
        store: folder that keeps what was seen of them, as `lookalike.app.own.search.open_gallery` takes it.

    Raises:
        ValueError: for a target that holds something, pictures that cannot be read, an AVSL model without pictures, or
            a network whose ONNX differs from torch by more than `TOLERANCE`.
        ImportError: without the extra ``workflow``, of which ONNX is a part.
    """
    require_new_folder("--to", target)
    way = "graph" if isinstance(model.network, AVSL) else "cosine"
    gallery = open_gallery(model, folder, store=store, way=way) if folder else None
    seen = gallery.index.rows(torch.arange(len(gallery.index))) if gallery else None
    vectors = vectors_of(model.network, seen)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export.") as temporary:
        part = Path(temporary) / "whole"
        part.mkdir()
        write_tensors(part / WEIGHTS, model.network.state_dict(), {"model": model.name})
        difference = _write_graph(vectors.network, _tried(model, gallery), part / GRAPH)
        write_json(part / PREPROCESSING, _preprocessing(model, vectors))
        for name in (USE, SERVICE, CONTAINER):
            text = (TEMPLATES / f"{Path(name).stem}.txt").read_text(encoding="utf-8")
            write_text(part / name, text.replace(RGB, _below_imports(rgb)))
        write_text(part / REQUIREMENTS, "".join(f"{name}=={version(name)}\n" for name in NEEDED))
        if gallery and seen:
            _write_index(vectors, vectors.kept(seen), part / INDEX)
            write_json(part / PICTURES, {"pictures": [stamp.name for stamp in gallery.index.stamps]})
        if vectors.certificate:
            write_json(part / CERTIFICATE, vectors.certificate)
        part.replace(target)
    return Export(tuple(sorted(target.iterdir())), vectors, difference, gallery)


def print_export(model: OpenModel, target: Path, *, folder: Path | None, store: Path) -> None:
    """Write a model as files that need nothing of this package, and print their sizes, measure and error.

    Args:
        model: that is written.
        target: new folder.
        folder: pictures of the index, or ``None`` for none.
        store: folder of the indexes of ``lookalike search``.

    Raises:
        ValueError: as `export_model`.
    """
    done = export_model(model, target, folder=folder, store=store)
    tell_passed_over(done.gallery.unreadable if done.gallery else [])
    for path in done.files:
        print(f"{path}  {path.stat().st_size:,} bytes")
    print(f"Vectors are compared by {done.vectors.measure}: {done.vectors.says}.")
    print(f"ONNX differs from torch by {done.difference:.1g} at most.")
    if done.vectors.certificate:
        error, count = done.vectors.certificate["relative_error"], done.vectors.certificate["pictures"]
        proven = "None is proven" if error is None else f"At most {error:.2g}"
        print(f"{proven} of a distance is what fixed weights can change between two of the {count:,} pictures.")
    print(f"Without lookalike: python {in_shell(target / USE)} PICTURE, or in {in_shell(target)}: uvicorn service:app")


def _tried(model: OpenModel, gallery: Gallery | None) -> Tensor:
    """Some images that the model is tried with: of the folder's first pictures, else noise."""
    if gallery is not None:
        paths = [gallery.folder / stamp.name for stamp in gallery.index.stamps[:TRIED]]
        return torch.stack([read_image(model, path) for path in paths])
    height, width = _pair(model.view.crop_px)
    return torch.randn(TRIED, 3, height, width, generator=torch.Generator().manual_seed(0))


def _write_graph(network: nn.Module, images: Tensor, path: Path) -> float:
    """Write a network as ONNX, for any number of images of their size.

    Returns:
        The largest difference of any number between what ONNX and torch make of the images.

    Raises:
        ValueError: if that is above `TOLERANCE`.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # or ONNX Runtime tells its maker of each model that is opened
    with workflow_extra():
        import onnxruntime
        import onnxscript  # noqa: F401  (torch asks for it in its own words)
    program = torch.onnx.export(
        network,
        (images[:2] if len(images) > 1 else images.expand(2, -1, -1, -1),),
        input_names=["images"],
        output_names=["vectors"],
        dynamic_shapes={"images": {0: torch.export.Dim("pictures")}},
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(path, external_data=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = network(images).numpy()
    found = session.run(None, {"images": images.numpy()})[0]
    difference = float(np.abs(found - expected).max())
    if not difference <= TOLERANCE:
        raise ValueError(f"{path.name}: differs from torch by {difference:.1g}, at most {TOLERANCE:.0e} is allowed")
    return difference


def _preprocessing(model: OpenModel, vectors: Vectors) -> dict[str, Any]:
    """Content of the file `PREPROCESSING`: view, mean and deviation of images, and measure of vectors."""
    return {
        "model": model.name,
        "resize_px": model.view.resize_px,
        "crop_px": _pair(model.view.crop_px),
        "interpolation": model.view.interpolation,
        "mean": MEAN,
        "deviation": DEVIATION,
        "measure": vectors.measure,
        "measure_is": vectors.says,
    }


def _write_index(vectors: Vectors, rows: Tensor, path: Path) -> None:
    """Write vectors ``(N, D)`` as an exact index of faiss."""
    import faiss

    flat = faiss.IndexFlatIP if vectors.measure == INNER_PRODUCT else faiss.IndexFlatL2
    index = flat(rows.shape[1])
    index.add(np.ascontiguousarray(rows.numpy(), dtype=np.float32))
    faiss.write_index(index, str(path))


def _below_imports(module: ModuleType) -> str:
    """Source of a module below its imports, on a line of its own."""
    source = inspect.getsource(module)
    end = max(each.end_lineno or 0 for each in ast.parse(source).body if isinstance(each, ast.Import | ast.ImportFrom))
    return "\n".join(source.splitlines()[end:]).strip() + "\n"


def _pair(size: int | list[int]) -> list[int]:
    """Height and width."""
    return [size, size] if isinstance(size, int) else list(size)


class UnitVectors(nn.Module):
    """Embeddings of length 1.

    Args:
        network: an ``Embedder``, or one with the regions of its map, whose whole image's vector is taken.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Vectors ``(N, D)`` of images ``(N, 3, H, W)``."""
        if not isinstance(self.network, LocatedEmbedder):
            return unit(self.network(images))
        if self.network.global_vector == "embedding":  # of which the regions are no part
            return unit(self.network.embedder(images))
        return mean_vector(self.network.regions(images))  # not `represent`, which looks at the number of images


class WeightedLevels(nn.Module):
    """The unit vectors of AVSL's levels, each node times the root of its weight.

    Args:
        network: the model.
        weights: per level ``(r,)``.
    """

    def __init__(self, network: AVSL, weights: list[Tensor]) -> None:
        super().__init__()
        self.network = network
        self.roots = nn.ParameterList(
            nn.Parameter(each.detach().sqrt().float(), requires_grad=False) for each in weights
        )

    def forward(self, images: Tensor) -> Tensor:
        """Vectors ``(N, L r)`` of images ``(N, 3, H, W)``."""
        stages = select_stages(self.network.backbone(images), self.network.levels)
        levels = [
            F.linear(average_max_pool(stage), cast(LevelHead, head).weight, cast(LevelHead, head).bias)
            for head, stage in zip(self.network.heads, stages, strict=True)
        ]
        return torch.cat([unit(each) * root for each, root in zip(levels, self.roots, strict=True)], dim=1)


def vectors_of(network: nn.Module, seen: Tensors | None) -> Vectors:
    """Vectors of a model's network; an ``AVSL`` that compares over its graph has fixed weights and a certificate.

    Args:
        network: an ``Embedder``, ``DIML`` or ``AVSL``.
        seen: of an ``AVSL``, what an index keeps of pictures: its weights are fixed at their mean statistics.

    Raises:
        ValueError: for an ``AVSL`` that compares over its graph, without pictures.
    """
    if not isinstance(network, AVSL):
        located = isinstance(network, LocatedEmbedder)
        says = (
            "cosine of whole images; structural matching, which compares regions, is not in it" if located else COSINE
        )
        return Vectors(UnitVectors(network).eval(), INNER_PRODUCT, says, lambda kept: kept["embedding"], {})
    if network.variant in ("top", "concat"):
        first = len(network.levels) - 1 if network.variant == "top" else 0
        weights = [torch.full_like(network.alpha[0].detach(), level >= first) for level in range(len(network.levels))]
        return _weighted(network, weights, "the model's distance", {})
    if seen is None:
        raise ValueError(
            "an AVSL model's weights depend on the pair; for an export they are fixed at the mean statistics of "
            "pictures: --in FOLDER names them"
        )
    statistics = Representation.from_state(seen).statistics
    parameters: dict[str, Any] = {"alpha": [None, *network.alpha], "beta": [None, *network.beta]}
    parameters |= {"edges": network.edges(), "scale": network.sigmoid_scale}
    with torch.no_grad():
        weights = fixed_weights(statistics, **parameters)
        error = fixed_error(statistics, statistics, weights, **parameters)
    certificate = {
        "pictures": len(statistics[0]),
        "relative_error": error if math.isfinite(error) else None,
        "says": "no distance between two of these pictures is off by more than this share of its exact value "
        "(null: none is proven); nothing is proven of other pictures",
    }
    return _weighted(network, weights, "distance with each node's weight at the mean statistics", certificate)


def _weighted(network: AVSL, weights: list[Tensor], says: str, certificate: dict[str, Any]) -> Vectors:
    def kept(tensors: Tensors) -> Tensor:
        return weighted_vectors(Representation.from_state(tensors), weights).float()

    return Vectors(WeightedLevels(network, weights).eval(), SQUARED_DISTANCE, says, kept, certificate)
