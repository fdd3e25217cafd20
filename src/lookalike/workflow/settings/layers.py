"""Layers of settings: their order, and the layer that each value comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lookalike.base.files import json_text

Tree = dict[str, Any]  # what YAML can hold, keys of text


class Layer(NamedTuple):
    """Values to be laid over others.

    Attributes:
        origin: file and key that state them.
        values: a tree.
    """

    origin: str
    values: Tree


@dataclass(frozen=True)
class Stated:
    """A value with the layer that states it; equal values are equal, whoever states them."""

    value: Any
    origin: str = field(compare=False)


def merge(base: Tree, over: Tree) -> Tree:
    """Lay one tree of settings over another: mappings are merged, anything else replaces the former value.

    A mapping that chooses by ``name`` (a loss, a backbone, a sampler) belongs to that name: where ``over`` names
    another one, the values of the old one are dropped, so that no loss inherits the margin of a different loss.

    Both trees stay as they are; the result shares what it takes over unchanged, so copy it before you change it.
    """
    if "name" in over and over["name"] != base.get("name", over["name"]):
        return dict(over)
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def laid(layers: Iterable[Layer]) -> Tree:
    """All layers, each over those before it."""
    values: Tree = {}
    for layer in layers:
        values = merge(values, layer.values)
    return values


def stated(layers: Iterable[Layer]) -> Tree:
    """As `laid`, each value `Stated` with its origin."""
    return laid(Layer(layer.origin, _stated(layer.values, layer.origin)) for layer in layers)


def flat(tree: Tree, above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys with their values; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def copied(tree: Tree) -> Tree:
    """A copy of settings, all mappings and lists of its own; ``copy.deepcopy`` takes several times longer."""
    return {key: _copied(value) for key, value in tree.items()}


def canonical(settings: Any) -> str:
    """The same text for equal settings, whatever the order of their keys."""
    return json_text(settings, where="settings", sort_keys=True, default=str)


def settings_digest(settings: Any) -> str:
    """Name of settings in tables and MLflow: the first twelve digits of their SHA-256."""
    return hashlib.sha256(canonical(settings).encode()).hexdigest()[:12]


def _stated(tree: Tree, origin: str) -> Tree:
    return {
        key: _stated(value, origin) if isinstance(value, dict) and value else Stated(value, origin)
        for key, value in tree.items()
    }


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    return [_copied(each) for each in value] if isinstance(value, list) else value
