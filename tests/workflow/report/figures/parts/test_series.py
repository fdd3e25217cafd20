"""Axes of what is measured."""

import pytest
from matplotlib.figure import Figure

from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.report.figures.parts.series import HIGHEST, SPAN, Measured, read_measured, widen


@pytest.mark.parametrize("values", [(99.92, 100.0), (0.0, 0.3), (70.0, 71.0)])
def test_a_narrow_axis_of_percentages_is_widened_to_what_percentages_can_be(values):
    panel = Figure().subplots()
    panel.plot([0, 1], values)
    widen(panel)
    low, high = panel.get_ylim()
    assert high - low == pytest.approx(SPAN)
    assert 0 <= low <= min(values) and max(values) <= high <= HIGHEST


def test_a_wide_axis_stays_as_it_is():
    panel = Figure().subplots()
    panel.set_ylim(20, 80)
    widen(panel)
    assert panel.get_ylim() == (20, 80)


def test_broken_metrics_are_named(tmp_path):
    (tmp_path / "seed0.json").write_text('{"best": {')
    run = Run("margin", "cub", "birds", 0, "metrics", str(tmp_path / "seed0.json"))
    with pytest.raises(ValueError, match=r"seed0\.json is no whole JSON file .* the next call makes it again"):
        read_measured([run], Measured(metrics=["R@1"]))
