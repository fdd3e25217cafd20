"""Sweeps: recipes and a table made of every combination of the choices along some axes, from ``params/sweeps``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.checks import require_known
from lookalike.parameters import Settings, read
from lookalike.paths import project_root


@dataclass(frozen=True)
class Choice:
    """One value of one axis.

    Attributes:
        axis: name of the axis.
        value: the number of an axis of numbers, the name of any other choice.
        layer: what it lays over the recipe; it may be ``like`` a recipe, and ``where`` another axis has a certain value
            lay further values over that.
    """

    axis: str
    value: Any
    layer: Settings


@dataclass(frozen=True)
class Point:
    """One combination.

    Attributes:
        name: name of its recipe.
        at: axis to value.
        layers: layers of its recipe, as `lookalike.plan.recipes.read_recipes` gives them.
    """

    name: str
    at: dict[str, Any]
    layers: list[Settings]


@dataclass(frozen=True)
class Sweep:
    """A table whose rows are all combinations.

    Attributes:
        family: file of ``params/sweeps`` that defines it; a target builds all of one family.
        table: the sweep as an entry of ``params/tables``, with a row per point.
        points: all points, in the order of the rows.
        trivial: recipes of the rows of ``params/trivial.yaml`` below them.
    """

    family: str
    table: Settings
    points: tuple[Point, ...]
    trivial: tuple[Point, ...] = ()

    @property
    def every(self) -> tuple[Point, ...]:
        """Points and trivial ones."""
        return self.points + self.trivial


def read_sweeps(recipes: Mapping[str, Sequence[Settings]]) -> dict[str, Sweep]:
    """All sweeps by name.

    Args:
        recipes: layers of all recipes that sweeps may start from.

    Raises:
        ValueError: for a duplicate name, a recipe that does not exist, or a point whose recipe has the name of
            another; naming file, sweep and axis.
    """
    sweeps: dict[str, Sweep] = {}
    of_recipe = dict.fromkeys(recipes, "params/recipes")
    for path in sorted((project_root() / "params" / "sweeps").glob("*.yaml")):
        content = read(path.relative_to(project_root()), "sweeps")
        for name, values in content.items():
            if name in sweeps:
                raise ValueError(f"{path}: a sweep named {name!r} exists already; names are shared by all files")
            source = f"{path.relative_to(project_root())}, {name}"
            points = _points(name, values, recipes, source)
            for point in points:
                if point.name in of_recipe:
                    raise ValueError(
                        f"{source}: the recipe of {_label(point)} would be named {point.name!r}, as one of "
                        f"{of_recipe[point.name]} is; rename the sweep or the choice"
                    )
                of_recipe[point.name] = source
            rows = [{"label": _label(point), "recipe": point.name, "at": point.at} for point in points]
            table = {key: value for key, value in values.items() if key not in ("recipe", "axes")}
            sweeps[name] = Sweep(path.stem, {**table, "rows": rows}, points)
    return sweeps


def by_reason(refused: Iterable[tuple[Point, str]]) -> dict[str, list[str]]:
    """Refused points in words, by the reason; those that differ in the last axis only stand for each other."""
    points: dict[str, dict[str, list[str]]] = {}
    for point, reason in refused:
        *first, last = point.at.values()
        *others, leading = map(str, first or [last])
        words, joined = points.setdefault(reason, {}).setdefault(leading, []), " with ".join(reversed(others))
        if joined and joined not in words:
            words.append(joined)
    return {
        reason: [f"{leading} with {', '.join(words)}" if words else leading for leading, words in by_leading.items()]
        for reason, by_leading in points.items()
    }


def _points(name: str, values: Settings, recipes: Mapping[str, Sequence[Settings]], source: str) -> tuple[Point, ...]:
    start: Sequence[Settings] = []
    if "recipe" in values:
        require_known(f"{source}.recipe", values["recipe"], recipes)
        start = recipes[values["recipe"]]
    axes = [_choices(axis, entry) for axis, entry in values["axes"].items()]
    points = []
    for combination in itertools.product(*axes):
        by_axis = {choice.axis: choice.value for choice in combination}
        layers = list(start)
        for choice in combination:
            layer = dict(choice.layer)
            if (like := layer.pop("like", None)) is not None:
                require_known(f"{source}.axes.{choice.axis}.{choice.value}.like", like, recipes)
                if layers:
                    raise ValueError(
                        f"{source}.axes.{choice.axis}.{choice.value}.like: only the first axis chooses recipes, "
                        "and only where the sweep starts from none"
                    )
                layers += recipes[like]
            where = layer.pop("where", {})
            layers.append(layer)
            layers += [where[axis][value] for axis, value in by_axis.items() if value in where.get(axis, {})]
        recipe = "_".join([name, *(re.sub(r"[^a-z0-9]+", "_", str(value).lower()) for value in by_axis.values())])
        points.append(Point(recipe, by_axis, layers))
    return tuple(points)


def _choices(axis: str, entry: Settings) -> list[Choice]:
    if "key" in entry:
        return [Choice(axis, value, _nested(entry["key"], value)) for value in entry["values"]]
    return [Choice(axis, name, layer) for name, layer in entry.items()]


def _nested(key: str, value: Any) -> Settings:
    """``train.loss.lam`` and 0.5 as sections."""
    for part in reversed(key.split(".")):
        value = {part: value}
    nested: Settings = value
    return nested


def _label(point: Point) -> str:
    return ", ".join(
        f"{axis} = {value}" if isinstance(value, int | float) else str(value) for axis, value in point.at.items()
    )
