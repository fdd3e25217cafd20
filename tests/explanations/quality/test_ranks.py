"""Rank correlations of many rows are those of SciPy, row by row."""

import pytest
import torch
from scipy.stats import spearmanr

from lookalike.explanations.quality.ranks import spearman


@pytest.mark.parametrize("levels", [3, 1000])
def test_rows_are_correlated_as_scipy_does(levels):
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randint(0, levels, (2, 20, 15), generator=generator).double()
    kept = torch.rand(20, 15, generator=generator) < 0.6
    found, of_all = spearman(first, second, kept), spearman(first, second)
    for row in range(20):
        expected = spearmanr(first[row][kept[row]], second[row][kept[row]]).statistic
        assert float(found[row]) == pytest.approx(expected, abs=1e-12)
        assert float(of_all[row]) == pytest.approx(spearmanr(first[row], second[row]).statistic, abs=1e-12)


def test_what_is_not_kept_does_not_count():
    first, second = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(1))
    kept = torch.arange(9).expand(6, 9) < 5
    other = torch.where(kept, second, 100.0)
    assert torch.equal(spearman(first, second, kept), spearman(first, other, kept))


def test_a_row_without_an_order_has_no_correlation():
    values = torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    assert spearman(values, values).isnan().tolist() == [True, False]
    assert spearman(values, values, torch.tensor([[True, False, False]] * 2)).isnan().all()


def test_rows_that_do_not_fit_or_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"all be \(N, M\), not \(2, 3\), \(2, 4\), \(2, 3\)"):
        spearman(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="finite numbers only"):
        spearman(torch.tensor([[0.0, torch.nan]]), torch.zeros(1, 2))
