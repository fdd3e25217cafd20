"""Networks of timm as trunks: vision transformers, DINOv2 and more, whose places may be tokens."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
from torch import Tensor, nn
from torchvision import models

from lookalike.base.checks import from_extra
from lookalike.models.backbones import BACKBONES, Trunk, load_state, read_state, reading

OWN = "of timm"  # weights that timm downloads


def build_trunk(name: str, weights: str | None, batch_norm: str, **options: Any) -> Trunk:
    """The trunk of a name: of this project or of torchvision, or where neither has that name of timm.

    Args:
        name: with ``weights`` and ``batch_norm`` as of `lookalike.models.backbones.Trunk`, or of `TimmTrunk`.
        weights: beside it.
        batch_norm: beside it.
        options: of ``Trunk``; a network of timm takes none of them.

    Raises:
        ValueError: as these classes, and for an option that a network of timm is given.
        ModuleNotFoundError: for a name that only timm can have, where that is not installed.
    """
    if name in BACKBONES or name in models.list_models(models) or not _is_of_timm(name):
        return Trunk(name, weights, batch_norm, **options)
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option}={value!r}: {name} of timm is read whole, at its end; null is right")
    return TimmTrunk(name, weights, batch_norm)


def _is_of_timm(name: str) -> bool:
    if "." not in name and find_spec("timm") is None:
        return False
    with from_extra("timm"):  # names with a dot are timm's alone
        import timm
    return bool(timm.is_model(name.partition(".")[0]))


class TimmTrunk(Trunk):
    """A network of timm up to its pooling, with its output laid out as one map.

    Tokens of a transformer are laid out as they lie on the picture; those that stand for no place, such as the class
    token, are left out. Images come normalised as ImageNet's and are brought to what the network was trained with.

    Args:
        name: as timm spells it.
        weights: path of its state dict, torch's or safetensors; `OWN` for timm's own, which are downloaded once; or
            ``None`` for a random start.
        batch_norm: as of `lookalike.models.backbones.Trunk`.

    Attributes:
        whole_name: the name with that of the published weights behind a dot, where it is known: what they expect of
            images follows from it.
        channels: ``(C,)``, as of `lookalike.models.backbones.Trunk`.
        crop_px: height and width of the images that the weights are published for.
        about: which published weights these are, and what the weights expect, as data.

    Raises:
        ValueError: for a network without places, or weights that do not fit it.
        OSError: if timm's own weights cannot be had.
    """

    def __init__(self, name: str, weights: str | None, batch_norm: str = "trained") -> None:
        nn.Module.__init__(self)  # it has no stages by the names of torchvision
        import timm
        from huggingface_hub.constants import HF_HUB_CACHE

        self.name = name
        with reading(f"of {name}, which timm keeps below {HF_HUB_CACHE}"):
            self.network: Any = timm.create_model(name, pretrained=weights == OWN)
        if weights is not None and weights != OWN:
            head = np.atleast_1d(self.network.pretrained_cfg.get("classifier") or [])
            unread = tuple(f"{part}." for part in head)
            load_state(self.network, read_state(weights, self.network), f"{name} of timm", weights, unread)
        config = timm.data.resolve_model_data_config(self.network)
        self.crop_px: tuple[int, int] = tuple(config["input_size"][1:])
        self.preprocessing = {key: config[key] for key in ("crop_pct", "crop_mode", "interpolation")}
        self.channels = (int(self.network.num_features),)
        self.prefix = int(getattr(self.network, "num_prefix_tokens", 0) or 0)
        published = self.network.pretrained_cfg if weights == OWN else None  # the same name may mean others one day
        self.about = {"published": published, "mean": config["mean"], "std": config["std"]}
        tag = self.network.pretrained_cfg.get("tag")
        self.whole_name = f"{name}.{tag}" if tag and "." not in name else name
        self.set_colours(config["mean"], config["std"])
        self.set_batch_norm(batch_norm)

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
                f"{self.crop_px[0]} x {self.crop_px[1]}"
            ) from error
        return [self._as_map(features)]

    def seen(self, height: int, width: int) -> dict[str, Any]:
        """Values of a view: how timm makes images of this size of pictures for the network.

        Raises:
            ValueError: for a way that no view has.
        """
        mode, share = self.preprocessing["crop_mode"], self.preprocessing["crop_pct"]
        sides = [math.floor(side / share) for side in (height, width)]
        if mode != "squash" and (mode != "center" or height != width):
            raise ValueError(
                f"{self.name} of timm: pictures are made {height} x {width} by crop_mode {mode!r}; what is known is "
                "'squash', and 'center' of squares"
            )
        crop = height if height == width else [height, width]
        interpolation = self.preprocessing["interpolation"]
        return {"resize_px": sides if mode == "squash" else sides[0], "crop_px": crop, "interpolation": interpolation}

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
