from __future__ import annotations

import numpy as np
import pytest

from lookalike.sampling.samplers import build_sampler
from sampler_batches import COARSE, LABELS, made


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cycle", {}, "sampler: unknown 'cycle', did you mean 'cyclic'"),
        ("plain", {"per_class": 4}, "sampler 'plain', parameter: unknown 'per_class'. Known: none"),
        (
            "balanced",
            {"repeats": 4},
            "sampler 'balanced', parameter: unknown 'repeats', did you mean '.*'. Known: classes_per_round, per_class",
        ),
        ("balanced", {"per_class": 5}, "batch_size=24 must be a multiple of per_class=5"),
        ("m_per_class", {"per_class": 0}, "per_class=0, both at least 1"),
        ("plain", {"batch_size": 0}, "batch_size=0 must be"),
        ("plain", {"batch_size": 500}, "126 rows in 12 classes fill no batch of 500"),
        ("plain", {"batches": 0}, "batches=0 must be at least 1"),
        ("plain", {"seed": -1}, "seed=-1 must be at least 0"),
        ("plain", {"labels": np.zeros((3, 2))}, r"labels of shape \(3, 2\)"),
        ("balanced", {"batch_size": 52}, "batch_size=52 with per_class=4 needs 13 classes, there are 12"),
        ("grouped", {"batch_size": 52}, "needs 13 classes, there are 12"),
        ("cyclic", {"batch_size": 52}, "needs 13 classes, there are 12"),
        ("grouped", {"repeats": 0}, "repeats=0 must be at least 1"),
        ("hierarchical", {"per_class": 8}, "half of batch_size=24 must be a multiple of per_class=8"),
        ("hierarchical", {"batch_size": 56}, "coarse class 0 has 6 classes, half a batch needs 7"),
        ("hierarchical", {"coarse": np.zeros(126)}, "coarse_labels name 1 coarse class, at least 2 are needed"),
        ("hierarchical", {"coarse": COARSE[:9]}, r"coarse_labels \(9,\) must be as long as labels \(126,\)"),
        ("hierarchical", {"coarse": np.arange(126) % 2}, "coarse_labels differ within a class"),
    ],
)
def test_impossible_requests_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        made(name, **options)


def test_missing_arguments_are_named():
    with pytest.raises(ValueError, match="sampler 'balanced' needs per_class"):
        build_sampler("balanced", {}, labels=LABELS, batch_size=24)
    with pytest.raises(ValueError, match="sampler 'hierarchical' needs coarse_labels"):
        build_sampler("hierarchical", {"per_class": 4}, labels=LABELS, batch_size=24)
