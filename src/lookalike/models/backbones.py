"""Networks whose maps are embedded, by the name that recipes use, and where their weights come from."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor

from lookalike.base.checks import from_extra, require_known
from lookalike.base.files import mapped_tensors, require_finite
from lookalike.base.paths import project_or_here

# Mean and deviation of ImageNet's colours. Whatever network sees them, images come normalised by these.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# With what torchvision builds a network that gets its published weights, and not one that starts at random.
AS_PUBLISHED: dict[str, dict[str, Any]] = {
    "googlenet": {"transform_input": True, "aux_logits": False},
    "inception_v3": {"transform_input": True},
}
AUXILIARY = {"googlenet": ("aux1.", "aux2.")}  # heads in the published file that the network is without
TOLD = 3  # tensors that a message names
FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)  # those of weights without a scale beside them
LOG = logging.getLogger(__name__)
PROBED_PX = (224, 256)  # sides of the pictures that channels are told by
CHANNELS: dict[tuple[str, tuple[str, ...], int | None], tuple[int, ...]] = {}  # of networks seen in this process
OLD_DENSENET = re.compile(r"(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\..*)")  # keys in the published files
STRIDED = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)


class Tiny(nn.Module):
    """Three stages on 56 px images, with maps as wide as those of ResNet-50 at 224 px: 28, 14 and 7.

    About 0.1 million parameters (125,392). ``stage1``, ``stage2`` and ``stage3`` stand where ``layer2``, ``layer3`` and
    ``layer4`` do in torchvision's ResNets: each ends with a ReLU.
    """

    def __init__(self, widths: tuple[int, int, int] = (16, 32, 96)) -> None:
        super().__init__()
        first, second, third = widths
        self.stage1 = nn.Sequential(*_unit(3, first, stride=2))  # (N, 16, 28, 28)
        self.stage2 = nn.Sequential(*_unit(first, second, stride=2), *_unit(second, second))  # (N, 32, 14, 14)
        self.stage3 = nn.Sequential(*_unit(second, third, stride=2), *_unit(third, third))  # (N, 96, 7, 7)

    def forward(self, images: Tensor) -> Tensor:
        """Map of the last stage ``(N, 96, H/8, W/8)`` of images ``(N, 3, H, W)``."""
        result: Tensor = self.stage3(self.stage2(self.stage1(images)))
        return result


def _unit(inputs: int, outputs: int, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)


def _of_timm(name: str) -> nn.Module:
    with from_extra("timm"):
        import timm
    network: nn.Module = timm.create_model(name, pretrained=False)
    return network


def _read_of_timm(network: nn.Module, stages: dict[str, str]) -> nn.Module:
    """As torchvision's function, with the layers whole whose padding depends on the picture."""
    from timm.models import create_feature_extractor as read

    extractor: nn.Module = read(network, stages)
    return extractor


@dataclass(frozen=True)
class Backbone:
    """A network and its last three stages, lowest first; each stage ends with a ReLU.

    Attributes:
        build: at a random start.
        stages: names in the network.
        mean: of red, green and blue, in 0 to 1, that its published weights expect pictures to be normalised by.
        deviation: beside it.
        read: makes of the network one that gives the maps of stages.
    """

    build: Callable[[], nn.Module]
    stages: tuple[str, ...]
    mean: Sequence[float] = MEAN
    deviation: Sequence[float] = DEVIATION
    read: Callable[[nn.Module, dict[str, str]], nn.Module] = create_feature_extractor


RESNET50 = Backbone(models.resnet50, ("layer2", "layer3", "layer4"))
RESNET18 = Backbone(models.resnet18, ("layer2", "layer3", "layer4"))
SQUEEZENET1_1 = Backbone(models.squeezenet1_1, ("features.4", "features.7", "features.12"))
TINY = Backbone(Tiny, ("stage1", "stage2", "stage3"))
# Blocks end linear. Before the last two that halve the map, its widest layers end with a ReLU, as the last map does.
LITE0 = "tf_efficientnet_lite0"
EFFICIENTNET_LITE0 = Backbone(
    partial(_of_timm, LITE0),
    ("blocks.3.0.bn1", "blocks.5.0.bn1", "bn2"),
    mean=(0.5, 0.5, 0.5),
    deviation=(0.5, 0.5, 0.5),
    read=_read_of_timm,
)

BACKBONES = {
    "resnet50": RESNET50,
    "resnet18": RESNET18,
    "squeezenet1_1": SQUEEZENET1_1,
    "tiny": TINY,
    "tf_efficientnet_lite0": EFFICIENTNET_LITE0,
}


class Trunk(nn.Module):
    """The stages of a backbone that a method reads.

    Args:
        name: key of ``BACKBONES``, or any classifier of torchvision if its ``stages`` are given.
        weights: name of torchvision weights (``IMAGENET1K_V1``; never ``DEFAULT``, which changes with the version),
            path of a state dict relative to the project's root, torch's or safetensors, or ``None`` for a random start.
        batch_norm: ``trained``; ``frozen_statistics``, which normalises by the stored statistics and trains scale and
            shift; ``frozen``, which trains neither.
        levels: how many of the last stages are returned.
        stages: names of the stages that are read, lowest first; ``None`` for those of ``BACKBONES``.
        last_stride: 1 takes the step from the last stage, whose map then stays as large as the one before; ``None``
            leaves the network as it is.
        trained_from: part of the network with which learning starts; all before it stays as it is, but for statistics
            of ``trained`` batch norms. ``None`` for the whole network.

    Raises:
        ValueError: for an unknown name, stage or part, weights that do not exist or do not fit, a number of levels
            outside 1 to the number of stages, or a stride that is not 1 or that the last stage has already.
    """

    scale: Tensor | None
    shift: Tensor | None

    def __init__(
        self,
        name: str,
        weights: str | None,
        batch_norm: str,
        levels: int = 1,
        stages: Sequence[str] | None = None,
        last_stride: int | None = None,
        trained_from: str | None = None,
    ) -> None:
        super().__init__()
        backbone = find_backbone(name, stages)
        if not 1 <= levels <= len(backbone.stages):
            raise ValueError(f"levels={levels} is outside [1, {len(backbone.stages)}], the stages of {name}")
        network = backbone.build()
        self.names = backbone.stages[-levels:]
        missing = [stage for stage in self.names if stage not in dict(network.named_modules())]
        if missing:
            parts = ", ".join(part for part, _ in network.named_children())
            raise ValueError(f"stages: {name} has no part {missing[0]!r}; it consists of {parts}")
        if last_stride is not None:
            set_last_stride(network.get_submodule(self.names[-1]), last_stride, f"stage {self.names[-1]} of {name}")
        if trained_from is not None:
            freeze_before(trained_from, network, name)
        self.stages = backbone.read(network, {stage: stage for stage in self.names})
        if weights is not None:
            load_weights(network, name, weights, unread=_unread(network, self.stages))
        self.set_colours(backbone.mean, backbone.deviation)
        known = (name, self.names, last_stride)
        if known not in CHANNELS:
            CHANNELS[known] = _channels(self.stages)
        self.channels = CHANNELS[known]
        self.set_batch_norm(batch_norm)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Maps ``(N, C, H, W)`` of the chosen stages, lowest first, of images ``(N, 3, H, W)``."""
        return list(self.stages(self.in_own_colours(images)).values())

    def set_batch_norm(self, batch_norm: str) -> None:
        """State the mode of batch norms in a training, as of the class."""
        self.batch_norm = batch_norm
        if batch_norm == "frozen":
            for module in self._batch_norms():
                module.requires_grad_(False)

    def set_colours(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        """State the mean and deviation that the network's weights expect of pictures: no part of its state."""
        own = (tuple(mean), tuple(deviation)) == (MEAN, DEVIATION)
        theirs, their_deviation, its, its_deviation = (
            torch.tensor(values).view(3, 1, 1) for values in (MEAN, DEVIATION, mean, deviation)
        )
        self.register_buffer("scale", None if own else their_deviation / its_deviation, persistent=False)
        self.register_buffer("shift", None if own else (theirs - its) / its_deviation, persistent=False)

    def in_own_colours(self, images: Tensor) -> Tensor:
        """Images normalised by ImageNet's `MEAN` and `DEVIATION` as the network's weights expect them."""
        return images if self.scale is None or self.shift is None else images * self.scale + self.shift

    def train(self, mode: bool = True) -> Trunk:
        """As in torch, but batch norms with frozen statistics stay in evaluation mode."""
        super().train(mode)
        if self.batch_norm != "trained":
            for module in self._batch_norms():
                module.eval()
        return self

    def _batch_norms(self) -> list[nn.Module]:
        return [module for module in self.modules() if isinstance(module, nn.BatchNorm2d)]


def find_backbone(name: str, stages: Sequence[str] | None = None) -> Backbone:
    """The backbone of a name, read at other stages if these are given.

    Raises:
        ValueError: for a name that neither ``BACKBONES`` nor torchvision has, or one of torchvision's without stages.
    """
    if name in BACKBONES:
        return replace(BACKBONES[name], stages=tuple(stages or BACKBONES[name].stages))
    require_known("backbone", name, models.list_models(models))
    if not stages:
        raise ValueError(f"backbone {name!r} needs `stages`: names of parts of it that give maps, lowest first")
    return Backbone(partial(build_network, name), tuple(stages))


def build_network(name: str) -> nn.Module:
    """A network at a random start, laid out as torchvision lays it out for its published weights.

    Args:
        name: key of ``BACKBONES``, or a classifier of torchvision.
    """
    if name in BACKBONES:
        return BACKBONES[name].build()
    network: nn.Module = models.get_model(name, weights=None, **AS_PUBLISHED.get(name, {}))
    return network


def set_last_stride(stage: nn.Module, stride: int, name: str) -> None:
    """Let convolutions and poolings that halve the map leave its size, with the weights that they have.

    Args:
        stage: changed in place.
        stride: 1.
        name: name of the stage, for messages.

    Raises:
        ValueError: for another stride, or a stage that halves nothing.

    Source: Sun et al. 2018 (PCB), whose map of ResNet-50 has a sixteenth of the image's sides.
    """
    if stride != 1:
        raise ValueError(f"last_stride={stride} must be 1, or null for the stride that the network has")
    halving = [part for part in stage.modules() if isinstance(part, STRIDED) and part.stride in (2, (2, 2))]
    if not halving:
        raise ValueError(f"last_stride={stride}: {name} has no layer of stride 2")
    for part in halving:
        part.stride = (stride, stride)


def freeze_before(part: str, network: nn.Module, name: str) -> None:
    """Let all parameters be that a network has before one of its parts.

    Args:
        part: name of the part.
        network: changed in place.
        name: of the network, for messages.

    Raises:
        ValueError: for a part that the network does not have, or one without parameters.
    """
    parameters = dict(network.named_parameters())
    first = next((number for number, key in enumerate(parameters) if key.startswith(f"{part}.")), None)
    if first is None:
        parts = ", ".join(dict.fromkeys(".".join(key.split(".")[:2]) for key in parameters))
        raise ValueError(f"trained_from: {name} learns nothing in a part {part!r}; it learns in {parts}")
    for parameter in [*parameters.values()][:first]:
        parameter.requires_grad_(False)


def load_weights(network: nn.Module, name: str, weights: str, unread: tuple[str, ...] = ()) -> None:
    """Load weights into a network as torchvision lays it out.

    Args:
        network: filled in place.
        name: key of ``BACKBONES``, or a classifier of torchvision.
        weights: as of `Trunk`.
        unread: as of `load_state`.

    Raises:
        ValueError: if there are no such weights, or they cannot be read or belong to another network.
        OSError: if torchvision's cannot be had.
    """
    root = project_or_here()
    if (root / weights).is_file():
        state = read_state(weights, network)
    else:
        known = models.get_model_weights(name).__members__ if name in models.list_models() else {}
        if weights not in known or weights == "DEFAULT":
            names = ", ".join(key for key in known if key != "DEFAULT") or "none"
            raise ValueError(f"weights {weights!r}: no such file below {root}, and of torchvision's: {names}")
        with reading(Path(torch.hub.get_dir()) / "checkpoints" / Path(known[weights].url).name):
            state = known[weights].get_state_dict(check_hash=True)
    for key in list(state):
        if key.startswith(AUXILIARY.get(name, ())):
            del state[key]
        elif old := OLD_DENSENET.fullmatch(key):
            state[old[1] + old[2]] = state.pop(key)
    load_state(network, state, name, weights, unread)


def load_state(
    network: nn.Module, state: dict[str, Tensor], name: str, weights: str, unread: tuple[str, ...] = ()
) -> None:
    """Load tensors by name into a network that has just these.

    Args:
        network: filled in place.
        state: its tensors.
        name: of the network, for messages.
        weights: name of the tensors' file, for messages.
        unread: beginnings of names that are not asked for, as those of a classifier that is cut off.

    Raises:
        ValueError: saying how many tensors are missing, are another network's, have another shape or are no floating
            numbers, and the first few.
    """
    own = {key: each for key, each in network.state_dict().items() if not key.startswith(unread)}
    asked = {key: each for key, each in state.items() if not key.startswith(unread)}
    both = [key for key in own if key in asked]
    shaped = [key for key in both if asked[key].shape != own[key].shape]
    whole_numbers = [key for key in both if own[key].is_floating_point() and not asked[key].is_floating_point()]
    whole = OrderedDict((key, each) for key, each in asked.items() if key not in shaped)
    # Which layout a file has stands in none of safetensors; MNASNet wants to know.
    metadata = getattr(state, "_metadata", {"": {"version": network._version}})
    whole._metadata = metadata  # type: ignore[attr-defined]
    found = network.load_state_dict(whole, strict=False)
    missing = [key for key in found.missing_keys if key not in shaped and key in own]
    faults = {
        f"{len(missing)} of its {len(own)} tensors are missing": missing,
        f"{len(found.unexpected_keys)} of {len(asked)} are not its own": found.unexpected_keys,
        f"{len(shaped)} have another shape": shaped,
        f"{len(whole_numbers)} are whole numbers, perhaps of quantised weights": whole_numbers,
    }
    told = [f"{said} ({_first(keys)})" for said, keys in faults.items() if keys]
    if told:
        raise ValueError(f"weights {weights} do not fit {name}: {'; '.join(told)}")


def _unread(network: nn.Module, stages: nn.Module) -> tuple[str, ...]:
    """Beginnings of the names of a network's parts of which the stages have nothing."""
    read = {value.data_ptr() for _, value in _values(stages)}
    parts: dict[str, bool] = {}
    for key, value in network.state_dict().items():
        part = key.partition(".")[0] + "."
        parts[part] = parts.get(part, False) or value.data_ptr() in read
    return tuple(part for part, is_read in parts.items() if not is_read)


def _first(keys: Sequence[str]) -> str:
    return ", ".join([*keys[:TOLD], *(["..."] if len(keys) > TOLD else [])])


def read_state(weights: str, network: nn.Module) -> dict[str, Tensor]:
    """The state dict of a file below the project's root, torch's or safetensors.

    A beginning of every name that the network does not have, such as ``module.``, is taken off; a warning says so.

    Raises:
        ValueError: if it is none, holds what are no dense floating or whole numbers, or as
            `lookalike.base.files.require_finite`.
    """
    path = project_or_here() / weights
    state = mapped_tensors(path)[0] if path.suffix == ".safetensors" else _read_pickled(path)
    with reading(path):
        for name, each in state.items():
            if kind := _strange(each):
                raise ValueError(f"weights {path}: {name!r} is {kind}; weights are dense tensors of floating numbers")
        require_finite(f"weights {path}", state)
    return _without_prefix(state, network, path)


def _strange(tensor: Tensor) -> str:
    """Kind of a tensor that no weights are read from, empty for a plain one."""
    if tensor.is_quantized or tensor.is_nested or tensor.is_meta:
        return "quantised" if tensor.is_quantized else "nested" if tensor.is_nested else "without values (meta)"
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    plain = tensor.dtype in FLOATING or not (tensor.is_floating_point() or tensor.is_complex())
    return "" if plain else str(tensor.dtype).removeprefix("torch.")


def _without_prefix(state: dict[str, Tensor], network: nn.Module, path: Path) -> dict[str, Tensor]:
    own = network.state_dict()
    taken = ""
    while prefixes := {key.partition(".")[0] + "." for key in state}:
        (prefix, *others) = prefixes
        if others or prefix[:-1] in state or any(key.startswith(prefix) for key in own):
            break
        state, taken = {key.removeprefix(prefix): each for key, each in state.items()}, taken + prefix
    if taken:
        LOG.warning("weights %s: %r before every name is taken off", path, taken)
    return state


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Guard a reading of weights: whatever goes wrong is one line with the file.

    Raises:
        ValueError: for all that is no OSError.
    """
    try:
        yield
    except (OSError, ValueError):
        raise
    except Exception as error:  # torch raises many kinds
        raise ValueError(f"weights {path}: cannot be read ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    """Kind and first line of an error, without the colours of a terminal."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".removesuffix(": ")


def _read_pickled(path: Path) -> dict[str, Tensor]:
    """Tensors of a file that `torch.save` wrote; anything else in it is refused, and nothing is run.

    Raises:
        ValueError: if it holds more than tensors by name, or is no such file.
    """
    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a file that is none
        if found := re.search(r"GLOBAL ([\w.]+)|TorchScript", str(error)):
            raise ValueError(
                f"weights {path}: holds more than tensors, such as a whole network ({found[1] or found[0]}); what is "
                "read is what torch.save(net.state_dict(), FILE) writes"
            ) from None
        raise ValueError(f"weights {path}: no file of tensors as torch.save writes them ({_reason(error)})") from None
    if not isinstance(state, dict):
        raise ValueError(f"weights {path}: holds a {type(state).__name__}, no state dict of tensors by name")
    for name, each in state.items():
        if not isinstance(each, Tensor) or not isinstance(name, str):
            kind = type(each).__name__
            raise ValueError(f"weights {path}: {name!r} is a {kind}; a state dict holds tensors alone, by name")
    return state


def _channels(stages: nn.Module) -> tuple[int, ...]:
    """Channels of the maps, seen on the shapes of two pictures: an axis that grows with the picture is no channel.

    A network that takes pictures of one size alone shows its first one.
    """
    small = _shapes(stages, PROBED_PX[0])
    try:
        large = _shapes(stages, PROBED_PX[1])
    except ValueError:
        large = small
    for name, shape in small.items():
        if len(shape) != 4 or large[name][:2] != shape[:2]:
            raise ValueError(
                f"stages: {name!r} gives shape {shape} of a picture of {PROBED_PX[0]} px, and {large[name]} of "
                f"{PROBED_PX[1]} px; it must give maps (N, C, H, W)"
            )
    return tuple(shape[1] for shape in small.values())


@torch.no_grad()
def _shapes(stages: nn.Module, side: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the maps of a picture; nothing is computed, and running statistics stay as they are."""
    modes = {part: part.training for part in stages.modules()}
    nowhere = {name: torch.empty_like(value, device="meta") for name, value in _values(stages)}
    try:
        with redirect_stderr(StringIO()):  # where torch.fx prints what it raises
            maps = functional_call(stages.eval(), nowhere, torch.empty(1, 3, side, side, device="meta"))
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"a picture of {side} px is none for this network: {str(error).splitlines()[0]}") from None
    finally:
        for part, training in modes.items():
            part.training = training
    return {name: tuple(stage.shape) for name, stage in maps.items()}


def _values(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()
