"""A card that is not there: tensors that say ``cuda:0`` and whose values lie in the processor's memory.

What a real one refuses is refused: a tensor of each in one operation, and a generator of the processor for a draw on
the card. What a program would have to wait for is counted, with its place. Unseen stay kernels that CUDA lacks or
rounds otherwise, the size of its memory, and time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

CARD, CPU = torch.device("cuda", 0), torch.device("cpu")
SOURCE = Path(__file__).with_name("no_driver.cpp")
aten = torch.ops.aten

# The program goes on only when the card has answered, how much memory comes next or what a value is.
WAITING = {
    aten._local_scalar_dense.default,
    aten.bincount.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.masked_select.default,
    aten.nonzero.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
    aten.unique_consecutive.default,
    aten.unique_dim.default,
}
INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index.Tensor,
    aten._unsafe_index_put.default,
}
COPYING = {aten._to_copy.default, aten.copy_.default}
# No kernel runs for these beside the views.
FREE = {
    aten._local_scalar_dense.default,
    aten._reshape_alias.default,
    aten._unsafe_view.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.empty_strided.default,
    aten.lift_fresh.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
}


class MixedDevicesError(RuntimeError):
    """What lies on the card met what does not."""


@dataclass
class Counts:
    """What was asked of the card.

    Attributes:
        waits: how often the program waited for it, by place.
        uploads: copies of tensors to it, by place.
        launches: kernels that it was given.
    """

    waits: Counter[str] = field(default_factory=Counter)
    uploads: Counter[str] = field(default_factory=Counter)
    launches: int = 0


class OnCard(Tensor):
    """A tensor of the card; ``held`` has its values."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnCard:
        made = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            layout=held.layout, device=CARD, requires_grad=held.requires_grad,
        )  # fmt: skip
        made.held = held
        return made

    def __init__(self, held: Tensor) -> None:
        """As `__new__`."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _answer(function, args, kwargs or {})

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"{self.held!r} on {CARD}"

    @property
    def data(self):
        """Its values without history; what is set there has another place in memory, and perhaps another precision."""
        return Tensor.data.__get__(self)

    @data.setter
    def data(self, value):
        Tensor.data.__set__(self, value)
        self.held = value.held

    def __deepcopy__(self, memo):
        made = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol):
        raise MixedDevicesError("a tensor of the card was to be pickled, from which no other process gets anything")

    def tolist(self):
        """Its values, as one copy."""
        _wait()
        return self.held.tolist()

    def numpy(self, *, force=False):
        """Refused, as the card does."""
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    __array__ = numpy


_counts: list[Counts] = []


@contextmanager
def counted() -> Iterator[Counts]:
    """What the card is asked for inside."""
    counts = Counts()
    _counts.append(counts)
    try:
        yield counts
    finally:
        _counts.remove(counts)


def _place() -> str:
    """Line of this project that asks, behind that of a library where one does so on the way."""
    called, frame = "", sys._getframe()
    while frame is not None:
        path, line = frame.f_code.co_filename, frame.f_lineno
        if "/src/lookalike/" in path:
            return f"{called}lookalike/{path.split('/src/lookalike/')[1]}:{line}"
        if "/pytorch_metric_learning/" in path and not called:
            called = f"pytorch_metric_learning/{path.split('/')[-1]}:{line} for "
        frame = frame.f_back
    return f"{called}elsewhere"


def _wait() -> None:
    if _counts:
        place = _place()
        for counts in _counts:
            counts.waits[place] += 1


def _upload() -> None:
    if _counts:
        place = _place()
        for counts in _counts:
            counts.uploads[place] += 1


def _answer(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, form = tree_flatten((args, kwargs))
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    on_card = any(isinstance(each, OnCard) for each in tensors)
    wanted = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    if not on_card and wanted != "cuda":
        return function(*args, **kwargs)
    gives_card = on_card if wanted is None else wanted == "cuda"
    _refuse(function, args, leaves, tensors, gives_card=gives_card)
    if _counts:
        _count(function, args, gives_card=gives_card)
    found = _computed(function, *tree_unflatten([_plain(each) for each in leaves], form))
    if (written := _written(function, args, kwargs)) is not None:
        return written
    return tree_map_only(Tensor, _moved, found) if gives_card else found


def _moved(held: Tensor) -> OnCard:
    # Zeros without memory are met by what knows them before any mode is asked.
    return OnCard(torch.zeros(held.shape, dtype=held.dtype) if torch._is_zerotensor(held) else held)


def _refuse(function: Any, args: Any, leaves: list[Any], tensors: list[Tensor], *, gives_card: bool) -> None:
    elsewhere = [each for each in tensors if not isinstance(each, OnCard)]
    if len(elsewhere) not in (0, len(tensors)) and function not in COPYING:
        if function in INDEXING and isinstance(args[0], OnCard):  # indices may come from the processor
            elsewhere = [each for each in args[2:3] if isinstance(each, Tensor) and not isinstance(each, OnCard)]
        alike = function in (aten.cat.default, aten.stack.default, aten.gather.default, aten.mm.default)
        if strange := [tuple(each.shape) for each in elsewhere if each.dim() or alike]:
            raise MixedDevicesError(f"{function} of tensors on cuda:0 and of {strange} on the processor at {_place()}")
    for each in leaves:
        if gives_card and isinstance(each, torch.Generator) and each.device.type == "cpu":
            raise MixedDevicesError(f"{function}: a draw on cuda:0 from a generator of the processor at {_place()}")


def _count(function: Any, args: tuple[Any, ...], *, gives_card: bool) -> None:
    launched = not (function in FREE or function.is_view)
    for counts in _counts:
        counts.launches += launched
    if function in WAITING:
        _wait()
    elif function in INDEXING:
        index = [each for each in args[1] if each is not None]
        masks = [each for each in index if each.dtype in (torch.bool, torch.uint8)]
        filled = len(args) > 2 and args[2].numel() == 1 and len(masks) == len(index) and not any(args[3:4])
        if masks and not filled:  # how many it chooses only the card knows; of one value they are filled without
            _wait()
        if not all(isinstance(each, OnCard) for each in index):
            _upload()
    elif function in COPYING:
        goes, comes = (
            (isinstance(args[1], OnCard), isinstance(args[0], OnCard))
            if function is aten.copy_.default
            else (isinstance(args[0], OnCard), gives_card)
        )
        if goes and not comes:
            _wait()
        elif comes and not goes:
            _upload()


def _plain(value: Any) -> Any:
    if isinstance(value, OnCard):
        return value.held
    return CPU if isinstance(value, torch.device) and value.type == "cuda" else value


def _computed(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    kwargs = {name: value for name, value in kwargs.items() if name not in ("pin_memory", "non_blocking")}
    if kwargs.get("device") is not None:
        kwargs["device"] = CPU
    try:
        return function(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if "'Half'" not in str(error):
            raise
    # The processor has no kernel of half precision for some of what the card has.
    raised = tree_map_only(Tensor, lambda each: each.float() if each.dtype == torch.half else each, (args, kwargs))
    found = function(*raised[0], **raised[1])
    return tree_map_only(Tensor, lambda each: each.half() if each.dtype == torch.float else each, found)


def _written(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What an operation in place gives: the tensors that it was told to write."""
    returns = function._schema.returns
    if not returns or any(each.alias_info is None or not each.alias_info.is_write for each in returns):
        return None
    written = []
    for place, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.append(args[place] if place < len(args) else kwargs[argument.name])
    return written[0] if len(returns) == 1 else tuple(written)


class Pretended(TorchDispatchMode):
    """Inside, ``cuda`` is a device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _answer(function, args, kwargs or {})


def pretend() -> None:
    """Let torch say for the rest of this process that there is a card; before the package is imported."""
    cuda: Any = torch.cuda
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)  # else no mode sees torch.tensor(..., device="cuda")
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # else a parameter's values change, not it
    torch.autograd.set_multithreading_enabled(False)  # a mode is of one thread
    # Tensors of a subclass know no inference.
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else torch.enable_grad()
    torch.backends.cudnn.enabled = False
    cuda._lazy_init = cuda.synchronize = cuda.reset_peak_memory_stats = lambda *arguments: None
    cuda.is_available = cuda.is_bf16_supported = lambda *arguments, **options: True
    cuda.is_current_stream_capturing = lambda: False
    cuda.device_count = lambda: 1
    cuda.current_device = cuda.max_memory_allocated = lambda *arguments: 0
    cuda.get_device_name = lambda *arguments: "a pretended card"
    cuda.get_device_capability = lambda *arguments: (9, 0)
    cuda.mem_get_info = lambda *arguments: (2**36, 2**36)
    loader: Any = torch.utils.data.DataLoader
    made = loader.__init__
    loader.__init__ = lambda self, *parts, **options: made(self, *parts, **{**options, "pin_memory": False})


def reason_against() -> str:
    """Why no card can be pretended here; empty where one can."""
    if sys.platform != "linux":
        return "a card is pretended on Linux only"
    return "" if shutil.which("c++") else "there is no C++ compiler to pretend a card with"


def environment(folder: Path) -> dict[str, str]:
    """Variables of a process that pretends a card, with what it preloads compiled into a folder."""
    include = Path(torch.__file__).parent / "include"
    library = folder / "no_driver.so"
    line = ["c++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", f"-I{include}", str(SOURCE), "-o", str(library)]
    subprocess.run(line, check=True)
    before = [os.environ["LD_PRELOAD"]] if "LD_PRELOAD" in os.environ else []
    return {**os.environ, "LOOKALIKE_PRETENDED_CARD": "1", "LD_PRELOAD": ":".join([str(library), *before])}
