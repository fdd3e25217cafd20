"""Read, check and combine the YAML files below ``params/``."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from lookalike.checks import workflow_extra
from lookalike.files import json_text
from lookalike.paths import project_root
from lookalike.sources.kept import kept
from lookalike.text import in_yaml

Settings = dict[str, Any]
NAME = "^[a-z][a-z0-9_]*$"  # of what files and columns are named by


class _Loader(yaml.CSafeLoader):
    """YAML without silent losses: a duplicate key is refused, ``1e-5`` is a number, ``no`` is not false."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Settings:
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
# YAML 1.1 asks for a dot in floats, so that 1e-5 would arrive as a string.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@cache
def _read(path: Path) -> Settings:
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


def read_yaml(path: Path) -> Settings:
    """Content of a YAML file without a schema, such as a user's overlay, of which no key may stand twice.

    Raises:
        ValueError: naming file and line, if the file is missing, broken, holds no mapping or a key twice.
    """
    return copied(_read(path))


def read_overlay(paths: Sequence[Path]) -> Settings:
    """Content of the overlays that a command is given, each laid over those before it.

    Returns:
        Their keys, and as ``overlays`` the files: those of the project as its root has them, others absolute.

    Raises:
        ValueError: as `read_yaml`, and for a file with a key ``overlays`` of its own.
    """
    contents = [read_yaml(path.absolute()) for path in paths]
    overlay = contents[0] if contents else {}
    for content in contents[1:]:
        from snakemake.utils import update_config  # as a call does: to `merge` a ``name`` says whose other values are

        update_config(overlay, content)
    if "overlays" in overlay:
        raise ValueError(f"{', '.join(map(str, paths))}, overlays: files are given by --configfile; leave the key out")
    return {**overlay, "overlays": [_in_project(path.absolute()) for path in paths]} if paths else overlay


def configuration(scale: str | None, overlays: Sequence[Path]) -> Settings:
    """``params/config.yaml`` as a command is to read it: overlays over it, at a scale where one is named.

    Raises:
        ValueError: as `read` and `read_yaml`, and for a scale beside an overlay that is one.
    """
    config = merge(read("params/config.yaml", "config"), read_overlay(overlays))
    if scale and "name" in config:
        raise ValueError(f"--scale {scale}: the overlay is a scale of its own, {config['name']!r}; name one of the two")
    return {**config, "scale": scale} if scale else config


def read(path: Path | str, schema: str) -> Settings:
    """Content of a YAML file that follows a schema.

    Args:
        path: relative to the project's root, or absolute.
        schema: name of a file ``workflow/schemas/<schema>.schema.yaml``.

    Returns:
        A copy that the caller may change.

    Raises:
        ValueError: naming file, key and the nearest known key, if the file is missing, broken or against the schema.
    """
    content = copied(_read(project_root() / path))
    check(content, schema, str(path))
    return content


def dataset_names() -> list[str]:
    """Names of all files in ``params/datasets``."""
    return sorted(path.stem for path in (project_root() / "params" / "datasets").glob("*.yaml"))


def check(content: Mapping[str, Any], schema: str, source: str) -> None:
    """Compare settings with a schema.

    Raises:
        ValueError: naming ``source``, the key, and what would be right, for the first departure.
    """
    root = project_root()
    _require_library()
    question = f"follows {_schema_digest(root, schema)} {_digest_of(content)}"
    if kept(question, lambda: bool(_validator(root, schema).is_valid(content))):
        return
    from jsonschema.exceptions import best_match

    error = best_match(_validator(root, schema).iter_errors(content))
    where = ".".join(str(key) for key in error.absolute_path)
    raise ValueError(f"{source}{', ' if where else ''}{where}: {_explanation(error)}")


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Settings:
    """Lay one tree of settings over another: mappings are merged, anything else replaces what was there.

    A mapping that chooses by ``name`` (a loss, a backbone, a sampler) belongs to that name: where ``over`` names
    another one, the values of the old one are dropped, so that no loss inherits the margin of a different loss.

    Both trees stay as they are; the result shares what it takes over unchanged, so copy it before you change it.
    """
    if "name" in over and over["name"] != base.get("name", over["name"]):
        return dict(over)
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def copied(settings: Mapping[str, Any]) -> Settings:
    """A copy of what YAML can hold, all mappings and lists of its own; ``copy.deepcopy`` takes several times longer."""
    return {key: _copied(value) for key, value in settings.items()}


def canonical(settings: Any) -> str:
    """The same text for equal settings, whatever the order of their keys."""
    return json_text(settings, where="settings", sort_keys=True, default=str)


def settings_digest(settings: Any) -> str:
    """What tables and MLflow name settings by: the first twelve digits of their SHA-256."""
    return hashlib.sha256(canonical(settings).encode()).hexdigest()[:12]


def _in_project(path: Path) -> str:
    root = project_root()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    return [_copied(each) for each in value] if isinstance(value, list) else value


@cache
def _schema_digest(root: Path, schema: str) -> str:
    return _digest_of(_read(_schema_file(root, schema)))


def _digest_of(content: Any) -> str:
    """Of its form in Python, which tells the key 1 from the key "1", as schemas do."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _schema_file(root: Path, schema: str) -> Path:
    return root / "workflow" / "schemas" / f"{schema}.schema.yaml"


@cache
def _require_library() -> None:
    """Ask for the extra where it is missing, also for what is kept: a call says the same the second time."""
    if find_spec("jsonschema") is None:
        with workflow_extra():
            import jsonschema  # noqa: F401


@cache
def _validator(root: Path, schema: str) -> Any:
    """What checks settings against a schema of a project; it finds the schema's own definitions once."""
    with workflow_extra():  # 0.1 s that only a call with settings pays
        from jsonschema import Draft202012Validator

    return Draft202012Validator(_read(_schema_file(root, schema)))


def _others(path: Path) -> str:
    """The files that are there, the nearest first."""
    names = sorted(file.stem for file in path.parent.glob("*.yaml"))
    near = difflib.get_close_matches(path.stem, names, n=1, cutoff=0)
    return f", did you mean {near[0]!r}? Known: {', '.join(names)}" if near else ""


def _explanation(error: Any) -> str:
    """What is wrong and what would be right, for one error of jsonschema."""
    if error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(known), key=str)
        near = difflib.get_close_matches(str(unknown[0]), known, n=1, cutoff=0)
        return f"unknown key {unknown[0]!r}, did you mean {near[0]!r}? Known keys: {', '.join(known)}"
    if error.validator in ("oneOf", "anyOf") and all("required" in way for way in error.validator_value):
        ways = [way["required"] for way in error.validator_value]
        several = error.validator == "oneOf" and sum(all(key in error.instance for key in way) for way in ways) > 1
        right = " or ".join(" and ".join(map(repr, way)) for way in ways)
        return f"there must be {right}{', and not both' if several else ''}"
    if error.validator == "enum":
        known = [str(value) for value in error.validator_value]
        near = difflib.get_close_matches(str(error.instance), known, n=1, cutoff=0)
        return f"{error.instance!r} is not allowed, did you mean {near[0]!r}? Known: {', '.join(known)}"
    if error.validator == "uniqueItems":
        twice = next(value for value in error.instance if error.instance.count(value) > 1)
        return f"{twice!r} stands twice in {error.instance}, once is right"
    if error.validator == "contains":
        needed = error.validator_value["const"]
        return f"{error.instance} lacks {needed!r}, which must be there; {[needed, *error.instance]} has it"
    if error.validator == "type" and error.validator_value == "array":
        return f"{error.instance!r} is no list, [{error.instance}] is one"
    if error.validator == "type" and error.validator_value == "number" and _is_number(error.instance):
        return f"{error.instance!r} is text to YAML, as it has no dot; {float(error.instance):.1e} is a number"
    if error.validator == "type" and error.validator_value == "string" and not isinstance(error.instance, dict | list):
        kind = {type(None): "nothing", bool: "a truth value"}.get(type(error.instance), "a number")
        return f"{in_yaml(error.instance)} is {kind} to YAML; write it in quotes"
    if error.validator == "pattern" and error.validator_value == NAME:
        right = re.sub(r"[^a-z0-9]+", "_", str(error.instance).lower()).strip("_")
        example = f"; {right!r} is one" if re.match(NAME, right) else ""
        return f"{error.instance!r} is no name of small letters, digits and _, with a letter first{example}"
    return str(error.message)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value) is not None
