"""The contextual loss against average precision, and without mini-batches.

Histories of trainings with the contextual loss.
"""

import pandas as pd
import pytest
import torch

from figure_checks import so
from lookalike.base.files import write_tensors
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.figures.contextual.convergence import (
    BATCHES,
    WHOLE,
    check_convergence,
    check_curves,
    convergence_data,
    curves_data,
    draw_convergence,
    draw_curves,
)
from lookalike.workflow.report.figures.contextual.decomposability import Training
from lookalike.workflow.report.figures.parts.form import NoOptions, Run
from lookalike.workflow.report.figures.parts.style import style
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read

OPTIONS = {"lams": [0.0, 1.0], "iterations": 6, "measured_every": 2, "embedding_dim": 8, "lr": 0.01}
OPTIONS |= {"eps": 0.05, "alpha": 10.0, "positive_margin": 0.75, "negative_margin": 0.6}


def frame(mean_ap, contextual, whole):
    """Two measured epochs for each of two trainings, and the curves of both lambda on the whole set."""
    about = {"dataset": "birds", "seed": 0}
    rows = [
        {"trained_on": BATCHES, **about, "lambda": lam, "step": step, "contextual": contextual[place], "mAP": value}
        for lam, values in mean_ap.items()
        for place, (step, value) in enumerate(zip((2, 4), values, strict=True))
    ]
    rows += [
        {"trained_on": WHOLE, **about, "lambda": lam, "step": step, "contextual": value}
        for lam, values in whole.items()
        for step, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


SMOOTH = {0.0: [0.5, 0.6, 0.2], 1.0: [0.5, 0.4, 0.1]}


def test_data_hold_the_histories_and_the_curves_on_the_whole_set(tmp_path):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4).repeat(6)
    features = torch.randn(24, 5, generator=generator) + labels[:, None]
    write_tensors(tmp_path / "x.safetensors", {"last/train/embedding": features, "labels/train": labels}, {})
    pd.DataFrame({"epoch": [1, 2], "R@1": [None, 0.5], "mAP": [None, 0.4], "contextual": [0.3, 0.2]}).to_csv(
        tmp_path / "x.csv", index=False
    )
    runs = [
        Run("x", "cub", "birds", 0, "history", str(tmp_path / "x.csv"), {"lambda": 0.5}),
        Run("y", "cub", "birds", 0, "embeddings", str(tmp_path / "x.safetensors")),
    ]
    found = convergence_data(runs, Training(**OPTIONS))
    whole = found[found["trained_on"] == WHOLE]
    assert list(whole.groupby("lambda")["step"].apply(list)) == [[0, 2, 4, 6]] * 2
    starts = whole[whole["step"] == 0]["contextual"]
    assert len(set(starts)) == 1  # both lambda start from one embedding
    assert list(found[found["trained_on"] == BATCHES]["contextual"]) == [0.3, 0.2]
    with style():
        left, right = draw_convergence(found).axes[:2]
    assert [len(line.get_xdata()) for line in left.get_lines()] == [1, 1]  # and its end
    assert len(right.get_lines()) == 2


def test_a_linear_fall_and_a_monotone_curve_hold():
    found = frame({0.0: (0.2, 0.6), 1.0: (0.3, 0.7)}, [0.4, 0.2], SMOOTH)
    linear, direction, monotone, noisier = check_convergence(found)
    assert so(linear) and so(direction) and so(monotone) and so(noisier)
    # of 0.1 up and 0.4 down
    assert "20.0 % of its way" in noisier.says
    assert "λ = 1: 0.0 % of its way" in monotone.says


def test_a_rise_with_the_precision_and_an_unsteady_curve_do_not_hold():
    found = frame({0.0: (0.6, 0.2), 1.0: (0.7, 0.3)}, [0.4, 0.2], {0.0: [0.5, 0.4, 0.1], 1.0: [0.5, 0.6, 0.2]})
    assert [so(check) for check in check_convergence(found)] == [False, False, False, False]


@pytest.mark.parametrize("lams", [(0.2, 0.5), (0.0, 1.0)])
def test_a_lambda_has_one_look_on_both_sides(lams):
    found = frame(dict.fromkeys((0.0, 0.2, 0.5, 1.0), (0.2, 0.6)), [0.4, 0.2], {lam: [0.5, 0.4] for lam in lams})
    with style():
        left, right = draw_convergence(found).axes[:2]
    looks = dict(zip((0.0, 0.2, 0.5, 1.0), (line.get_color() for line in left.get_lines()[::2]), strict=True))
    assert [line.get_color() for line in right.get_lines()] == [looks[lam] for lam in lams]


@pytest.fixture
def history(tmp_path):
    def write(lam, contextual, recall, seed=0):
        path = tmp_path / f"{lam}_{seed}.csv"
        columns = {"epoch": range(1, 5), "loss": 1.0, "R@1": [None, recall[0], None, recall[1]], "MAP@R": 0.0}
        pd.DataFrame({**columns, "contextual": contextual}).to_csv(path, index=False)
        return Run("x", "sop", "products", seed, "history", str(path), {"lambda": lam})

    return write


def test_a_row_per_epoch_measured_or_not(history):
    frame = curves_data(
        [history(0.0, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6]), history("0.8", [0.3, 0.2, 0.1, 0.05], [0.6, 0.7])], NoOptions()
    )
    assert list(frame.columns) == ["dataset", "seed", "lambda", "epoch", "contextual", "R@1"]
    assert list(frame["lambda"]) == [0.0] * 4 + [0.8] * 4
    assert list(frame["R@1"].notna()) == [False, True] * 4


@pytest.mark.parametrize(("figure", "needed"), [("contextual_3", {"R@1", "mAP"}), ("contextual_15", {"R@1"})])
def test_the_trainings_behind_a_figure_measure_between_epochs_what_it_shows(figure, needed):
    plan = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "mini"})
    runs = [run for run in figure_runs(plan, read_figures(plan)[figure]) if run.reads == "history"]
    assert runs
    for run in runs:
        train = plan.deciding(run.recipe, run.dataset)["train"]
        assert train["loss"]["name"] == "contextual"
        assert needed <= set(train["budget"]["metrics"])


def test_a_history_of_another_loss_is_refused(history):
    run = history(0.0, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6])
    pd.read_csv(run.path).drop(columns="contextual").to_csv(run.path, index=False)
    with pytest.raises(ValueError, match="has no column 'contextual'; it has epoch, loss"):
        curves_data([run], NoOptions())


@pytest.mark.parametrize("better", [True, False])
def test_the_verdicts_follow_the_contrastive_curve_and_the_correlation(history, better):
    recall = [0.5, 0.8] if better else [0.8, 0.5]
    runs = [history(lam, [0.4 - 0.1 * lam, 0.3, 0.2, 0.1 - 0.01 * lam], recall) for lam in (0.0, 1.0)]
    lowers, goes_with = check_curves(curves_data(runs, NoOptions()))
    assert so(lowers)
    assert "0.4000 in the first epoch, 0.1000 in the last" in lowers.says
    assert so(goes_with) is better


def test_a_contrastive_loss_that_raises_the_contextual_part_does_not_hold(history):
    assert not so(check_curves(curves_data([history(0.0, [0.1, 0.2, 0.3, 0.4], [0.5, 0.6])], NoOptions()))[0])


def test_the_picture_has_a_line_per_lambda_with_the_measured_epochs_on_the_right(history):
    runs = [history(lam, [0.4, 0.3, 0.2, 0.1], [0.5, 0.6], seed) for lam in (0.0, 0.4, 1.0) for seed in (0, 1)]
    with style():
        left, right = draw_curves(curves_data(runs, NoOptions())).axes
    assert [len(bars.lines[0].get_xdata()) for bars in left.containers] == [4, 4, 4]
    assert [list(bars.lines[0].get_ydata()) for bars in right.containers] == [[50.0, 60.0]] * 3
