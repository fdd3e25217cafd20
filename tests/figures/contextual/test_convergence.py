"""The contextual loss against average precision, and without mini-batches."""

import pandas as pd
import pytest
import torch

from figure_checks import so
from lookalike.figures.contextual.convergence import BATCHES, WHOLE, checks, data, draw
from lookalike.figures.parts.form import Run
from lookalike.figures.parts.style import style
from lookalike.files import write_tensors

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
    write_tensors(tmp_path / "x.safetensors", {"best/train/embedding": features, "labels/train": labels}, {})
    pd.DataFrame({"epoch": [1, 2], "R@1": [None, 0.5], "mAP": [None, 0.4], "contextual": [0.3, 0.2]}).to_csv(
        tmp_path / "x.csv", index=False
    )
    runs = [
        Run("x", "cub", "birds", 0, "history", str(tmp_path / "x.csv"), {"lambda": 0.5}),
        Run("y", "cub", "birds", 0, "embeddings", str(tmp_path / "x.safetensors")),
    ]
    found = data(runs, OPTIONS)
    whole = found[found["trained_on"] == WHOLE]
    assert list(whole.groupby("lambda")["step"].apply(list)) == [[0, 2, 4, 6]] * 2
    starts = whole[whole["step"] == 0]["contextual"]
    assert len(set(starts)) == 1  # both lambda start from one embedding
    assert list(found[found["trained_on"] == BATCHES]["contextual"]) == [0.3, 0.2]
    with style():
        left, right = draw(found).axes[:2]
    assert [len(line.get_xdata()) for line in left.get_lines()] == [1, 1]  # and its end
    assert len(right.get_lines()) == 2


def test_a_linear_fall_and_a_monotone_curve_hold():
    found = frame({0.0: (0.2, 0.6), 1.0: (0.3, 0.7)}, [0.4, 0.2], SMOOTH)
    linear, direction, monotone, noisier = checks(found)
    assert so(linear) and so(direction) and so(monotone) and so(noisier)
    # of 0.1 up and 0.4 down
    assert "20.0 % of its way" in noisier.says
    assert "λ = 1: 0.0 % of its way" in monotone.says


def test_a_rise_with_the_precision_and_an_unsteady_curve_do_not_hold():
    found = frame({0.0: (0.6, 0.2), 1.0: (0.7, 0.3)}, [0.4, 0.2], {0.0: [0.5, 0.4, 0.1], 1.0: [0.5, 0.6, 0.2]})
    assert [so(check) for check in checks(found)] == [False, False, False, False]


@pytest.mark.parametrize("lams", [(0.2, 0.5), (0.0, 1.0)])
def test_a_lambda_has_one_look_on_both_sides(lams):
    found = frame(dict.fromkeys((0.0, 0.2, 0.5, 1.0), (0.2, 0.6)), [0.4, 0.2], {lam: [0.5, 0.4] for lam in lams})
    with style():
        left, right = draw(found).axes[:2]
    looks = dict(zip((0.0, 0.2, 0.5, 1.0), (line.get_color() for line in left.get_lines()[::2]), strict=True))
    assert [line.get_color() for line in right.get_lines()] == [looks[lam] for lam in lams]
