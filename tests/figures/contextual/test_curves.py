"""Histories of trainings with the contextual loss."""

import pandas as pd
import pytest
from lookalike.figures.contextual.curves import checks, data, draw

from figure_checks import so
from lookalike.figures.parts.form import Run
from lookalike.figures.parts.style import style
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.plan import Plan
from lookalike.settings.call import Configuration
from lookalike.settings.files import read


@pytest.fixture
def history(tmp_path):
    def write(lam, contextual, recall, seed=0):
        path = tmp_path / f"{lam}_{seed}.csv"
        columns = {"epoch": range(1, 5), "loss": 1.0, "R@1": [None, recall[0], None, recall[1]], "MAP@R": 0.0}
        pd.DataFrame({**columns, "contextual": contextual}).to_csv(path, index=False)
        return Run("x", "sop", "products", seed, "history", str(path), {"lambda": lam})

    return write


def test_a_row_per_epoch_measured_or_not(history):
    frame = data(
        [history(0.0, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6]), history("0.8", [0.3, 0.2, 0.1, 0.05], [0.6, 0.7])], {}
    )
    assert list(frame.columns) == ["dataset", "seed", "lambda", "epoch", "contextual", "R@1"]
    assert list(frame["lambda"]) == [0.0] * 4 + [0.8] * 4
    assert list(frame["R@1"].notna()) == [False, True] * 4


@pytest.mark.parametrize(("figure", "needed"), [("contextual_3", {"R@1", "mAP"}), ("contextual_15", {"R@1"})])
def test_the_trainings_behind_a_figure_measure_between_epochs_what_it_shows(figure, needed):
    plan = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "mini"})
    runs = [run for run in figure_runs(plan, read_figures(plan)[figure]) if run["reads"] == "history"]
    assert runs
    for run in runs:
        train = plan.deciding(run["recipe"], run["dataset"])["train"]
        assert train["loss"]["name"] == "contextual"
        assert needed <= set(train["budget"]["metrics"])


def test_a_history_of_another_loss_is_refused(history):
    run = history(0.0, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6])
    pd.read_csv(run.path).drop(columns="contextual").to_csv(run.path, index=False)
    with pytest.raises(ValueError, match="has no column 'contextual'; it has epoch, loss"):
        data([run], {})


@pytest.mark.parametrize("better", [True, False])
def test_the_verdicts_follow_the_contrastive_curve_and_the_correlation(history, better):
    recall = [0.5, 0.8] if better else [0.8, 0.5]
    runs = [history(lam, [0.4 - 0.1 * lam, 0.3, 0.2, 0.1 - 0.01 * lam], recall) for lam in (0.0, 1.0)]
    lowers, goes_with = checks(data(runs, {}))
    assert so(lowers)
    assert "0.4000 in the first epoch, 0.1000 in the last" in lowers.says
    assert so(goes_with) is better


def test_a_contrastive_loss_that_raises_the_contextual_part_does_not_hold(history):
    assert not so(checks(data([history(0.0, [0.1, 0.2, 0.3, 0.4], [0.5, 0.6])], {}))[0])


def test_the_picture_has_a_line_per_lambda_with_the_measured_epochs_on_the_right(history):
    runs = [history(lam, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6], seed) for lam in (0.0, 0.4, 1.0) for seed in (0, 1)]
    with style():
        left, right = draw(data(runs, {})).axes
    assert [len(bars.lines[0].get_xdata()) for bars in left.containers] == [4, 4, 4]
    assert [list(bars.lines[0].get_ydata()) for bars in right.containers] == [[50.0, 60.0]] * 3
