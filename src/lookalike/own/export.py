"""A model in files that need nothing of this package: weights, ONNX, preprocessing and an index of a folder."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookalike.checks import require_new_folder, workflow_extra
from lookalike.files import read_json, write_json, write_tensors, write_text
from lookalike.methods.avsl.model import AVSL
from lookalike.own.models import OpenModel
from lookalike.own.pictures import read_image
from lookalike.own.search import Gallery, open_gallery
from lookalike.own.vectors import INNER_PRODUCT, Vectors, vectors_of
from lookalike.text import counted
from lookalike.training.images import DEVIATION, MEAN

WEIGHTS, GRAPH, PREPROCESSING, USE = "model.safetensors", "model.onnx", "preprocessing.json", "use.py"
INDEX, PICTURES, CERTIFICATE = "index.faiss", "pictures.json", "certificate.json"
TOLERANCE = 1e-4  # of any number of a vector, between ONNX and torch
TRIED = 4  # pictures whose vectors are compared
TEMPLATE = Path(__file__).with_name("use.txt")


@dataclass(frozen=True)
class Export:
    """What was written.

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
    how a picture becomes an image and how two vectors are compared, `USE` are lines of Python that do it without this
    package. With a folder also `INDEX` and `PICTURES`, and of an AVSL model the `CERTIFICATE` of its fixed weights.

    Args:
        model: that is written.
        target: folder, which must not hold anything yet.
        folder: pictures of the index.
        store: folder that keeps what was seen of them, as `lookalike.own.search.open_gallery` takes it.

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
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
        part = Path(temporary) / "whole"
        part.mkdir()
        write_tensors(part / WEIGHTS, model.network.state_dict(), {"model": model.name})
        difference = _write_graph(vectors.network, _tried(model, gallery), part / GRAPH)
        write_json(part / PREPROCESSING, _preprocessing(model, vectors))
        write_text(part / USE, _use(read_json(part / PREPROCESSING), with_index=gallery is not None))
        if gallery and seen:
            _write_index(vectors, vectors.kept(seen), part / INDEX)
            write_json(part / PICTURES, {"pictures": [stamp.name for stamp in gallery.index.stamps]})
        if vectors.certificate:
            write_json(part / CERTIFICATE, vectors.certificate)
        part.replace(target)
    return Export(tuple(sorted(target.iterdir())), vectors, difference, gallery)


def print_export(model: OpenModel, target: Path, *, folder: Path | None, store: Path) -> None:
    """Write a model as files that need nothing of this package, and say what they are.

    Args:
        model: that is written.
        target: new folder.
        folder: pictures of the index, or ``None`` for none.
        store: folder of the indexes of ``lookalike search``.

    Raises:
        ValueError: as `export_model`.
    """
    done = export_model(model, target, folder=folder, store=store)
    if done.gallery is not None and done.gallery.unreadable:
        lines = done.gallery.unreadable
        print(f"lookalike: passed over {counted(len(lines), 'picture')}; the first: {lines[0]}", file=sys.stderr)
    for path in done.files:
        print(f"{path}  {path.stat().st_size:,} bytes")
    print(f"Vectors are compared by {done.vectors.measure}: {done.vectors.says}.")
    print(f"ONNX differs from torch by {done.difference:.1g} at most.")
    if done.vectors.certificate:
        error, count = done.vectors.certificate["relative_error"], done.vectors.certificate["pictures"]
        proven = "None is proven" if error is None else f"At most {error:.2g}"
        print(f"{proven} of a distance is what fixed weights can change between two of the {count:,} pictures.")
    print(f"Without lookalike: python {target / USE} PICTURE")


def _tried(model: OpenModel, gallery: Gallery | None) -> Tensor:
    """Some images that the model is tried with: of the folder's first pictures, else noise."""
    if gallery is not None:
        paths = [gallery.folder / stamp.name for stamp in gallery.index.stamps[:TRIED]]
        return torch.stack([read_image(model, path) for path in paths])
    height, width = _pair(model.view["crop_px"])
    return torch.randn(TRIED, 3, height, width, generator=torch.Generator().manual_seed(0))


def _write_graph(network: nn.Module, images: Tensor, path: Path) -> float:
    """Write a network as ONNX, for any number of images of their size.

    Returns:
        The largest difference of any number between what ONNX and torch make of the images.

    Raises:
        ValueError: if that is above `TOLERANCE`.
    """
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
    """What `PREPROCESSING` says."""
    return {
        "model": model.name,
        "resize_px": model.view.get("resize_px"),
        "crop_px": _pair(model.view["crop_px"]),
        "interpolation": "bilinear",
        "mean": MEAN,
        "deviation": DEVIATION,
        "measure": vectors.measure,
        "measure_is": vectors.says,
    }


def _use(how: dict[str, Any], *, with_index: bool) -> str:
    """The lines of `USE`."""
    resize = {
        int: 'short = HOW["resize_px"]\n'
        "size = [max(short, short * side // min(picture.size)) for side in picture.size]\n"
        "picture = picture.resize(size, Image.Resampling.BILINEAR)",
        list: 'picture = picture.resize(HOW["resize_px"][::-1], Image.Resampling.BILINEAR)',
    }.get(type(how["resize_px"]), "")
    last = (
        'scores, places = faiss.read_index(str(HERE / "index.faiss")).search(vector, 10)\n'
        'names = json.loads((HERE / "pictures.json").read_text(encoding="utf-8"))["pictures"]\n'
        "for score, place in zip(scores[0], places[0]):\n"
        "    if place >= 0:\n"
        '        print(f"{score:8.4f}  {names[place]}")'
    )
    words = {
        "PRINTS": f"the pictures of the index with the {_best(how)}" if with_index else "its vector",
        "NEEDS": f"{'faiss-cpu, ' if with_index else ''}numpy, onnxruntime and pillow",
        "IMPORTS": "import faiss" if with_index else "",
        "RESIZE": resize,
        "LAST": last if with_index else "print(*vector[0])",
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for key, value in words.items():
        text = text.replace(f"{{{key}}}\n" if not value else f"{{{key}}}", value)
    return text


def _best(how: dict[str, Any]) -> str:
    return f"{'greatest' if how['measure'] == INNER_PRODUCT else 'smallest'} {how['measure']}"


def _write_index(vectors: Vectors, rows: Tensor, path: Path) -> None:
    """Write vectors ``(N, D)`` as an exact index of faiss."""
    import faiss

    flat = faiss.IndexFlatIP if vectors.measure == INNER_PRODUCT else faiss.IndexFlatL2
    index = flat(rows.shape[1])
    index.add(np.ascontiguousarray(rows.numpy(), dtype=np.float32))
    faiss.write_index(index, str(path))


def _pair(size: int | list[int]) -> list[int]:
    """Height and width."""
    return [size, size] if isinstance(size, int) else list(size)
