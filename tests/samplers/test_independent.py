from __future__ import annotations

import numpy as np
import pytest

from sampler_batches import LABELS, SIZES, class_counts, made


def test_plain_batches_hold_each_row_at_most_once_per_pass():
    batches = list(made("plain"))
    assert len(batches) == len(LABELS) // 24 == 5
    rows = [row for batch in batches for row in batch]
    assert len(set(rows)) == len(rows)


def test_m_per_class_draws_classes_and_rows_with_replacement():
    batches = list(made("m_per_class", per_class=2, batches=2000))
    groups = np.array(batches).reshape(-1, 2)
    assert (LABELS[groups[:, 0]] == LABELS[groups[:, 1]]).all()
    shares = np.unique(LABELS[groups[:, 0]], return_counts=True)[1] / len(groups)
    np.testing.assert_allclose(shares, 1 / 12, atol=0.008)  # 24,000 draws: 4.5 sigma, whatever the class sizes
    assert (groups[:, 0] == groups[:, 1]).mean() == pytest.approx(np.mean([1 / size for size in SIZES]), abs=0.009)
    assert any(len(class_counts(batch)) < 12 for batch in batches)
    assert len(made("m_per_class")) == len(LABELS) // 24
