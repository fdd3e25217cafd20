"""Two recipes that are compared on a data set: the differences of their settings, and those not under test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lookalike.workflow.settings.layers import Tree, flat

if TYPE_CHECKING:
    from lookalike.workflow.plan.plan import Plan

# Rates are chosen for each kind, or are a paper's own; what is measured between epochs moves nothing.
OF_EACH = ("train.optimiser.lr", "train.budget.metrics")


class Compared(NamedTuple):
    """Two recipes on a data set, with all that they may differ in: dotted keys of settings or of sections."""

    changed: str
    baseline: str
    dataset: str
    under_test: Sequence[str]
    as_in_paper: Sequence[str] = ()
    labels: tuple[str, str] = ("", "")


def apart(changed: Tree, baseline: Tree) -> list[str]:
    """Dotted keys that differ in value, or that one side alone states."""
    ours, theirs = dict(flat(changed)), dict(flat(baseline))
    common = {key for key in ours.keys() & theirs.keys() if ours[key] == theirs[key]}
    return [key for key in {**ours, **theirs} if key not in common]


def untested(plan: Plan, pair: Compared) -> list[str]:
    """Dotted keys that differ, but neither are under test nor of each recipe."""
    sides = (plan.deciding(recipe, pair.dataset) for recipe in (pair.changed, pair.baseline))
    return outside(apart(*sides), (*pair.under_test, *OF_EACH))


def besides(plan: Plan, pair: Compared) -> list[str]:
    """Keys, beside those under test, in which the paper's own baseline differs here."""
    keys = untested(plan, pair)
    return [name for name in pair.as_in_paper if outside(keys, [name]) != keys]


def pair_notes(plan: Plan, pairs: Iterable[Compared]) -> list[str]:
    """Notes on rows whose baseline differs in more than the keys under test: as the paper's own does, and otherwise."""
    notes: dict[str, None] = {}
    for pair in pairs:
        changed, baseline = pair.labels
        if named := besides(plan, pair):
            more = " and ".join(named)
            notes[f"As in the paper, {changed} differs from {baseline} in {more} besides what is tested."] = None
        if unnamed := outside(untested(plan, pair), pair.as_in_paper):
            others = [key.removesuffix(".name") for key in unnamed if key.endswith(".name")]  # whose keys are their own
            more = ", ".join([*others, *outside(unnamed, others)])
            notes[f"{changed} differs from {baseline} in {more}, which its under_test does not name."] = None
    return list(notes)


def outside(keys: Iterable[str], named: Iterable[str]) -> list[str]:
    """Those of some dotted keys that neither stand among others nor below one of them."""
    stems = tuple(f"{each}." for each in named)
    return [key for key in keys if not f"{key}.".startswith(stems)]
