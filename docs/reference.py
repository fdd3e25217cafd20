"""The reference, from the code itself: commands, keys of files, losses and methods.

``python docs/reference.py`` writes ``docs/reference.md``; ``--check`` says whether it is that of today.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lookalike.app.command import parser
from lookalike.losses import LOSSES
from lookalike.methods import METHODS
from lookalike.workflow.plan.checks import SUPPLIED
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import read_yaml
from lookalike.workflow.settings.model import Model
from lookalike.workflow.settings.recipes import Recipe, RecipeEntry
from lookalike.workflow.settings.scales import Scale
from lookalike.workflow.settings.sources.code import constructor_arguments
from lookalike.workflow.settings.tables import Sweep, Table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference.md"
INTRODUCTION = """\
# Reference

Made by `python docs/reference.py` of the code itself: [commands](#commands), [keys of files](#keys-of-files),
[losses](#losses), [methods](#methods). Targets of Snakemake: [targets.md](targets.md).
"""
FILES: dict[str, type[Model]] = {
    "A call": Configuration,
    "A scale": Scale,
    "A data set": Dataset,
    "A recipe": RecipeEntry,
    "Sections of a recipe": Recipe,
    "A table": Table,
    "A sweep": Sweep,
}
KINDS = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true` or `false`",
    "null": "`null`",
    "object": "mapping",
    "array": "list",
}


def cell(text: object) -> str:
    """Text as the cell of a table has it: in one line."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [header, tuple(":--" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines) + "\n"


def commands(group: argparse.ArgumentParser) -> Iterator[str]:
    """A section for each command, with its arguments."""
    for action in group._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands(each)
            return
    usage = " ".join(group.format_usage().removeprefix("usage: ").split())
    rows = [
        (f"`{', '.join(each.option_strings) or each.metavar or each.dest}`", each.help or "")
        for each in group._actions
        if "--help" not in each.option_strings
    ]
    example = re.sub("(?<=^Example: ).*", r"`\g<0>`", group.epilog or "")
    text = f"{_sentence(group.description or '')}\n\n`{usage}`\n\n{example}\n\n"
    yield f"### {group.prog}\n\n{text}{table(('argument', 'meaning'), rows)}"


def keys(kind: type[Model], shown: set[str], stated: Mapping[str, Any]) -> str:
    """A table of a model's keys, and one for each model below it that is not shown yet.

    Args:
        kind: the model.
        shown: names of models that are shown, to which it adds.
        stated: values that hold where a file of this kind says nothing, other than the model's own.
    """
    schema = kind.model_json_schema()
    parts = {name: each for name, each in schema.get("$defs", {}).items() if "properties" in each}
    new = {name: each for name, each in parts.items() if name not in shown}
    shown.update(parts)
    below = "".join(f"\n`{name}`: {_sentence(_said(each))}\n\n{_keys(each)}" for name, each in new.items())
    return _keys(schema, stated) + below


def _keys(schema: Mapping[str, Any], stated: Mapping[str, Any] = MappingProxyType({})) -> str:
    required = {*schema.get("required", [])} - stated.keys()
    defaults = {name: {"default": value} for name, value in stated.items()}
    rows = [
        (f"`{name}`", words(each), _default(each | defaults.get(name, {}), name in required), _said(each))
        for name, each in schema["properties"].items()
        if words(each)  # a scale's own, which a call hands on
    ]
    return table(("key", "value", "default", "meaning"), rows)


def words(schema: Mapping[str, Any]) -> str:
    """What a value may be."""
    for link in ("$ref", "$comment"):  # of which the second is a part of a section
        if link in schema:
            return f"`{schema[link].rpartition('/')[2]}`"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(words, schema[several])))
    kind = KINDS.get(str(schema.get("type")), "")
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {words(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{words(schema['additionalProperties'])} by name"
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    return kind if least is None else f"{kind}, {'above' if 'exclusiveMinimum' in schema else 'from'} {least}"


def losses() -> str:
    """All losses, with formula, options and source."""
    rows = []
    for name, loss in LOSSES.items():
        text = inspect.getdoc(loss) or ""
        source = re.search(r"Source: (.*?)(?:\n\n|$)", text, re.DOTALL)
        what = text.partition("\n\n")[0].partition("Source:")[0]
        rows.append((f"`{name}`", _options(loss), what, source[1] if source else ""))
    return table(("`train.loss.name`", "options", "what it is", "source"), rows)


def _options(definition: Any) -> str:
    given = inspect.signature(definition).parameters.values()
    named = [each for each in given if each.kind is not each.VAR_KEYWORD and each.name not in SUPPLIED]
    return ", ".join(f"`{each.name}{'' if each.default is each.empty else f'={each.default!r}'}`" for each in named)


def methods() -> str:
    """All methods, with what a recipe may do with them."""
    rows = [
        (
            f"`{name}`",
            ", ".join(f"`{key}`" for key in _of_method(method.options)),
            ", ".join(f"`{each}`" for each in method.scorings),
            ", ".join(f"`{each}`" for each in method.representations),
        )
        for name, method in METHODS.items()
    ]
    return table(("`train.method.name`", "options", "`evaluate.scoring`", "`embed.representation`"), rows)


def _of_method(definitions: tuple[str, ...]) -> list[str]:
    return sorted({key for each in definitions for key in constructor_arguments(each)} - SUPPLIED)


def _default(schema: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    value = schema.get("default")
    return "" if value in (None, "", [], {}) else f"`{value}`".lower() if isinstance(value, bool) else f"`{value}`"


def _said(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", ""))


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') or not text else '.'}"


def page() -> str:
    """The whole page."""
    shown: set[str] = set()
    stated = {Configuration: read_yaml(ROOT / "params" / "config.yaml")}
    files = "\n".join(
        f"### {title}\n\n{_sentence(inspect.getdoc(kind) or '')}\n\n{keys(kind, shown, stated.get(kind, {}))}"
        for title, kind in FILES.items()
    )
    sections = {
        "Commands": "\n".join(commands(parser())),
        "Keys of files": f"A name in place of a value is a mapping whose keys follow below.\n\n{files}",
        "Losses": losses(),
        "Methods": methods(),
    }
    return INTRODUCTION + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE}: older; python docs/reference.py writes it"
        )
    PAGE.write_text(page(), encoding="utf-8")
