"""Networks of timm, where it is installed: vision transformers, DINOv2 and more, whose places may be tokens."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.models.backbones import Trunk, load_state, read_state
from lookalike.training.images import DEVIATION, MEAN


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

    scale: Tensor
    shift: Tensor

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
        mean, std, own_mean, own_std = (
            torch.tensor(values).view(3, 1, 1) for values in (MEAN, DEVIATION, config["mean"], config["std"])
        )
        published = None if weights else self.network.pretrained_cfg  # the same name may mean others one day
        self.about = {"published": published, "mean": config["mean"], "std": config["std"]}
        self.register_buffer("scale", std / own_std, persistent=False)
        self.register_buffer("shift", (mean - own_mean) / own_std, persistent=False)

    def forward(self, images: Tensor) -> list[Tensor]:
        """The map ``(N, C, h, w)`` of images ``(N, 3, H, W)``, in a list as of `lookalike.models.backbones.Trunk`.

        Raises:
            ValueError: for images of a side that the network does not take.
        """
        try:
            features: Tensor = self.network.forward_features(images * self.scale + self.shift)
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
