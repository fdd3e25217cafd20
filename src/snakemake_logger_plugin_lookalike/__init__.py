"""Show a call of this project in few lines, and read its command line as the person meant it.

Snakemake imports its plugins before it parses the command line. So targets behind list options are moved to its front
here (``--resources`` swallows every word after it), a call from a sub-folder becomes one of the project, and what its
surroundings lack is looked after. All of this only in projects whose default profile chooses this plugin as its logger.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

from lookalike.workflow.running.surroundings import prepare, require_plain, require_writable
from lookalike.workflow.settings.files import read_yaml
from snakemake_logger_plugin_lookalike.command_line import asking_project, has_snakefile, targets_first, values_of
from snakemake_logger_plugin_lookalike.handler import LogHandler

__all__ = ["LogHandler", "targets_first"]


def _prepare() -> None:
    program = Path(sys.argv[0])
    if program.name != "snakemake" and program.parts[-2:] != ("snakemake", "__main__.py"):
        return
    here = Path.cwd()
    root = asking_project(sys.argv[1:], here)
    if root is None:
        return
    arguments, only_asks = targets_first(sys.argv[1:]), bool({"-h", "--help", "-v", "--version"} & {*sys.argv})
    try:
        if not only_asks:
            require_plain(root.absolute())
        for line in prepare(root):
            print(line, file=sys.stderr)
        if not only_asks:
            require_writable(root)
            for name in values_of(("--configfile", "--configfiles"), arguments):
                read_yaml(Path(name))  # Snakemake says neither which file is broken nor where
    except ValueError as error:
        sys.exit(str(error))
    if not has_snakefile(here) and not {"-s", "-d"} & {word[:2] for word in arguments if not word.startswith("--")}:
        print(f"No Snakefile in here: working in {root}, from where targets are named.", file=sys.stderr)
        arguments += ["--snakefile", str(root / "Snakefile"), "--directory", str(root)]
    sys.argv[1:] = arguments
    sys.excepthook = _one_line_for_an_interrupt


def _one_line_for_an_interrupt(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in one line that a call was stopped before its first job; afterwards the log handler says it."""
    if issubclass(kind, KeyboardInterrupt):
        print("\nStopped before any job had begun.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


_prepare()
