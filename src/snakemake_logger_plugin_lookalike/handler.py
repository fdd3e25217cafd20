"""The log handler: what Snakemake reports becomes a display, one line per failure, and a summary at the end."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_lookalike.call import Call, DryRun
from snakemake_logger_plugin_lookalike.command_line import asking_project, config_files, targets_of
from snakemake_logger_plugin_lookalike.failures import headline
from snakemake_logger_plugin_lookalike.terminal import Terminal

OWN_LOG = "DefaultLogFileHandler"  # Snakemake's name for the handler that writes its log
# Said by Snakemake before every call, of no use to anybody who knows it.
_IDLE = ("Assuming unrestricted shared filesystem usage", "Building DAG of jobs", "Config file ")
_NOTHING = "Nothing to be done"
_INTERRUPTED = "Terminating processes on user request"  # Ctrl-C
_ENDING = "Will exit after finishing currently running jobs"  # a signal to terminate
# What Snakemake says once more about jobs whose failure is told already.
_REPEATED = ("Exiting because a job execution failed", "At least one job did not complete successfully")


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """Shows a call; Snakemake's own output stays in its log file, and comes back with ``--logger-lookalike-full``."""

    def __post_init__(self) -> None:
        common = self.common_settings
        chosen = getattr(self.settings, "full", False)
        self._full = bool(chosen or common.verbose or common.debug_dag or common.printshellcmds)
        self._quiet = {each.item_to_choice() for each in common.quiet or ()}
        self._terminal = Terminal(self._job_says)
        self._call: Call | None = None
        self._dry: DryRun | None = DryRun() if common.dryrun else None
        self._begun = False
        self._errors: list[str] = []
        self._open = not self._full
        self._lock_of_state = threading.RLock()

    @property
    def writes_to_stream(self) -> bool:
        """Whether this handler takes the place of Snakemake's own."""
        return not self._full

    @property
    def writes_to_file(self) -> bool:
        """Snakemake writes its log file as ever."""
        return False

    @property
    def has_filter(self) -> bool:
        """All events are wanted, also those that ``--quiet`` keeps off the terminal."""
        return True

    @property
    def has_formatter(self) -> bool:
        """Nothing is printed as Snakemake formats it."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """No."""
        return False

    def emit(self, record: logging.LogRecord) -> None:
        """Take in one event."""
        if not self._open or getattr(record, "said_by_a_job", False):
            return
        with self._lock_of_state:
            try:
                self._take(record)
            except Exception:
                self.handleError(record)

    def close(self) -> None:
        """End the display; the last lines say what there is now, or why there is not."""
        if self._open:
            self._open = False
            with self._lock_of_state:
                self._end()
        super().close()

    def _take(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.WORKFLOW_STARTED:
            self._begun = True
        elif event == LogEvent.RUN_INFO:
            self._plan(record)
        elif event == LogEvent.JOB_INFO:
            if begun := self._call or self._dry:
                begun.begin(record)
        elif event == LogEvent.JOB_FINISHED and self._call:
            self._call.finish(record.job_id, record.created)  # type: ignore[attr-defined]
        elif event == LogEvent.JOB_ERROR and self._call:
            self._terminal.read()
            self._call.fail(record, self._errors)
            self._errors.clear()
        elif event == LogEvent.ERROR or (event is None and record.levelno >= logging.ERROR):
            if not record.getMessage().startswith(_REPEATED) and _REPEATED[1] not in record.getMessage():
                self._errors.append(record.getMessage())
        elif event is None and record.levelno == logging.WARNING:
            self._say(f"warning: {headline(record.getMessage())}")
        elif event is None and record.levelno == logging.INFO:
            self._inform(record.getMessage())

    def _plan(self, record: Any) -> None:
        planned = {rule: number for rule, number in record.stats.items() if rule != "total"}
        if self._dry:
            self._dry.plan(record.getMessage())
        elif self._call is None:
            self._terminal.take()
            self._call = Call(planned, self._terminal, quiet=self._quiet, colour=not self.common_settings.nocolor)

    def _inform(self, message: str) -> None:
        if message.startswith((_INTERRUPTED, _ENDING)) and self._call:
            if message.startswith(_ENDING) and not self._call.interrupted:
                self._say("Ending: jobs of this machine save what they have reached; jobs sent to others finish first.")
            self._call.interrupted = True
        elif self._dry and self._begun and message.startswith("Reasons:"):
            self._dry.reasons(message)
        elif message.startswith(_NOTHING) or not (self._begun or message.startswith(_IDLE)):
            self._say(message)

    def _say(self, line: str) -> None:
        if "all" in self._quiet:
            return
        if self._call:
            self._call.say(line)
        else:
            print(line, file=self._stream, flush=True)

    @property
    def _stream(self) -> TextIO:
        return sys.stdout if self.common_settings.stdout else self._terminal.stream

    def _job_says(self, line: str) -> None:
        if self._call:
            self._call.job_says(line)
        _snakemakes_log().info(line, extra={"said_by_a_job": True})

    def _end(self) -> None:
        files = [each for each in _snakemakes_log().handlers if isinstance(each, logging.FileHandler)]
        log = next((each.baseFilename for each in files if each.name == OWN_LOG), "")
        try:
            if self._call:
                self._terminal.read()
                self._call.end(log, self._errors)
                self._errors.clear()
            elif self._dry and not self._errors:
                self._dry.end(quiet="all" in self._quiet)
        finally:
            self._terminal.give_back()
        arguments = sys.argv[1:]
        root = asking_project(arguments, Path.cwd())
        targets = targets_of(root) if root and self._errors else []
        for error in dict.fromkeys(self._errors):
            line = headline(error, targets=targets, config_files=config_files(arguments))
            print(line, file=sys.stderr, flush=True)


def _snakemakes_log() -> logging.Logger:
    return logging.getLogger("snakemake.logging")
