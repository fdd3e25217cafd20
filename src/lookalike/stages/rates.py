"""Choose the rates of trunk and head of each kind of recipe among their trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lookalike.files import replacing
from lookalike.plan.rates import METRIC, Kind, Trial, choose
from lookalike.settings.scales import RateTrials


def rates(trials: Sequence[Sequence[Any]], asked: RateTrials, *, histories: Sequence[str], output: str) -> None:
    """Write all trials with their scores, and which pair of rates each kind of recipe takes.

    Args:
        trials: as `lookalike.plan.rates.trials` gives them.
        asked: key ``rates`` of the scale.
        histories: of the trials, all seeds of the first, then of the next; a trial counts by its best epoch.
        output: CSV to write.

    Raises:
        ValueError: if a history has no number, naming it.
    """
    seeds = len(asked.seeds)
    reached = [_best(file) for file in histories]
    scores = [sum(reached[start : start + seeds]) / seeds for start in range(0, len(reached), seeds)]
    tried = [Trial(Kind(*kind), *others) for kind, *others in trials]
    with replacing(output) as path:
        choose(tried, scores, asked.grid, seeds).to_csv(path, index=False, float_format="%.6g")


def _best(history: str) -> float:
    best = pd.read_csv(history)[METRIC].max()
    if pd.isna(best):
        raise ValueError(f"{history}: no epoch measured {METRIC}; the trial's budget.evaluate_every leaves none")
    return float(best)
