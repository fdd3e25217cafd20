"""The state of a call: live in a terminal, else as lines."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol, TextIO

from lookalike.text import human_seconds
from snakemake_logger_plugin_lookalike.failures import last_line
from snakemake_logger_plugin_lookalike.progress import Job, Progress

SUMMARY_EVERY_S = 60.0
RUNNING_SHOWN = 8


class Display(Protocol):
    """What shows a call while it runs."""

    def finished(self, job: Job) -> None:
        """Show that a job has ended well."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def tick(self) -> None:
        """Show what time has changed."""

    def end(self) -> None:
        """Leave the terminal to what comes after."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a display that moves the cursor can be shown."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def state(progress: Progress, now: float) -> str:
    """One line on the whole call."""
    parts = [f"{len(progress.done)} of {progress.total} jobs done"]
    if progress.failed:
        parts.append(f"{len(progress.failed)} failed")
    parts.append(f"{human_seconds(now - progress.started)} gone")
    left = progress.left_s(now)
    if left is not None:
        parts.append(f"about {human_seconds(left)} left")
    return ", ".join(parts)


def running(progress: Progress, now: float) -> list[tuple[str, str]]:
    """Per running job what and since when, and what it last said in its log."""
    jobs = list(progress.running.values())
    lines = [
        (f"{job.title}: {human_seconds(now - job.started)}", last_line(job.log) if job.log else "")
        for job in jobs[:RUNNING_SHOWN]
    ]
    return lines if len(jobs) <= RUNNING_SHOWN else [*lines, (f"and {len(jobs) - RUNNING_SHOWN} more", "")]


class Lines:
    """A line a job, and a summary line a minute."""

    def __init__(self, progress: Progress, stream: TextIO, *, quiet: bool) -> None:
        self.progress, self.stream, self.quiet = progress, stream, quiet
        self._summarised = progress.started

    def finished(self, job: Job) -> None:
        """Print the job, what it took, and of a training where it ended."""
        if self.quiet:
            return
        said = last_line(job.log) if job.log and job.rule == "train" else ""
        where = said.partition(" images/s")[0].rpartition("  ")[0] if said.startswith("epoch ") else ""
        place = f"[{len(self.progress.done)}/{self.progress.total}]"
        self.say(f"{place} {job.title}: {human_seconds(job.took_s)}" + (f", {where}" if where else ""))

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=self.stream, flush=True)

    def tick(self) -> None:
        """Print the state of the call once a minute."""
        now = time.time()
        if not self.quiet and now - self._summarised >= SUMMARY_EVERY_S:
            self._summarised = now
            at_work = "; ".join(", ".join(filter(None, each)) for each in running(self.progress, now))
            self.say(f"-- {state(self.progress, now)}" + (f"; now {at_work}" if at_work else ""))

    def end(self) -> None:
        """Nothing to clear away."""


class Live:
    """A table that stays in place: stages, the whole call, and what runs now."""

    def __init__(self, progress: Progress, stream: TextIO, *, colour: bool) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self.progress = progress
        console = Console(file=stream, no_color=not colour, highlight=False, soft_wrap=False)
        self._live = RichLive(
            console=console, get_renderable=self.table, refresh_per_second=2, transient=True, vertical_overflow="crop"
        )
        self._live.start()

    def finished(self, job: Job) -> None:
        """The table shows it by itself."""

    def say(self, line: str) -> None:
        """Print a line above the table."""
        self._live.console.print(line, markup=False, soft_wrap=True)

    def tick(self) -> None:
        """The table is drawn anew by itself."""

    def end(self) -> None:
        """Clear the table away."""
        self._live.stop()

    def table(self) -> Any:
        """What is drawn now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = time.time()
        stages = Table.grid(padding=(0, 1))
        for rule, (done, at_work, planned, work) in self.progress.by_stage().items():
            mean = f"{human_seconds(work / done)} each" if done else ""
            stages.add_row(
                Text(rule),
                ProgressBar(total=planned, completed=done, width=20),
                Text(f"{done}/{planned}", justify="right"),
                Text(f"{planned - done} left", justify="right"),
                Text(f"{at_work} running" if at_work else ""),
                Text(mean, style="dim"),
            )
        lines = [Text(state(self.progress, now), style="bold")]
        for title, said in running(self.progress, now):
            lines += [Text(title), *([Text(f"  {said}", style="dim")] if said else [])]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(stages, *lines)
