"""Gain of training in R@1 over a start, as it is or after relevant component analysis (RCA)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lookalike.workflow.report.differences import differences, values
from lookalike.workflow.report.statistics.claim import PRIMARY
from lookalike.workflow.report.statistics.crossed import Estimate, variances
from lookalike.workflow.report.statistics.decisions import RATES, decisions, margin_of
from lookalike.workflow.report.statistics.moderated import estimated_prior, moderated
from lookalike.workflow.report.statistics.verdict import Verdict


class Trained(NamedTuple):
    """A recipe on a data set; those of a data set and network tell of each other's seeds."""

    dataset: str
    network: str
    recipe: str


class Gain(NamedTuple):
    """R@1 of the start in percent, and the gain of training over it in points."""

    start: float
    added: Estimate


class OverRCA(NamedTuple):
    """R@1 of the start after RCA in percent, and the gain of training over it in points, with interval and verdict."""

    start: float
    difference: float
    low: float
    high: float
    verdict: Verdict


Files = Mapping[Trained, Mapping[int, tuple[str, str]]]  # by seed metrics of a recipe, and of its start


def gains(files: Files) -> dict[Trained, Gain]:
    """R@1 of each start, and the gain of training over it.

    How much seeds vary is told by all recipes of a data set and network, as it is by the rows of a metric. Starts that
    reach the same are one.

    Raises:
        ValueError: as `lookalike.workflow.report.differences.differences`.
    """
    found = {}
    for pool in dict.fromkeys(each[:2] for each in files):
        own = [each for each in files if each[:2] == pool]
        told, starts = [], []
        for each in own:
            after, before = zip(*files[each].values(), strict=True)
            gain = differences(after, before, PRIMARY, list(files[each]))
            told.append(variances(gain.differences, gain.weights))
            starts.append(values(before, PRIMARY))
        prior = estimated_prior(told, [(each.recipe, str(start)) for each, start in zip(own, starts, strict=True)])
        for each, variance, start in zip(own, told, starts, strict=True):
            found[each] = Gain(float(start.mean()), moderated(variance, prior))
    return found


def over_rca(files: Files) -> dict[Trained, OverRCA]:
    """Trained recipes beside their starts after RCA, all decided together at a single look.

    Raises:
        ValueError: as `gains`.
    """
    found = gains(files)
    decided = decisions([each.added for each in found.values()], [margin_of(PRIMARY)] * len(found), sum(RATES))
    return {
        trained: OverRCA(each.start, each.added.mean, told.low, told.high, told.verdict)
        for (trained, each), told in zip(found.items(), decided, strict=True)
    }
