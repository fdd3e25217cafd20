"""Two lists of runs beside each other: pairs of data sets, then of seeds, then what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from lookalike.command.compare.runs import Run
from lookalike.statistics.pairs import Difference, paired_difference

ABSENT = "-"
LEFT_OUT = ("seed",)  # which the heading shows


@dataclass(frozen=True)
class Pairs:
    """Runs of two sides that are compared seed by seed.

    Attributes:
        first: runs of one side, one per seed.
        second: runs of the other side, in the same order.
        alone: seeds that only one side has, which are left out.
    """

    first: list[Run]
    second: list[Run]
    alone: list[int]


def pairs(first: Sequence[Run], second: Sequence[Run]) -> Iterator[Pairs]:
    """Runs of the same data set and seed; of single data sets or single seeds whatever they are.

    Raises:
        ValueError: if nothing belongs together.
    """
    of_first, of_second = _by_dataset(first), _by_dataset(second)
    common = [(name, name) for name in of_first if name in of_second]
    if not common and len(of_first) == len(of_second) == 1:
        common = [(next(iter(of_first)), next(iter(of_second)))]
    if not common:
        raise ValueError(f"no data set in common: {', '.join(of_first)} and {', '.join(of_second)}")
    for one, other in common:
        yield _over_seeds(of_first[one], of_second[other])


def differing(first: Sequence[Mapping[str, str]], second: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, str]]:
    """Values of both sides by key, each side's different ones beside each other; equal ones too."""
    keys = dict.fromkeys(key for values in (*first, *second) for key in values if key not in LEFT_OUT)
    return {key: (_values(first, key), _values(second, key)) for key in keys}


def metric_differences(paired: Pairs, checkpoint: str) -> dict[str, tuple[float, float, Difference]]:
    """Means of both sides and the second minus the first seed by seed, for every metric that all runs have."""
    first, second = _scores(paired, checkpoint)
    names = [name for name in first[0] if all(name in scores for scores in (*first, *second))]
    differences = {}
    for name in sorted(names, key=_in_order):
        one, other = ([scores[name] for scores in side] for side in (first, second))
        differences[name] = fmean(one), fmean(other), paired_difference(other, one)
    return differences


def metrics_of_one(paired: Pairs, checkpoint: str) -> tuple[list[str], list[str]]:
    """Metrics that only the first side has, and those that only the second has."""
    first, second = ({name for scores in side for name in scores} for side in _scores(paired, checkpoint))
    return sorted(first - second, key=_in_order), sorted(second - first, key=_in_order)


def _scores(paired: Pairs, checkpoint: str) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    first, second = ([run.metrics[checkpoint] for run in side] for side in (paired.first, paired.second))
    return first, second


def _by_dataset(runs: Sequence[Run]) -> dict[str, dict[int, Run]]:
    by_dataset: dict[str, dict[int, Run]] = {}
    for run in runs:
        by_dataset.setdefault(run.dataset, {})[run.seed] = run
    return by_dataset


def _over_seeds(first: Mapping[int, Run], second: Mapping[int, Run]) -> Pairs:
    seeds = sorted(first.keys() & second.keys())
    if seeds:
        alone = sorted(first.keys() ^ second.keys())
        return Pairs([first[seed] for seed in seeds], [second[seed] for seed in seeds], alone)
    if len(first) == len(second) == 1:
        return Pairs(list(first.values()), list(second.values()), [])
    raise ValueError(f"no seed in common: {', '.join(map(str, first))} and {', '.join(map(str, second))}")


def _values(side: Sequence[Mapping[str, str]], key: str) -> str:
    return " | ".join(dict.fromkeys(values.get(key, ABSENT) for values in side))


def _in_order(name: str) -> tuple[str, int]:
    """``R@2`` before ``R@10``."""
    word, _, number = name.partition("@")
    return word, int(number) if number.isdigit() else 0
