"""Time and memory of two losses on a linear embedding of fixed features, over the batch size."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from lookalike.losses import LOSSES
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.running.devices import visible_devices
from lookalike.workflow.running.machine import device_name, peak_megabytes, resident_megabytes
from lookalike.workflow.settings.model import Count, Model, Natural, Part, Some

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MEASURES = {"seconds": ("time per batch (s)", "time"), "megabytes": ("peak memory (MB)", "memory")}
UPPER = 3  # sizes, the largest ones, from which the growth is read: below them fixed costs rule
CUBIC, NEARLY = 3, 0.5  # power of the batch size
NOT_RUN = (
    "the contextual loss is negligible beside the backbone at 6,400 pictures",
    "ROADMAP is impractical beyond about 2,000 pictures",
)


class Options(Model):
    """Of the figure."""

    losses: dict[str, Part]
    sizes: dict[str, Some[Count]]
    per_class: Count
    feature_dim: Count
    embedding_dim: Count
    repeats: Count
    seed: Natural


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Forward and backward pass of every loss at every batch size, each in a process of its own.

    Args:
        runs: none.
        options: ``losses`` by label, each ``name`` and arguments of one of ``LOSSES``; batch ``sizes`` for ``cpu`` and
            ``cuda``; ``per_class`` pictures; ``feature_dim``, ``embedding_dim``; ``repeats``; ``seed``.

    Returns:
        ``loss, batch_size``, ``seconds`` (median), ``megabytes`` beyond what the process held before, and ``device``,
        ``threads``.

    Raises:
        RuntimeError: if a measuring process ends without a result, for want of memory most likely.

    Source: Supervised Metric Learning to Rank, Fig. 8.
    """
    kind = "cuda" if visible_devices() else "cpu"
    rows = [
        {"loss": label, "batch_size": size, **_in_own_process(kind, loss, size, options)}
        for size in options.sizes[kind]
        for label, loss in options.losses.items()
    ]
    return pd.DataFrame(rows)


def measure(kind: str, loss: Part, size: int, options: Options) -> dict[str, Any]:
    """Seconds and megabytes of one forward and backward pass; the peak counts for this process as a whole.

    Args:
        kind: ``cpu`` or ``cuda``.
        loss: with its arguments.
        size: of the batch.
        options: as `data` takes them.
    """
    generator = torch.Generator().manual_seed(options.seed)
    features = torch.randn(size, options.feature_dim, generator=generator).to(kind)
    labels = torch.arange(size, device=kind) // options.per_class
    torch.manual_seed(options.seed)  # the process is our own
    embedding = nn.Linear(options.feature_dim, options.embedding_dim).to(kind)
    criterion = LOSSES[loss.name](**loss.options)
    before = _held(kind)
    seconds = []
    for repeat in range(-2, options.repeats):  # two to warm up
        embedding.zero_grad()
        start = time.perf_counter()
        criterion(embedding(features), labels).backward()
        if kind == "cuda":
            torch.cuda.synchronize()
        if repeat >= 0:
            seconds.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds),
        "megabytes": _peak(kind) - before,
        "device": device_name(torch.device(kind)),
        "threads": torch.get_num_threads(),
    }


def draw(frame: pd.DataFrame) -> Picture:
    """Time on the left, memory on the right, both over the batch size and logarithmic."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    from lookalike.workflow.report.figures.parts.style import LOOKS, legend_below, panels

    figure, axes = panels(1, 2, height=2.0)
    sizes = sorted(frame["batch_size"].unique())
    for panel, (column, (label, _)) in zip(axes[0], MEASURES.items(), strict=True):
        for look, (loss, rows) in zip(LOOKS, frame.groupby("loss", sort=False), strict=False):
            appearance = {"color": look.colour, "marker": look.marker, "linestyle": look.line}
            panel.plot(rows["batch_size"], rows[column], **appearance, label=loss)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(sizes, [str(size) for size in sizes], rotation=45)
        panel.minorticks_off()
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.set_xlabel("pictures in a batch")
        panel.set_ylabel(label)
    legend_below(figure, axes[0, 0])
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the time of both grows with the cube of the batch; claims that need a backbone are not measured."""
    first, second = frame["loss"].unique()[:2]
    largest = frame["batch_size"].max()
    device, threads = frame["device"].iloc[0], frame["threads"].iloc[0]
    reached = [
        Check(
            f"on {device}, {threads} threads; each point in a fresh process, median of its repetitions",
            None,
            claimed=False,
        )
    ]
    for column, (_, name) in MEASURES.items():
        table = frame.pivot_table(index="batch_size", columns="loss", values=column)
        upper = table.tail(UPPER)
        powers = {loss: np.polyfit(np.log(upper.index), np.log(upper[loss]), 1)[0] for loss in (first, second)}
        grows = (
            f"over the {UPPER} largest batches, up to {largest}, it grows with the power {powers[first]:.1f} ({first}) "
            f"and {powers[second]:.1f} ({second}) of the batch size"
        )
        if column == "seconds":
            cubic = all(abs(power - CUBIC) <= NEARLY for power in powers.values())
            reached.append(Check(f"both cubic in {name}: {grows}", cubic))
        else:
            reached.append(Check(f"{name}: {grows}", claimed=False))
        ratio = table.loc[largest, second] / table.loc[largest, first]
        says = f"{second} needs {ratio:.1f} times the {name} of {first} at {largest} pictures"
        reached.append(Check(says, claimed=False))
    return [*reached, *(Check(f"{says}: not run here", measured=False) for says in NOT_RUN)]


def _in_own_process(kind: str, loss: Part, size: int, options: Options) -> dict[str, Any]:
    """`measure` in a fresh process, which has neither the memory nor the threads of earlier points.

    It is forked from a server that has done nothing but import: a fork of a process whose threads have run may hang.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(theirs, torch.get_num_threads(), kind, loss, size, options))
    child.start()
    theirs.close()
    try:
        answer: dict[str, Any] | str = ours.recv()
    except EOFError:
        answer = "its process was killed (out of memory?)"
    child.join()
    if isinstance(answer, str):
        raise RuntimeError(f"measuring {loss.name} with {size} pictures failed: {answer}")
    return answer


def _send(pipe: Connection, threads: int, *arguments: Any) -> None:
    torch.set_num_threads(threads)
    try:
        pipe.send(measure(*arguments))
    except Exception as error:
        pipe.send(str(error))


def _held(kind: str) -> float:
    return torch.cuda.memory_allocated() / 1e6 if kind == "cuda" else resident_megabytes()


def _peak(kind: str) -> float:
    return torch.cuda.max_memory_allocated() / 1e6 if kind == "cuda" else peak_megabytes()


SCALABILITY = Figure(data, draw, checks)
