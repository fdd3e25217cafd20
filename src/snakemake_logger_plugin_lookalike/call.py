"""One call, from its first job to the lines that close it."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import Any

from lookalike.text import aligned, counted, human_seconds
from snakemake_logger_plugin_lookalike.display import Display, Lines, Live, is_terminal, state
from snakemake_logger_plugin_lookalike.failures import headline, reason_of, warnings_in
from snakemake_logger_plugin_lookalike.progress import Job, Progress
from snakemake_logger_plugin_lookalike.terminal import Terminal

TICK_S = 0.5
SLOWEST = 3
FEW = 20  # jobs that a dry run names one by one
LONGEST = 300  # characters of what an executor says
REMEMBERED = 200  # lines of jobs among which the reason of a failure is looked up
_FULL = "--logger-lookalike-full"
# How executors go on once they have said why: with all that they have called, or where there is more.
_ASIDE = re.compile(r"sbatch call:|For further error details")
# How a process says that Ctrl-C has ended it, in Snakemake's words.
_INTERRUPT = re.compile(r"died with <Signals\.SIGINT|non-zero exit status 130\b")


class Call:
    """A call that runs jobs.

    Args:
        planned: jobs by stage.
        terminal: taken already.
        quiet: words of ``--quiet``.
        colour: whether colours are wanted.
    """

    def __init__(self, planned: dict[str, int], terminal: Terminal, *, quiet: set[str], colour: bool) -> None:
        self.progress = Progress(planned, time.time())
        self.interrupted = False
        self._terminal = terminal
        self._silent = "all" in quiet
        self._failures: dict[str, dict[int, str]] = {}  # by reason, the jobs that it stopped, by number
        self._warned: set[str] = set()
        self._said: deque[str] = deque(maxlen=REMEMBERED)
        few_words = self._silent or bool(quiet & {"progress", "rules"})
        stream = terminal.stream
        self._display: Display
        if is_terminal(stream) and not few_words:
            self._display = Live(self.progress, stream, colour=colour)
        else:
            self._display = Lines(self.progress, stream, quiet=few_words)
            stages = ", ".join(f"{number} {rule}" for rule, number in planned.items() if number)
            self.say(f"{counted(self.progress.total, 'job')}: {stages}")
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._clock.start()

    def begin(self, record: Any) -> None:
        """Take in that a job has begun."""
        title = record.rule_msg or record.rule_name
        log = Path(record.log[0]) if record.log else None
        job = Job(record.rule_name, title, log, list(record.output), list(record.input), record.created)
        self.progress.begin(record.jobid, job)
        for stopped in self._failures.values():  # tried again
            stopped.pop(record.jobid, None)
        if record.benchmark and record.rule_name not in self.progress.earlier_s:
            measured = _measured(Path(record.benchmark).parent)
            if measured is not None:
                self.progress.earlier_s[record.rule_name] = measured

    def finish(self, number: int, now: float) -> None:
        """Take in that a job has ended well."""
        job = self.progress.finish(number, now)
        if job is None:
            return
        self._display.finished(job)
        for line in warnings_in(job.log) if job.log else []:
            if line not in self._warned:
                self._warned.add(line)
                self.say(f"warning: {line}")

    def fail(self, record: Any, errors: list[str]) -> None:
        """Take in that a job has failed; ``errors`` is what Snakemake has said of it."""
        if self.interrupted or any(_INTERRUPT.search(error) for error in errors):
            self.interrupted = True
            self.progress.running.pop(record.jobid, None)  # ended with the call, not failed
            return
        job = self.progress.fail(record.jobid, record.created)
        if job is None:
            return
        if record.log and not (job.log and job.log.exists()):
            job.log = Path(record.log[-1])  # an executor's, where the job itself has not come to write one
        reason = self._reason(job, errors, getattr(record, "rule_msg", None) or "")
        line = f"failed: {job.title}: {reason}" + (f" (log: {job.log})" if job.log else "")
        if not self._failures.get(reason):
            self.say(line)
        self._failures.setdefault(reason, {})[record.jobid] = line

    def job_says(self, line: str) -> None:
        """Take in a line that a job has printed."""
        self._said.append(line)

    def say(self, line: str) -> None:
        """Show a line that stays."""
        if not self._silent:
            self._display.say(line)

    def end(self, log: str, errors: list[str]) -> None:
        """Print what there is now, what took how long, and last what went wrong."""
        self._over.set()
        self._clock.join()
        self._display.end()
        lines: list[str] = []
        if not self._silent:
            lines += self._summary(log)
        if self.interrupted:
            lines.append(
                f"Stopped on request: {state(self.progress, time.time()).partition(', about')[0]}. "
                "The same line goes on from here."
            )
        else:
            lines += [headline(error) for error in dict.fromkeys(errors)]
            for each in filter(None, self._failures.values()):
                more = f" -- and {counted(len(each) - 1, 'job')} more for the same reason" if len(each) > 1 else ""
                lines.append(next(iter(each.values())) + more)
        for line in lines:
            print(line, file=self._terminal.stream, flush=True)

    def _reason(self, job: Job, errors: list[str], executor: str) -> str:
        """Why a job failed: what its stage says, else the end of its log, else Snakemake, else its executor."""
        said = list(self._said)
        for place in range(len(said) - 1, 0, -1):
            if said[place] == f"log: {job.log}":
                return said[place - 1].partition(": ")[2] or said[place - 1]
        from_log = reason_of(job.log) if job.log else ""
        told = [error for error in errors if "CalledProcessError" not in error]
        if told and not from_log:
            return headline(told[-1])
        last = next((line for line in reversed(said) if line.strip()), "it ended without a word")
        return from_log or shorten(_ASIDE.split(executor)[0], LONGEST, placeholder=" ...") or last

    def _summary(self, log: str) -> list[str]:
        progress = self.progress
        took = human_seconds(time.time() - progress.started)
        done, failed, total = len(progress.done), len(self.progress.failed), progress.total
        lines = [f"{done} of {total} jobs done in {took}" + (f", {failed} failed" if failed else "")]
        working = {job.rule for job in progress.done if job.outputs}  # a target itself makes nothing
        rows = [
            [rule, f"{finished}", human_seconds(work), human_seconds(work / finished)]
            for rule, (finished, _, _, work) in progress.by_stage().items()
            if finished and rule in working
        ]
        if rows:
            lines += aligned([["stage", "jobs", "took", "each"], *rows]).splitlines()
        if done > SLOWEST:
            slowest = sorted(progress.done, key=lambda job: -job.took_s)[:SLOWEST]
            lines += ["The slowest:", *(f"  {human_seconds(job.took_s):>6}  {job.title}" for job in slowest)]
        if done == total and (results := progress.results()):
            lines.append(f"Results: {', '.join(results)}")
        if log:
            lines.append(f"Log of the call: {_short(log)}")
        return lines

    def _tick(self) -> None:
        while not self._over.wait(TICK_S):
            self._terminal.read()  # go on with that, come what may: jobs stand still once their pipe is full
            with suppress(OSError):  # a terminal that has gone
                self._display.tick()


class DryRun:
    """A call that only says what would run."""

    def __init__(self) -> None:
        self._stats = ""
        self._reasons: list[str] = []
        self._titles: list[str] = []

    def plan(self, stats: str) -> None:
        """Take in Snakemake's table of jobs by stage, which comes twice."""
        self._stats = stats.strip()

    def begin(self, record: Any) -> None:
        """Take in a job that would run."""
        self._titles.append(record.rule_msg or record.rule_name)

    def reasons(self, message: str) -> None:
        """Take in why stages would run."""
        self._reasons = [line for line in message.splitlines() if line.strip() and "(check individual" not in line]

    def end(self, *, quiet: bool) -> None:
        """Print jobs by stage, why they would run, and if they are few each of them."""
        if not self._stats:
            return
        lines = [self._stats]
        if not quiet:
            if 0 < len(self._titles) <= FEW:
                lines += ["", *self._titles]
            if self._reasons:  # --quiet keeps them back
                lines += ["", *self._reasons]
            lines += ["", f"A dry run: nothing was started. Every job with its files: {_FULL}"]
        print("\n".join(lines), flush=True)


def _measured(folder: Path) -> float | None:
    """Mean seconds of earlier jobs, from Snakemake's benchmark files in a folder."""
    seconds = []
    for path in sorted(folder.glob("*.tsv"))[:50]:
        try:
            seconds.append(float(path.read_text(encoding="utf-8").splitlines()[1].split("\t")[0]))
        except (OSError, IndexError, ValueError):
            continue
    return sum(seconds) / len(seconds) if seconds else None


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
