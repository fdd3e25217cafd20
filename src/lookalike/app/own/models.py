"""The network that own pictures are seen by: a finished run's, or an untrained one of torchvision or of timm.

Of timm, where it is installed, come vision transformers, DINOv2 and more, whose places may be tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models

from lookalike.app.own.arguments import MOST_PX, SHIPPED, UNTRAINED, check_model, weights_of
from lookalike.base.checks import require_known
from lookalike.base.files import file_digest
from lookalike.base.text import one_line
from lookalike.metrics.names import REPORTED
from lookalike.models.backbones import BACKBONES, LITE0, build_network
from lookalike.models.embedder import Embedder
from lookalike.models.timm_trunk import OWN, TimmTrunk
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import Backbone, View
from lookalike.workflow.training.images import transform

PUBLISHED = "IMAGENET1K_V1"  # never DEFAULT, which changes with the version
CROP_PX, RESIZE_PX = 224, 256  # what torchvision's weights are published for


@dataclass(frozen=True)
class OpenModel:
    """A network with how it wants its pictures.

    Attributes:
        name: as it was asked for.
        network: in evaluation mode, on the CPU: an ``Embedder``, ``DIML`` or ``AVSL``.
        view: how it sees pictures, see `lookalike.workflow.training.images.transform`.
        digest: of weights, settings and view: what representations of pictures depend on.
        backbone: below the network, as the file of a model names it; ``None`` where no file could.
    """

    name: str
    network: nn.Module
    view: View
    digest: str
    backbone: Backbone | None = None

    @cached_property
    def transform(self) -> Callable[[Image.Image], Tensor]:
        """From a picture to an image ``(3, H, W)``."""
        return transform(self.view)


def open_model(name: str, *, size_px: int | None = None, checkpoint: str = REPORTED) -> OpenModel:
    """The network of a name.

    Args:
        name: the safetensors file of a training, or ``untrained:NAME[=FILE]``: a classifier of torchvision, or a
            network of timm where that is installed, whose last map is averaged, with the weights of a file in its
            library's layout or else the library's own (torchvision's ``IMAGENET1K_V1``), which are downloaded once;
            those of ``untrained:squeezenet1_1`` come with the package, in half precision.
        size_px: side of the images; by default that of the training, 224 of torchvision's untrained networks, and of
            timm's what their weights are published for.
        checkpoint: of a training: ``last`` or ``best``.

    Raises:
        ValueError: for a name of another form, a file that is no training's or was written by older code, a network
            that neither library has, weights that do not fit it, or a size that it does not take.
    """
    if size_px is not None and not 1 <= size_px <= MOST_PX:
        raise ValueError(f"size {size_px} px: images have a side of 1 to {MOST_PX}")
    check_model(name)
    if name.startswith(UNTRAINED):
        network, digest, view, backbone = _untrained(name.removeprefix(UNTRAINED))
    else:
        network, digest, view, backbone = _trained(name, checkpoint)
    if size_px is not None:
        trunk = getattr(network, "trunk", None)
        if isinstance(trunk, TimmTrunk):
            view = View.model_construct(**trunk.seen(size_px, size_px))
        else:
            view = _square(round(size_px * RESIZE_PX / CROP_PX), size_px)
        _check_size(network, size_px)
    whole = hashlib.sha256(canonical({"weights": digest, "view": view.dump()}).encode()).hexdigest()
    return OpenModel(name, network, view, whole, backbone)


def _trained(name: str, checkpoint: str) -> tuple[nn.Module, str, View, Backbone]:
    path = Path(name)
    # Here, as it takes every loss of a training along, and these half a second.
    from lookalike.workflow.training.model_file import load_model

    digest = file_digest(path)  # first: safetensors calls a file that may not be read one that is not there
    network, trained = load_model(path, checkpoint)
    settings = trained.settings
    return network, f"{checkpoint} of {digest}", settings.test_image, settings.backbone


def _untrained(name: str) -> tuple[nn.Module, str, View, Backbone]:
    kind, file = weights_of(UNTRAINED, name)
    of_torchvision = {*BACKBONES, *models.list_models(models)} - {LITE0}
    if kind not in of_torchvision:
        require_known(UNTRAINED.removesuffix(":"), kind, of_torchvision | timm_names())
    file = file or SHIPPED.get(kind)
    weights = str(file.absolute()) if file else None
    own = PUBLISHED if kind in of_torchvision else OWN
    about = file_digest(file) if file else own
    view = _square(RESIZE_PX, CROP_PX)
    try:
        if kind in of_torchvision:
            stages = None if kind in BACKBONES else [last_map(build_network(kind))]
            backbone = Backbone(name=kind, weights=weights or own, batch_norm="frozen", stages=stages)
            network = Embedder(backbone.dump(), pooling="average", dim=None)
        else:
            trunk = TimmTrunk(kind, weights or own)
            backbone = Backbone(name=trunk.whole_name, weights=weights or own, batch_norm="frozen")
            view = View.model_construct(**trunk.seen(*trunk.crop_px))
            about += canonical(trunk.about)
            network = Embedder(trunk, pooling="average", dim=None)
    except OSError as error:
        raise ValueError(
            f"{UNTRAINED}{name}: its weights {weights or own} cannot be had ({error}); "
            f"{UNTRAINED}{kind}=FILE reads a file"
        ) from None
    return network.eval(), f"{kind} {about}", view, backbone


def _square(resize_px: int, crop_px: int) -> View:
    """Of any side that a network takes, also smaller than recipes may ask for."""
    return View.model_construct(resize_px=resize_px, crop_px=crop_px)


@torch.no_grad()
def _check_size(network: nn.Module, size_px: int) -> None:
    """Refuse a side that a network does not take before any picture is read."""
    try:
        network(torch.zeros(1, 3, size_px, size_px))
    except RuntimeError as error:
        raise ValueError(f"size {size_px} px: the network takes no such image ({one_line(str(error))})") from None


@torch.no_grad()
def last_map(network: nn.Module) -> str:
    """Name of the part of a classifier that gives its last map, seen on an empty picture.

    Raises:
        ValueError: for a network without maps, such as a transformer whose places are tokens.
    """
    outputs: list[tuple[str, Tensor]] = []

    def noted(name: str) -> Callable[..., None]:
        return lambda module, inputs, output: outputs.append((name, output)) if isinstance(output, Tensor) else None

    hooks = [part.register_forward_hook(noted(name)) for name, part in network.named_modules() if name]
    try:
        network.eval()(torch.zeros(1, 3, CROP_PX, CROP_PX))
    finally:
        for hook in hooks:
            hook.remove()
    places = [place for place, (_, output) in enumerate(outputs) if output.ndim == 4 and min(output.shape[2:]) > 1]
    if not places or any(output.ndim == 3 for _, output in outputs[places[-1] :]):
        raise ValueError(f"{type(network).__name__} ends with no map (N, C, H, W) whose places could be compared")
    last = outputs[places[-1]][1]
    return min((name for name, output in outputs if output is last), key=len)


def timm_names() -> set[str]:
    """Networks that timm has, and these with the name of published weights behind a dot; empty where it is missing."""
    if find_spec("timm") is None:
        return set()
    import timm

    return {*timm.list_models(), *timm.list_models(pretrained=True)}
