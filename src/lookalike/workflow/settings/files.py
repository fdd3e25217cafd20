"""Read the YAML files below ``params/``."""

from __future__ import annotations

import difflib
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lookalike.base.checks import require_utf8
from lookalike.base.paths import project_root
from lookalike.base.text import in_yaml
from lookalike.workflow.settings.layers import Tree, copied
from lookalike.workflow.settings.model import Kind, checked, checked_entries


class _Loader(yaml.CSafeLoader):
    """YAML without silent losses: a duplicate key is refused, ``1e-5`` is a number, ``no`` is not false."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Tree:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = "<<" if key_node.tag.endswith(":merge") else loader.construct_object(key_node, deep=True)
        if key is None or isinstance(key, bool):
            raise ValueError(f"{_line(key_node)}: {key_node.value!r} is {in_yaml(key)} to YAML; write it in quotes")
        if key in seen:
            raise ValueError(f"{_line(key_node)}: duplicate key {key!r}")
        seen.add(key)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """Value of a word without quotes; a ``ValueError`` for one that YAML takes for something else than it seems."""
    kind = node.tag.rpartition(":")[2]
    value = yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    if _AS_IT_SEEMS[kind].fullmatch(node.value):
        return value
    said = "a date" if kind == "timestamp" else in_yaml(value)
    plain = f", or {said}" if _AS_IT_SEEMS[kind].fullmatch(said) else ""
    raise ValueError(f"{_line(node)}: {node.value!r} is {said} to YAML; write it in quotes{plain}")


def _line(node: yaml.Node) -> str:
    return f"{node.start_mark.name}, line {node.start_mark.line + 1}"


# By kind the words that YAML takes for what they seem to be; others are yes, 010, 1_000, 12:30, .nan and 2024-01-01.
_AS_IT_SEEMS = {
    "null": re.compile("(null)?", re.IGNORECASE),
    "bool": re.compile("true|false", re.IGNORECASE),
    "int": re.compile(r"[-+]?(0|[1-9]\d*)"),
    "float": re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"),
    "timestamp": re.compile("(?!)"),
}
for _kind in _AS_IT_SEEMS:
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _scalar)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


class _Dumper(yaml.SafeDumper):
    """YAML as `_Loader` reads it: text that would be anything else to it stands in quotes."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    require_utf8(value)
    # Only in double quotes does PyYAML write each sign that cannot be seen so that it reads that sign again.
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')


_Dumper.add_representer(str, _text)
# YAML 1.1 asks for a dot in floats, so that 1e-5 would arrive as a string.
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
    )


@cache
def _read(path: Path) -> Tree:
    try:
        with path.open(encoding="utf-8") as stream:
            content = yaml.load(stream, _Loader)
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist{_others(path)}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{path}{line}: is no valid YAML, {error.problem}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a mapping, it holds {type(content).__name__}")
    return content


def read_yaml(path: Path) -> Tree:
    """Content of a YAML file without a schema, such as a user's overlay, of which no key may stand twice.

    Raises:
        ValueError: naming file and line, if the file is missing, broken, holds no mapping or a key twice.
    """
    return copied(_read(path))


def yaml_text(tree: Tree) -> str:
    """Settings as a file that `read_yaml` reads as they are.

    Raises:
        ValueError: naming the first text that is no UTF-8, as a name of a folder may be.
    """
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def yaml_value(value: Any) -> str:
    """A value in one line of YAML, as `yaml_text` has it."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.removesuffix("\n").removesuffix("\n...")


def read(path: Path | str, kind: type[Kind]) -> Kind:
    """A YAML file as a model.

    Args:
        path: relative to the project's root, or absolute.
        kind: the model.

    Raises:
        ValueError: naming file, key and the nearest known key, if the file is missing, broken or not of this kind.
    """
    return checked(kind, _read(project_root() / path), str(path))


def read_entries(path: Path | str, kind: type[Kind]) -> dict[str, Kind]:
    """A YAML file of named entries, each as a model.

    Raises:
        ValueError: as `read`, and for a name that is none.
    """
    return checked_entries(kind, _read(project_root() / path), str(path))


def dataset_names() -> list[str]:
    """Names of all files in ``params/datasets``."""
    return sorted(path.stem for path in (project_root() / "params" / "datasets").glob("*.yaml"))


def _others(path: Path) -> str:
    """The files that are there, the nearest first; where an overlay has the name of a scale, how it is given."""
    overlay = path.parent.parent / "overlays" / path.name
    if path.parent.name == "scales" and overlay.is_file():
        return f"; {path.stem} is an overlay, which --configfile params/overlays/{path.name} gives"
    names = sorted(file.stem for file in path.parent.glob("*.yaml"))
    near = difflib.get_close_matches(path.stem, names, n=1, cutoff=0)
    return f", did you mean {near[0]!r}? Known: {', '.join(names)}" if near else ""
