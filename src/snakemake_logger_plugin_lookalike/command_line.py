"""Targets of a call of Snakemake, and its command line as the person meant it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")
PROFILE = "profiles/default/config.yaml"

# What a word of each list option looks like to Snakemake; anything else behind it is a target.
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w-]*=")
_FILE = re.compile(r"(?!results/).*\.(ya?ml|json)$")  # metrics are JSON, too, and can be asked for
OWN_WORDS = {
    **dict.fromkeys(("--resources", "--res", "--config", "-C"), _ASSIGNMENT),
    **dict.fromkeys(("--configfile", "--configfiles"), _FILE),
}
_RULE = re.compile(r"^\s*rule (?=\w+:)", re.MULTILINE)


def targets_first(arguments: list[str]) -> list[str]:
    """The command line with the targets that a list option would swallow moved to its front."""
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


def asking_project(arguments: list[str], here: Path) -> Path | None:
    """Folder of the project that a call is for; ``None`` if its default profile does not choose this plugin.

    It is the folder of the Snakefile that is named, else the nearest one with a Snakefile, from ``here`` upwards.
    """
    if named := values_of(("--snakefile", "-s"), arguments):
        root: Path | None = (here / named[0]).parent
    else:
        start = here.joinpath(*values_of(("--directory", "-d"), arguments)[:1])
        root = next((folder for folder in (start, *start.parents) if has_snakefile(folder)), None)
    return root if root is not None and _asks(root) else None


def has_snakefile(folder: Path) -> bool:
    """Whether Snakemake would find its file in a folder."""
    return any((folder / name).is_file() for name in SNAKEFILES)


def values_of(options: Sequence[str], arguments: list[str]) -> list[str]:
    """Words that stand behind some options."""
    values: list[str] = []
    behind = False
    for word in arguments:
        if word.startswith("-"):
            option, equals, value = word.partition("=")
            behind = option in options
            values += [value] if behind and equals else []
        elif behind:
            values.append(word)
    return values


def targets_of(root: Path) -> list[str]:
    """Names of the rules of a project that can be asked for: those whose message names no wildcard."""
    files = [root / "Snakefile", *sorted((root / "workflow" / "rules").glob("*.smk"))]
    rules = [block for file in files if file.is_file() for block in _RULE.split(file.read_text(encoding="utf-8"))[1:]]
    return [block.partition(":")[0] for block in rules if "{wildcards." not in block]


def _asks(root: Path) -> bool:
    try:
        profile: Any = yaml.safe_load((root / PROFILE).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return False
    chosen = profile.get("logger") if isinstance(profile, dict) else None
    return "lookalike" in ([chosen] if isinstance(chosen, str) else chosen or [])
