"""Let ``snakemake --cores all --resources gpu=1 tables`` mean what it says.

Snakemake's list options (``--resources``, ``--config``, ``--configfile``) swallow every word after them, so a target at
the end of the line is taken for a resource and the call ends with a traceback. Snakemake imports its plugins before it
parses the command line; being one is the only hook that early. Targets are moved to the front, where Snakemake itself
accepts them; a line it already accepts is left alone. This is no log handler: ``LogHandler`` is here because the
plugin interface asks for one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase

# What a word of each list option looks like to Snakemake; anything else behind it is a target.
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w-]*=")
_FILE = re.compile(r".*\.(ya?ml|json)$")
OWN_WORDS = {
    "--resources": _ASSIGNMENT,
    "--res": _ASSIGNMENT,
    "--config": _ASSIGNMENT,
    "-C": _ASSIGNMENT,
    "--configfile": _FILE,
    "--configfiles": _FILE,
}


def targets_first(arguments: list[str]) -> list[str]:
    """Return the command line with the targets that a list option would swallow moved to its front."""
    kept: list[str] = []
    targets: list[str] = []
    own_words = None
    for position, word in enumerate(arguments):
        if word == "--":  # Snakemake knows by itself what follows
            return targets + kept + arguments[position:]
        if word.startswith("-"):
            own_words = OWN_WORDS.get(word)
        elif own_words is not None and not own_words.match(word):
            targets.append(word)
            continue
        kept.append(word)
    return targets + kept


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """Asked for by the plugin interface, never chosen."""


if Path(sys.argv[0]).name in ("snakemake", "__main__.py"):
    sys.argv[1:] = targets_first(sys.argv[1:])
