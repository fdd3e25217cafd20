"""The log handler: a line a job, a line a failure, and last lines that say where the results are.

Snakemake's own output, a block for each job and a traceback for each failure, stays in the log of the call. Whatever
jobs print on standard error goes there, too.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from lookalike.base.text import counted, human_seconds
from snakemake_logger_plugin_lookalike.command_line import targets_of
from snakemake_logger_plugin_lookalike.failures import headline, reason_of, tail, warnings_in

FEW = 20  # jobs that a dry run names one by one
LONGEST = 300  # characters of the message of an executor
QUIET = ("all", "progress", "rules")  # words of ``--quiet``; the first leaves out all but failures, each the line a job
# Said by Snakemake before every call, and once more about jobs that have failed.
_IDLE = ("Assuming unrestricted shared filesystem usage", "Building DAG of jobs", "Config file ")
_REPEATED = re.compile("Exiting because a job execution failed|At least one job did not complete successfully")
# Ctrl-C, a signal to terminate, and the end of a job by Ctrl-C.
_STOPPED = ("Terminating processes on user request", "Will exit after finishing currently running jobs")
_INTERRUPT = re.compile(r"died with <Signals\.SIGINT|non-zero exit status 130\b")
# How executors go on behind the reason: with all that they have called, or where there is more.
_ASIDE = re.compile(r"sbatch call:|For further error details")


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """Shows a call; Snakemake's own output comes back with ``--printshellcmds`` or ``--verbose``."""

    writes_to_stream = has_filter = has_formatter = True  # all events are wanted, whatever ``--quiet`` says
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self._over = bool(common.verbose or common.debug_dag or common.printshellcmds)
        self.writes_to_stream = not self._over  # in the place of Snakemake's own handler
        self._quiet = {each.item_to_choice() for each in common.quiet or ()}
        self._terminal: TextIO | None = None  # once standard error is the log of the call
        self._begun = self._interrupted = False
        self._planned: dict[str, int] = {}  # jobs by stage
        self._running: dict[int, Any] = {}  # events of jobs that have begun, by number
        self._done: list[Any] = []  # such events of jobs that have ended well
        self._took: dict[str, list[float]] = defaultdict(list)  # their seconds, by stage
        self._failures: dict[int, tuple[str, str]] = {}  # reason and line, by number
        self._errors: list[str] = []
        self._warned: set[str] = set()
        self._stats, self._reasons, self._titles = "", list[str](), list[str]()  # for a dry run

    def emit(self, record: logging.LogRecord) -> None:
        """Take in one event."""
        try:
            if not self._over:
                self._take(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Print the last lines: the results of the call, or the reason for their absence."""
        if not self._over:
            self._over = True
            if self._planned and not self.common_settings.dryrun:
                self._close_call()
            elif self._stats and not self._errors:
                self._close_dry_run()
            for error in dict.fromkeys(self._errors):
                self._say(headline(error, targets_of(Path.cwd())), unless=())
            if self._terminal:
                os.dup2(self._terminal.fileno(), 2)
        super().close()

    def _take(self, record: Any) -> None:
        event, message = getattr(record, "event", None), record.getMessage()
        if event == LogEvent.WORKFLOW_STARTED:
            self._begun = True
        elif event == LogEvent.RUN_INFO:
            self._plan(record)
        elif event == LogEvent.JOB_INFO:
            self._begin(record)
        elif event == LogEvent.JOB_FINISHED and record.job_id in self._running:
            self._finish(record)
        elif event == LogEvent.JOB_ERROR and record.jobid in self._running:
            self._fail(record)
        elif event == LogEvent.ERROR or (event is None and record.levelno >= logging.ERROR):
            self._errors += [] if _REPEATED.search(message) else [message]
        elif event is None and record.levelno >= logging.WARNING:
            self._say(f"warning: {headline(message)}")
        elif event is None and record.levelno == logging.INFO:
            self._inform(message)

    def _plan(self, record: Any) -> None:
        self._stats = record.getMessage().strip()
        if not self._planned:
            self._planned = {rule: number for rule, number in record.stats.items() if rule != "total" and number}
            self._total, self._started = sum(self._planned.values()), time.time()
            if not self.common_settings.dryrun:
                self._take_terminal()
                stages = ", ".join(f"{number} {rule}" for rule, number in self._planned.items())
                self._say(f"{counted(self._total, 'job')}: {stages}")

    def _inform(self, message: str) -> None:
        if message.startswith(_STOPPED):
            self._interrupted = True
        elif self._begun and message.startswith("Reasons:"):
            self._reasons = [line for line in message.splitlines() if line.strip() and "(check individual" not in line]
        elif message.startswith("Nothing to be done") or not (self._begun or message.startswith(_IDLE)):
            self._say(message)

    def _begin(self, record: Any) -> None:
        record.title = record.rule_msg or record.rule_name
        self._titles.append(record.title)
        self._failures.pop(record.jobid, None)  # tried again
        self._running[record.jobid] = record
        if not self.common_settings.dryrun and record.rule_name not in self._took:  # which may take hours
            self._say(record.title + (f" (log: {record.log[0]})" if record.log else ""), unless=QUIET)

    def _finish(self, record: Any) -> None:
        job = self._running.pop(record.job_id)
        self._done.append(job)
        self._took[job.rule_name].append(took := record.created - job.created)
        place = f"[{len(self._done)}/{self._total}]"
        self._say(f"{place} {job.title}: {human_seconds(took)}{self._left(record.created)}", unless=QUIET)
        for line in warnings_in(job.log[0]) if job.log else ():
            if line not in self._warned:
                self._warned.add(line)
                self._say(f"warning: {line}")

    def _fail(self, record: Any) -> None:
        job, errors = self._running.pop(record.jobid), self._errors
        self._errors = []
        if self._interrupted or any(map(_INTERRUPT.search, errors)):
            self._interrupted = True  # ended with the call, not failed
            return
        log = next(iter(job.log), "")
        if record.log and not Path(log).is_file():
            log = record.log[-1]  # an executor's, where the job itself has not come to write one
        reason = self._reason(log, errors, getattr(record, "rule_msg", None) or "")
        line = f"failed: {job.title}: {reason}" + (f" (log: {log})" if log else "")
        if reason not in {earlier for earlier, _ in self._failures.values()}:
            self._say(line)
        self._failures[record.jobid] = reason, line

    def _reason(self, log: str, errors: list[str], executor: str) -> str:
        """Why a job failed: as its stage says, else the end of its log, else Snakemake, else its executor."""
        stage = re.findall(rf"^\w+: (.+)\nlog: {re.escape(log)}$", tail(self._log_of_call()), re.MULTILINE)
        told = [headline(error) for error in errors if "CalledProcessError" not in error]
        said = shorten(_ASIDE.split(executor)[0], LONGEST, placeholder=" ...")
        return next(filter(None, [*stage[-1:], reason_of(log), *told[-1:], said]), "it ended without a word")

    def _left(self, now: float) -> str:
        """Time for the rest as jobs took so far; nothing while most of them are of stages without a job done."""
        left = {rule: planned - len(self._took.get(rule, ())) for rule, planned in self._planned.items()}
        work = sum(map(sum, self._took.values()))
        if not work or 2 * sum(number for rule, number in left.items() if rule in self._took) <= sum(left.values()):
            return ""
        rest = sum(number * fmean(self._took.get(rule, [work / len(self._done)])) for rule, number in left.items())
        at_once = work / (now - min(job.created for job in self._done))
        return f", about {human_seconds(rest / at_once)} left"

    def _close_call(self) -> None:
        failed = f", {len(self._failures)} failed" if self._failures else ""
        done = f"{len(self._done)} of {self._total} jobs done, {human_seconds(time.time() - self._started)}{failed}"
        if log := self._log_of_call():
            self._say(f"Log of the call: {os.path.relpath(log)}")
        if self._interrupted:
            self._errors.clear()
            self._say(f"Stopped on request: {done}. The same line goes on from here.", unless=())
        else:
            self._say(done)
        if len(self._done) == self._total and (results := results_of(self._done)):
            self._say(f"Results: {', '.join(results)}")
        alike = Counter(reason for reason, _ in self._failures.values())
        for reason, line in dict(reversed(self._failures.values())).items():
            more = f" -- and {counted(alike[reason] - 1, 'job')} more for the same reason" if alike[reason] > 1 else ""
            self._say(line + more, unless=())

    def _close_dry_run(self) -> None:
        lines = [self._stats]
        if "all" not in self._quiet:
            lines += ["", *self._titles] if 0 < len(self._titles) <= FEW else []
            lines += ["", *self._reasons] if self._reasons else []
            lines += ["", "A dry run: nothing was started. Every job with its files: --printshellcmds"]
        print("\n".join(lines), flush=True)

    def _say(self, line: str, unless: Sequence[str] = QUIET[:1]) -> None:
        """Print a line, but not with some words of ``--quiet``."""
        if not self._quiet & {*unless}:
            with suppress(OSError):  # a terminal that has gone
                print(line, file=sys.stdout if self.common_settings.stdout and unless else sys.stderr, flush=True)

    def _log_of_call(self) -> str:
        handlers = logging.getLogger("snakemake.logging").handlers
        return next((str(each.baseFilename) for each in handlers if each.name == "DefaultLogFileHandler"), "")  # type: ignore[attr-defined]

    def _take_terminal(self) -> None:
        """Let standard error, which jobs inherit, be the log of the call; this process prints on the terminal."""
        with suppress(OSError), Path(self._log_of_call() or os.devnull).open("ab") as log:
            self._terminal = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
            os.dup2(log.fileno(), 2)
            sys.stderr = self._terminal


def results_of(done: list[Any]) -> list[str]:
    """Results of a call: of jobs whose files no other job has read, the one file of a folder, or how many."""
    read = {name for job in done if job.output for name in job.input}
    made = [name for job in done if not read.intersection(job.output) for name in job.output]
    folders = Counter(Path(name).parent for name in made)
    if len(folders) > 5:
        return [f"{os.path.commonpath(folders)}/ ({len(made)} files)"]
    alone = {Path(name).parent: name for name in made}
    return [
        alone[folder] if number == 1 else f"{folder}/ ({number} files)" for folder, number in sorted(folders.items())
    ]
