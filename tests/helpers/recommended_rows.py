"""Rows of a recommendation, as measurements would give them."""

import numpy as np

from lookalike.app.own.recommend.verdict import Row


def row(label, mean, *, trained=True, structural=False, seeds=3, classes=20, spread=1.0, network="net", **costs):
    """A row whose classes lie around a mean R@1 and whose MAP@R is half of it.

    Classes differ in the same way in every row; what spreads is a row's own.
    """
    common = np.random.default_rng(0).normal(0, 10, classes)
    own = np.random.default_rng(sum(label.encode())).normal(0, spread, (seeds if trained else 1, classes))
    own -= own.mean()
    values = mean + common - common.mean() + own
    costs = {"query_ms": 10.0, "training_s": 120.0 if trained else None} | costs
    return Row(
        label,
        network,
        trained=trained,
        structural=structural,
        of_classes={"R@1": values, "MAP@R": values / 2},
        queries=np.full(classes, 30.0),
        **costs,
    )


def untrained(mean=50.0, **options):
    return row("untrained", mean, trained=False, **options)


def mapped(mean=53.0, **options):
    return row("RCA", mean, trained=False, map="rca", **options)


def matched(mean=49.0, **options):
    return row("untrained + structural matching", mean, trained=False, structural=True, **options)
