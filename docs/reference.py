"""The reference, from the code itself: commands, keys of files, losses and methods.

``python docs/reference.py`` writes ``docs/reference.md``; ``--check`` says whether it is that of today.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch import nn

from lookalike.app.command import parser
from lookalike.losses import LOSSES, arguments_of
from lookalike.losses.base import BatchLoss
from lookalike.methods import METHODS
from lookalike.methods.method import ANY_LOSS
from lookalike.workflow.plan.checks import SUPPLIED, check_recipe, losses_of
from lookalike.workflow.plan.recipes import Terms, read_recipes, sections_on
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import read_yaml, yaml_value
from lookalike.workflow.settings.model import Model
from lookalike.workflow.settings.recipes import Recipe, RecipeEntry, Train
from lookalike.workflow.settings.scales import Scale
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

REQUIRED = inspect.Parameter.empty
SECTION = re.compile(r"^(Args|Attributes|Differs|Raises|Returns|Source): *", re.MULTILINE)
# A training with regions compares their mean, whatever the default of an embedder that was trained otherwise.
SET_BY_LEARNERS = {"diml": {"global_vector": "locations"}}
SYMBOLS = """\
- `a`, `p`, `n`: anchor, positive and negative. `x`: an embedding as it is, or an item. `c`: a class's vector.
- `s`, `d`: cosine similarity and Euclidean distance of unit vectors. `P_i`: the positives of i.
- `( )+`: the positive part. `[ ]`: 1 where it is true. `B`: pictures of a batch. `c_y`: the vector of x's own class.
- Options have their defaults; a name alone is required. `miner: null` takes all tuples of a batch.
- *Differs*: from the source, or from pytorch-metric-learning, the library.

"""


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


def losses(method: str) -> str:
    """Losses that a method can be trained with: source and recipe of each, then formula, options and departures."""
    of_method = METHODS[method]
    recipes = _first_recipes(lambda train: (METHODS[train.method.name].losses, train.loss and train.loss.name))
    rows, each = [], ""
    for name, path in losses_of(method).items():
        said = sections(_definition(path))
        rows.append((f"`{name}`", said.get("Source", ""), recipes.get((of_method.losses, name), "")))
        owner = "" if of_method.losses == ANY_LOSS else f" of `{method}`"
        options = _options(path, *of_method.loss_options) | _mining(_definition(path))
        stated = [key if value is REQUIRED else f"{key}: {yaml_value(value)}" for key, value in options.items()]
        each += f"\n#### Loss `{name}`{owner}\n\n{said['']}\n\n"
        each += f"- Options: {', '.join(f'`{option}`' for option in stated if option != 'kind')}\n"
        each += f"- Differs: {said['Differs']}\n" if "Differs" in said else ""
    return table(("`train.loss.name`", "source", "recipe"), rows) + each


def methods() -> str:
    """All methods, with their comparisons and representations, then each by itself."""
    recipes = _first_recipes(lambda train: train.method.name)
    rows = [
        (
            f"`{name}`",
            ", ".join(f"`{each}`" for each in method.scorings),
            ", ".join(f"`{each}`" for each in method.representations),
            recipes.get(name, ""),
        )
        for name, method in METHODS.items()
    ]
    header = ("`train.method.name`", "`evaluate.scoring`", "`embed.representation`", "recipe")
    return table(header, rows) + "".join(f"\n### Method `{name}`\n\n{_method(name)}" for name in METHODS)


def _method(name: str) -> str:
    """Formula, source, options and losses of a method."""
    method = METHODS[name]
    said = sections(_definition(method.learner))
    text = f"{said['']}\n\nSource: {said.get('Source', '')}\n"
    if defaults := _options(*method.options) | SET_BY_LEARNERS.get(name, {}):
        meanings = {key: words for path in method.options for key, words in _meanings(_definition(path)).items()}
        rows = [(f"`{key}`", f"`{yaml_value(value)}`", meanings.get(key, "")) for key, value in defaults.items()]
        text += f"\n{table(('`train.method`', 'default', 'meaning'), rows)}"
    if method.losses != ANY_LOSS:
        return f"{text}\n{losses(name)}"
    refused = ", ".join(f"`{each}`" for each in sorted(LOSSES.keys() - losses_of(name).keys()))
    return f"{text}\nLosses: [all](#losses){f' but {refused}' if refused else ''}.\n"


def sections(definition: Any) -> dict[str, str]:
    """A docstring by its sections, as Markdown; the text before them has the empty name."""
    text = re.sub(r":\w+:(?=`)", "", inspect.getdoc(definition) or "").replace("``", "`")
    names, parts = SECTION.findall(text), SECTION.split(text)[::2]
    # A paragraph in one line: in Markdown the minus at the start of a formula's second line would begin a list.
    return {name: re.sub(r"(?<=\S)\n(?=\S)", " ", part).strip() for name, part in zip(("", *names), parts, strict=True)}


def _meanings(definition: Any) -> dict[str, str]:
    """Meanings of arguments, as a docstring has them."""
    arguments = sections(definition).get("Args", "")
    return dict(re.findall(r"^ *(\w+): (.*?)(?=^ *\w+: |\Z)", arguments, re.MULTILINE | re.DOTALL))


def _options(*paths: str) -> dict[str, Any]:
    """Options of definitions with their defaults, `REQUIRED` for those without one."""
    given = [each for path in paths for each in inspect.signature(_definition(path)).parameters.values()]
    return {each.name: each.default for each in given if each.kind != each.VAR_KEYWORD and each.name not in SUPPLIED}


def _mining(loss: type[nn.Module]) -> dict[str, Any]:
    """The miner of a loss that mines, and options of that miner."""
    if not issubclass(loss, BatchLoss) or "miner" not in arguments_of(loss):
        return {}
    miner, parameters = loss.mining
    return {"miner": miner} | ({"miner_parameters": dict(parameters)} if parameters else {})


def _definition(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _first_recipes(kind: Callable[[Train], Any]) -> dict[Any, str]:
    """By kind of training the first recipe of it, as a link to its file; those of papers come first."""
    links: dict[Any, str] = {}
    for name, stated in read_recipes().items():
        if stated.paper != "fidelity":
            train = check_recipe(sections_on(stated, None, Terms()), name).train
            links.setdefault(kind(train), f"[`{name}`](../params/recipes/{stated.paper}.yaml)")
    return links


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
        "Losses": SYMBOLS + losses("embedder"),
        "Methods": methods(),
    }
    return INTRODUCTION + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE}: older; python docs/reference.py writes it"
        )
    PAGE.write_text(page(), encoding="utf-8")
