"""Numbers that do not depend on the machine: float64, and draws that numpy makes instead of torch.

Torch promises the same draws for the same version and build only: its exponential numbers, for one, come from another
library where it is built with MKL. Numpy's Philox is counted, and the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Draw = Callable[..., NDArray[Any]]  # of generator, the tensor to fill and the operator's other arguments
aten = torch.ops.aten


def _uniform(random: np.random.Generator, like: Tensor, low: float = 0.0, high: float = 1.0) -> NDArray[Any]:
    return low + (high - low) * random.random(like.shape)


def _normal(random: np.random.Generator, like: Tensor, mean: float = 0.0, deviation: float = 1.0) -> NDArray[Any]:
    return mean + deviation * random.standard_normal(like.shape)


def _exponential(random: np.random.Generator, like: Tensor, rate: float = 1.0) -> NDArray[Any]:
    return random.standard_exponential(like.shape) / rate


def _permutation(random: np.random.Generator, like: Tensor, *_: Any) -> NDArray[Any]:
    return random.permutation(len(like))


def _integers(random: np.random.Generator, like: Tensor, *limits: int) -> NDArray[Any]:
    low, high = limits if len(limits) == 2 else (0, *limits)
    values: NDArray[Any] = random.integers(low, high, size=tuple(like.shape))
    return values


def _columns(random: np.random.Generator, like: Tensor, weights: Tensor, *_: Any) -> NDArray[Any]:
    if like.shape[-1] != 1:
        raise ValueError(f"a trace draws one column of each row, not {like.shape[-1]}")
    shares = weights.detach().double().cumsum(-1).numpy()
    places: NDArray[Any] = random.random((*like.shape[:-1], 1)) * shares[..., -1:]
    columns: NDArray[Any] = (shares < places).sum(axis=-1, keepdims=True)
    return columns


IN_PLACE: dict[Any, Draw] = {aten.uniform_: _uniform, aten.normal_: _normal, aten.exponential_: _exponential}
# Of the arguments only those that do not say the shape are passed on.
NEW: dict[Any, tuple[Draw, Callable[..., tuple[Any, ...]]]] = {
    aten.rand: (_uniform, lambda *_: ()),
    aten.randn: (_normal, lambda *_: ()),
    aten.randperm: (_permutation, lambda *_: ()),
    aten.randint: (_integers, lambda *limits: limits[:-1]),
    aten.multinomial: (_columns, lambda *arguments: arguments[:1]),
}
SEEDS_ONLY = (aten.random_,)  # with which a data loader seeds processes that a trace does not have


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fills all that torch draws with numbers of numpy's generator."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random = np.random.Generator(np.random.Philox(seed))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in IN_PLACE:
            values = IN_PLACE[packet](self.random, result, *args[1:])
        elif packet in NEW:
            draw, select = NEW[packet]
            values = draw(self.random, result, *select(*args))
        elif torch.Tag.nondeterministic_seeded in func.tags and packet not in SEEDS_ONLY:
            raise ValueError(f"a trace has no draws for {packet}; give it some in lookalike.learners.traces.draws")
        else:
            return result
        return result.copy_(torch.from_numpy(np.asarray(values)))


@contextmanager
def same_everywhere(seed: int) -> Iterator[None]:
    """Inside, torch computes in float64 and draws what numpy's Philox gives for a seed.

    Raises:
        ValueError: at a kind of draw that has no counterpart here.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Draws(seed):
            yield
    finally:
        torch.set_default_dtype(before)
