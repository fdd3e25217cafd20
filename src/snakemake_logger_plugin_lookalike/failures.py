"""Shorten the many lines of Snakemake and of failing jobs to one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

# How Python, and Snakemake after it, begins the line with an error.
_CLASS = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<kind>[A-Za-z_]\w*(?:Error|Exception|Interrupt)):(?: |$)")
_PLACE = re.compile(r'^[A-Za-z_]\w*(?: in rule \w+)?(?: in file ".*?", line \d+)?[:.]$')
# Errors whose message is written for users; of any other one its class says more than its message.
_FOR_USERS = ("ValueError", "WorkflowError", "OSError", "FileNotFoundError", "PermissionError", "ApiError")
TAIL = 2**15  # bytes at the end of a log, among which reasons and warnings are looked for


def headline(text: str, targets: Sequence[str] = ()) -> str:
    """The one line that names a failure.

    Args:
        text: what Snakemake prints of an error: class and place, message, and maybe a stack.
        targets: names that can be asked for, to suggest the nearest one.
    """
    lines = [line for line in text.splitlines() if line.strip()] or ["an error without a message"]
    if lines[0].startswith("Traceback (most recent call last)"):
        ends = [number for number, line in enumerate(lines) if _CLASS.match(line)]
        lines = lines[ends[-1] :] if ends else lines[-1:]
    elif _PLACE.match(lines[0]) and len(lines) > 1:
        lines = lines[1:]
    while lines[0].strip().endswith("Error:") and lines[1:] and lines[1].startswith(" "):  # of a function of a rule
        lines = lines[1:]
    first = _without_class(lines[0].strip())
    if len(lines) > 1 and _CLASS.match(lines[1]):  # what was done, and why that failed
        first = f"{first.rstrip('.:')}: {_without_class(lines[1])}"
    if "Directory cannot be locked" in text:
        return (
            "this folder is locked: wait for the call at work here, or end it with Ctrl-C; "
            "if it was killed, `snakemake --unlock` and the same line again"
        )
    known = f" Targets: {', '.join(sorted(targets))}, or a file below results/" if targets else ""
    if first.startswith("Target rules may not contain wildcards"):
        return f"not a target: this rule makes a file for each table or run.{known}"
    if missing := re.match(r"No rule to produce (.+?) \(if you use input functions", first):
        near = difflib.get_close_matches(missing[1], targets, n=1, cutoff=0.5)
        return f"no target {missing[1]!r}{f', did you mean {near[0]!r}?' if near else '.'}{known}"
    if lacking := re.match(r"Missing input files for rule (\w+):", first):
        files = [line.strip() for line in lines[1:] if line.startswith("        ")]
        return f"{', '.join(files)}: does not exist, no rule makes it, and rule {lacking[1]} needs it"
    return re.sub(r"\[Errno \d+\] ", "", first)


def reason_of(log: str) -> str:
    """The error at the end of a job's log; empty if there is none."""
    ends = [line for line in tail(log).splitlines() if _CLASS.match(line)]
    return _without_class(ends[-1]) if ends else ""


def warnings_in(log: str) -> list[str]:
    """Lines at the end of a log that begin with ``warning:``, without this word."""
    lines = tail(log).splitlines()
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith("warning:")]


def tail(log: str) -> str:
    """The end of a file, empty if it cannot be read."""
    try:
        with Path(log).open("rb") as stream:
            stream.seek(max(0, Path(log).stat().st_size - TAIL))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def _without_class(line: str) -> str:
    named = _CLASS.match(line)
    message = line[named.end() :].strip() if named else ""
    return message if named and message and named["kind"] in _FOR_USERS else line
