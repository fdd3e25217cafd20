"""Say in one line what Snakemake and failing jobs say in many."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

import yaml

# How Python, and Snakemake after it, begins the line with an error.
_CLASS = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<kind>[A-Za-z_]\w*(?:Error|Exception|Interrupt)):(?: |$)")
_PLACE = re.compile(r'^[A-Za-z_]\w*(?: in rule \w+)?(?: in file ".*?", line \d+)?[:.]$')
# Errors whose message is written for users; of any other one its class says more than its message.
_FOR_USERS = ("ValueError", "WorkflowError", "OSError", "FileNotFoundError", "PermissionError", "ApiError")
_NOTED = re.compile(r"^\d{4}[-/]\d\d[-/]\d\d .*\bINFO\b")  # MLflow and its database
_BROKEN_CONFIG = "Config file is not valid JSON or YAML"


def headline(text: str, *, targets: Iterable[str] = (), config_files: Iterable[str] = ()) -> str:
    """The one line that says what went wrong.

    Args:
        text: what Snakemake prints of an error: class and place, message, and maybe a stack.
        targets: names that can be asked for, to suggest the nearest one.
        config_files: files behind ``--configfile``, to say where one is broken.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "an error without a message"
    if lines[0].startswith("Traceback (most recent call last)"):
        lines = _after_the_last_stack(lines)
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
    if missing := re.match(r"No rule to produce (.+?) \(if you use input functions", first):
        return _no_rule(missing.group(1), list(targets))
    if lacking := re.match(r"Missing input files for rule (\w+):", first):
        files = [line.strip() for line in lines[1:] if line.startswith("        ")]
        return f"{', '.join(files)}: does not exist, no rule makes it, and rule {lacking.group(1)} needs it"
    if first.startswith(_BROKEN_CONFIG):
        return _broken(config_files) or first
    if absent := re.match(r"\[Errno 2\] No such file or directory: '(.+)'", first):
        return _absent(absent.group(1))
    return re.sub(r"\[Errno \d+\] ", "", first)


def reason_of(log: Path) -> str:
    """What the end of a job's log says of its failure; empty if that says nothing."""
    try:
        lines = [line for line in _tail(log).splitlines() if line.strip()]
    except OSError:
        return ""
    ends = [line for line in lines if _CLASS.match(line)]
    return _without_class(ends[-1]) if ends else ""


def last_line(log: Path) -> str:
    """Last line that a job has written to its log, but for what libraries note there; empty if there is none."""
    try:
        lines = _tail(log).splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip() and not _NOTED.match(line)), "")


def warnings_in(log: Path) -> list[str]:
    """Lines at the end of a log that begin with ``warning:``, without this word."""
    try:
        lines = _tail(log).splitlines()
    except OSError:
        return []
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith("warning:")]


def _tail(log: Path, size: int = 2**15) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - size))
        return stream.read().decode(errors="replace")


def _without_class(line: str) -> str:
    named = _CLASS.match(line)
    if named is None:
        return line
    message = line[named.end() :].strip()
    return message if message and named.group("kind") in _FOR_USERS else line


def _after_the_last_stack(lines: list[str]) -> list[str]:
    ends = [number for number, line in enumerate(lines) if _CLASS.match(line)]
    return lines[ends[-1] :] if ends else lines[-1:]


def _no_rule(target: str, targets: list[str]) -> str:
    near = difflib.get_close_matches(target, targets, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]!r}?" if near else "."
    known = f" Targets: {', '.join(sorted(targets))}, or a file below results/" if targets else ""
    return f"no target {target!r}{hint}{known}"


def _absent(name: str) -> str:
    near = difflib.get_close_matches(
        Path(name).name, [path.name for path in Path(name).parent.glob(f"*{Path(name).suffix}")], n=1
    )
    return f"{name} does not exist{f', did you mean {str(Path(name).with_name(near[0]))!r}?' if near else ''}"


def _broken(config_files: Iterable[str]) -> str:
    for name in config_files:
        try:
            yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f", line {mark.line + 1}" if mark else ""
            return f"{name}{line}: is no valid YAML, {error.problem or error.context}"
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            return f"{name}: is no valid YAML, {' '.join(str(error).split())}"
    return ""
