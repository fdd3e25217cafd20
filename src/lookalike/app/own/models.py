"""The network that own pictures are seen by: a finished run's, or an untrained one of torchvision or of timm.

Of timm, where it is installed, come vision transformers, DINOv2 and more, whose places may be tokens.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models

from lookalike.app.own.arguments import SHIPPED, UNTRAINED, check_model, weights_of
from lookalike.base.checks import require_known
from lookalike.base.files import file_digest
from lookalike.metrics.names import REPORTED
from lookalike.models.backbones import BACKBONES, LITE0, Trunk, build_network, load_state, read_state
from lookalike.models.embedder import Embedder
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import View
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
    """

    name: str
    network: nn.Module
    view: View
    digest: str

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
    if size_px is not None and size_px < 1:
        raise ValueError(f"size {size_px} px: images have a side of at least 1")
    check_model(name)
    if name.startswith(UNTRAINED):
        network, digest, view = _untrained(name.removeprefix(UNTRAINED))
    else:
        network, digest, view = _trained(name, checkpoint)
    if size_px is not None:
        view = _square(round(size_px * RESIZE_PX / CROP_PX), size_px)
        _check_size(network, size_px)
    whole = hashlib.sha256(canonical({"weights": digest, "view": view.dump()}).encode()).hexdigest()
    return OpenModel(name, network, view, whole)


def _trained(name: str, checkpoint: str) -> tuple[nn.Module, str, View]:
    path = Path(name)
    # Here, as it takes every loss of a training along, and these half a second.
    from lookalike.workflow.training.model_file import load_model

    network, trained = load_model(path, checkpoint)
    return network, f"{checkpoint} of {file_digest(path)}", trained.settings.test_image


def _untrained(name: str) -> tuple[nn.Module, str, View]:
    kind, file = weights_of(UNTRAINED, name)
    of_torchvision = {*BACKBONES, *models.list_models(models)} - {LITE0}
    if kind not in of_torchvision:
        require_known(UNTRAINED.removesuffix(":"), kind, of_torchvision | timm_names())
    file = file or SHIPPED.get(kind)
    weights = str(file.absolute()) if file else None
    own = PUBLISHED if kind in of_torchvision else "of timm"
    about = file_digest(file) if file else own
    view = _square(RESIZE_PX, CROP_PX)
    try:
        if kind in of_torchvision:
            stages = None if kind in BACKBONES else [last_map(build_network(kind))]
            backbone = {"name": kind, "weights": weights or own, "batch_norm": "frozen", "stages": stages}
            network = Embedder(backbone, pooling="average", dim=None)
        else:
            trunk = TimmTrunk(kind, weights)
            view = _square(trunk.resize_px, trunk.crop_px)
            about += canonical(trunk.about)
            network = Embedder(trunk, pooling="average", dim=None)
    except OSError as error:
        raise ValueError(
            f"{UNTRAINED}{name}: its weights {weights or own} cannot be had ({error}); "
            f"{UNTRAINED}{kind}=FILE reads a file"
        ) from None
    return network.eval(), f"{kind} {about}", view


def _square(resize_px: int, crop_px: int) -> View:
    """Of any side that a network takes, also smaller than recipes may ask for."""
    return View.model_construct(resize_px=resize_px, crop_px=crop_px)


@torch.no_grad()
def _check_size(network: nn.Module, size_px: int) -> None:
    """Refuse a side that a network of timm does not take before any picture is read."""
    if isinstance(getattr(network, "trunk", None), TimmTrunk):
        network(torch.zeros(1, 3, size_px, size_px))


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


class TimmTrunk(Trunk):
    """What a network of timm makes of images before it pools them, as one map.

    Tokens of a transformer are laid out as they lie on the picture; those that stand for no place, such as the class
    token, are left out. Images come normalised as ImageNet's and are brought to what the network was trained with.

    Args:
        name: as timm spells it.
        weights: path of its state dict, torch's or safetensors; ``None`` for timm's own, which are downloaded once.

    Attributes:
        channels: ``(C,)``, as of `lookalike.models.backbones.Trunk`.
        crop_px: side of the images that the weights are published for.
        resize_px: shorter side of the pictures that these are cut from.
        about: which published weights these are, and what the weights expect, as data.

    Raises:
        ValueError: for a network without places, or weights that do not fit it.
        OSError: if timm's own weights cannot be had.
    """

    def __init__(self, name: str, weights: str | None) -> None:
        nn.Module.__init__(self)  # it has no stages by the names of torchvision
        import timm

        self.name, self.batch_norm = name, "trained"
        self.network: Any = timm.create_model(name, pretrained=weights is None)
        if weights is not None:
            load_state(self.network, read_state(weights), f"{name} of timm", weights)
        config = timm.data.resolve_model_data_config(self.network)
        self.crop_px = int(config["input_size"][-1])
        self.resize_px = round(self.crop_px / config["crop_pct"])
        self.channels = (int(self.network.num_features),)
        self.prefix = int(getattr(self.network, "num_prefix_tokens", 0) or 0)
        published = None if weights else self.network.pretrained_cfg  # the same name may mean others one day
        self.about = {"published": published, "mean": config["mean"], "std": config["std"]}
        self.set_colours(config["mean"], config["std"])

    def forward(self, images: Tensor) -> list[Tensor]:
        """The map ``(N, C, h, w)`` of images ``(N, 3, H, W)``, in a list as of `lookalike.models.backbones.Trunk`.

        Raises:
            ValueError: for images of a side that the network does not take.
        """
        try:
            features: Tensor = self.network.forward_features(self.in_own_colours(images))
        except (AssertionError, RuntimeError) as error:  # timm's words for a grid that does not fit
            height, width = images.shape[2:]
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise ValueError(
                f"{self.name} of timm takes no images of {height} x {width} px ({reason}); its own are "
                f"{self.crop_px} x {self.crop_px}"
            ) from error
        return [self._as_map(features)]

    def _as_map(self, features: Tensor) -> Tensor:
        channels = self.channels[0]
        if features.ndim == 4 and features.shape[1] == channels:
            return features
        if features.ndim == 4 and features.shape[3] == channels:  # as Swin lays its places out
            return features.permute(0, 3, 1, 2).contiguous()
        places = features[:, self.prefix :] if features.ndim == 3 else features
        side = math.isqrt(places.shape[1]) if places.ndim == 3 else 0
        if side < 2 or side * side != places.shape[1] or places.shape[2] != channels:
            raise ValueError(f"{self.name} of timm ends with {tuple(features.shape[1:])}, no square of places")
        return places.mT.reshape(len(places), channels, side, side)
