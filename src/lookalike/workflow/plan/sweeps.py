"""Sweeps: recipes and a table made of every combination of the choices along some axes, from ``params/sweeps``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lookalike.base.checks import require_known
from lookalike.base.paths import project_root
from lookalike.workflow.plan.recipes import StatedRecipe
from lookalike.workflow.settings import tables
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.layers import Layer, Tree
from lookalike.workflow.settings.tables import PlannedRow, PlannedTable


@dataclass(frozen=True)
class Choice:
    """One value of one axis.

    Attributes:
        axis: name of the axis.
        value: the number of an axis of numbers, the name of any other choice.
        stated: what it lays over the recipe; it may be ``like`` a recipe, and ``where`` another axis has a certain
            value lay further values over that.
    """

    axis: str
    value: Any
    stated: tables.Choice


@dataclass(frozen=True)
class Point:
    """One combination.

    Attributes:
        name: name of its recipe.
        at: axis to value.
        recipe: the recipe that it starts from, with what it lays over that.
    """

    name: str
    at: dict[str, Any]
    recipe: StatedRecipe


@dataclass(frozen=True)
class Sweep:
    """A table whose rows are all combinations.

    Attributes:
        family: file of ``params/sweeps`` that defines it; a target builds all of one family.
        table: with a row per point.
        points: all points, in the order of the rows.
        trivial: recipes of the rows of ``params/trivial.yaml`` below them.
    """

    family: str
    table: PlannedTable
    points: tuple[Point, ...]
    trivial: tuple[Point, ...] = ()

    @property
    def every(self) -> tuple[Point, ...]:
        """Points and trivial ones."""
        return self.points + self.trivial


def read_sweeps(recipes: Mapping[str, StatedRecipe]) -> dict[str, Sweep]:
    """All sweeps by name.

    Args:
        recipes: all that sweeps may start from.

    Raises:
        ValueError: for a duplicate name, a recipe that does not exist, or a point whose recipe has the name of
            another; naming file, sweep and axis.
    """
    sweeps: dict[str, Sweep] = {}
    of_recipe = dict.fromkeys(recipes, "params/recipes")
    for path in sorted((project_root() / "params" / "sweeps").glob("*.yaml")):
        for name, stated in read_entries(path.relative_to(project_root()), tables.Sweep).items():
            if name in sweeps:
                raise ValueError(f"{path}: a sweep named {name!r} exists already; names are shared by all files")
            source = f"{path.relative_to(project_root())}, {name}"
            points = _points(name, stated, recipes, source, path.stem)
            for point in points:
                if point.name in of_recipe:
                    raise ValueError(
                        f"{source}: the recipe of {_label(point)} would be named {point.name!r}, as one of "
                        f"{of_recipe[point.name]} is; rename the sweep or the choice"
                    )
                of_recipe[point.name] = source
            for label in stated.published:
                require_known(f"{source}.published", label, map(_label, points))
            rows = [
                PlannedRow(label=_label(point), recipe=point.name, at=point.at, prints=_stated_print(stated, point))
                for point in points
            ]
            table = stated.model_dump(exclude={"recipe", "axes", "published"}, exclude_unset=True)
            sweeps[name] = Sweep(path.stem, PlannedTable(**table, rows=rows), points)
    return sweeps


def _stated_print(sweep: tables.Sweep, point: Point) -> dict[str, tables.PrintedPoint]:
    printed = sweep.published.get(_label(point))
    return dict.fromkeys(sweep.datasets, printed) if printed else {}


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


def _points(
    name: str, sweep: tables.Sweep, recipes: Mapping[str, StatedRecipe], source: str, family: str
) -> tuple[Point, ...]:
    start = None
    if sweep.recipe is not None:
        require_known(f"{source}.recipe", sweep.recipe, recipes)
        start = recipes[sweep.recipe]
    axes = [_choices(axis, entry) for axis, entry in sweep.axes.items()]
    points = []
    for combination in itertools.product(*axes):
        by_axis = {choice.axis: choice.value for choice in combination}
        recipe, varied = start, list[Layer]()
        for choice in combination:
            where = f"{source}.axes.{choice.axis}.{choice.value}"
            if (like := choice.stated.like) is not None:
                require_known(f"{where}.like", like, recipes)
                if recipe or varied:
                    raise ValueError(
                        f"{where}.like: only the first axis chooses recipes, and only where the sweep starts from none"
                    )
                recipe = recipes[like]
            varied.append(Layer(where, choice.stated.dump()))
            for axis, layers in choice.stated.where.items():
                if axis in by_axis and by_axis[axis] in layers:
                    varied.append(Layer(f"{where}.where.{axis}.{by_axis[axis]}", layers[by_axis[axis]].dump()))
        named = "_".join([name, *(re.sub(r"[^a-z0-9]+", "_", str(value).lower()) for value in by_axis.values())])
        base = recipe or StatedRecipe(family, ())
        stated = replace(base, paper=family, layers=(*base.layers, *varied))
        points.append(Point(named, by_axis, stated))
    return tuple(points)


def _choices(axis: str, entry: tables.Values | dict[str, tables.Choice]) -> list[Choice]:
    if isinstance(entry, tables.Values):
        return [Choice(axis, value, tables.Choice(**_nested(entry.key, value))) for value in entry.values]
    return [Choice(axis, name, stated) for name, stated in entry.items()]


def _nested(key: str, value: Any) -> Tree:
    """``train.loss.lam`` and 0.5 as sections."""
    for part in reversed(key.split(".")):
        value = {part: value}
    nested: Tree = value
    return nested


def _label(point: Point) -> str:
    return ", ".join(
        f"{axis} = {value}" if isinstance(value, int | float) else str(value) for axis, value in point.at.items()
    )
