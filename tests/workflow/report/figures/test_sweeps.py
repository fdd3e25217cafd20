"""Figures of finished metrics, drawn from numbers made up for the test."""

import json
from dataclasses import asdict
from functools import cache

import numpy as np
import pandas as pd
import pytest

from figure_checks import mean
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.figures.parts.caption import findings
from lookalike.workflow.report.figures.parts.form import Check, Run
from lookalike.workflow.report.figures.parts.series import Measured, read_measured
from lookalike.workflow.report.figures.parts.trends import (
    always,
    best_within,
    flat,
    highest,
    mostly,
    over_seeds,
    rising,
    table,
)
from lookalike.workflow.report.figures.sweeps import (
    EDGES,
    SEEN_LOSSES,
    WEIGHTS,
    check_candidates,
    check_seen_losses,
    check_weights,
)
from lookalike.workflow.report.statistics.cases import Cases
from lookalike.workflow.settings.pages import PlannedFigure
from lookalike.workflow.stages.figures import figures

MINI = {"scale": "mini", "seeds": [0, 1], "archives": "data/archives", "tracking": False}
DRAWN = ["avsl_5a", "avsl_5b", "avsl_momentum", "diml_3", "diml_4", "contextual_2", "contextual_6", "contextual_7"]
DRAWN += ["contextual_13", "contextual_14", "contextual_16", "contextual_17", "sam_weight", "sam_mask"]
METRICS = ["R@1", "R@2", "R@4", "RP", "MAP@R", "P@1", "train_R@1"]
SHIFTS = {"last": 0.0, "best": 0.01}


@cache
def figures_of(*seeds):
    """The plan of these seeds with the entries of all figures; reading them takes longer than drawing one."""
    plan = Plan({**MINI, "seeds": list(seeds)})
    return plan, read_figures(plan)


def written(folder, number, value):
    path = folder / f"{number}.json"
    path.write_text(json.dumps({key: dict.fromkeys(METRICS, value + shift) for key, shift in SHIFTS.items()}))
    return str(path)


def frame_of(values, **columns):
    """A frame of one metric with a row per seed and value of ``x``."""
    rows = [{"x": x, "seed": seed, "R@1": value} for x, found in values.items() for seed, value in enumerate(found)]
    return pd.DataFrame(rows).assign(**columns)


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_of_metrics_is_drawn_from_all_its_runs(tmp_path, name, seeds):
    plan, entries = figures_of(*seeds)
    entry = entries[name]
    runs = [run for run in figure_runs(plan, entry) if run.seed in seeds]
    files = [written(tmp_path, number, 0.3 + 0.37 * number % 0.4) for number in range(len(runs))]
    files_of = list(map(asdict, runs))
    figures(name, entry, files_of, scale="small", files=files, output=str(tmp_path / f"{name}.csv"))
    frame = pd.read_csv(tmp_path / f"{name}.csv")
    assert set(frame["seed"]) == set(seeds)
    assert set(frame["dataset"]) == {run.dataset for run in runs}
    assert set(frame["checkpoint"]) == {"best", "last"}
    checks = [Check(**check) for check in json.loads((tmp_path / f"{name}.json").read_text())["checks"]]
    assert checks and all(len(check.cases[0][0]) == len(seeds) for check in checks if check.claimed)
    if seeds == [0]:
        assert {str(finding.verdict) for finding in findings(checks)} <= {"undecided", "measured"}


def test_figures_are_of_several_seeds_also_where_tables_are_of_one():
    plan, entries = figures_of(0)
    assert {run.seed for run in figure_runs(plan, entries["contextual_18"])} == {0, 1, 2}


def test_half_a_point_of_one_seed_is_no_trend():
    rows = [
        {"k": k, "seed": 0, "R@1": value, "MAP@R": value / 2, "dataset": "b", "published": "b", "checkpoint": "last"}
        for k, value in ((8, 0.634), (32, 0.636), (128, 0.638), (512, 0.6365))
    ]
    for panel in EDGES.draw(pd.DataFrame(rows)).axes:
        low, high = panel.get_ylim()
        assert high - low >= 9.99


def test_points_and_axis_values_of_a_sweep_become_runs():
    plan = Plan(MINI)
    read = {"sweep": "avsl_edges", "reads": "metrics", "settings": {"k here": "train.method.k"}}
    runs = figure_runs(plan, PlannedFigure(place="", title="", shows="", says="", runs=[read]))
    assert [(run.place["k"], run.place["k here"], run.seed) for run in runs][:4] == [
        (8, 1, 0), (8, 1, 1), (16, 2, 0), (16, 2, 1),
    ]  # fmt: skip
    assert {run.dataset for run in runs} == {"figurines_vehicles"}


def test_the_marked_values_are_those_of_the_recipes_at_paper_scale():
    plan = Plan({**MINI, "scale": "paper"})
    edges, size = (plan.deciding("avsl_proxy_anchor", "cars")["train"][key] for key in ("method", "embedding"))
    entries = {name: entry.options.get("paper") for name, entry in read_figures(plan).items() if name in DRAWN}
    assert (edges["k"], edges["momentum"]) == (entries["avsl_5a"]["k"], entries["avsl_momentum"]["gamma"])
    assert size["dim"] == entries["avsl_5b"]["r"]
    losses = {name: plan.deciding("contextual", name)["train"]["loss"] for name in ("cub", "cars")}
    assert entries["contextual_7"]["lambda"] == {name: losses[name]["lam"] for name in ("cub", "cars")}
    keys = {"eps": "eps", "gamma": "gamma", "target": "target_similarity"}
    tuned = plan.deciding("contextual_256", "sop")["train"]["loss"]
    assert entries["contextual_13"] == {name: tuned[key] for name, key in keys.items()}
    matched = plan.deciding("margin_diml", "cub")
    assert matched["evaluate"]["scoring"]["truncation"] == entries["diml_3"]["K"]
    assert matched["embed"]["representation"]["side"] == entries["diml_4"]["G"]


def test_a_run_reached_by_two_sweeps_counts_once_and_a_missing_metric_is_named(tmp_path):
    runs = [Run("a", "sop", "shop", 0, "metrics", written(tmp_path, 0, 0.5), {"eps": 0.05}) for _ in range(2)]
    frame = read_measured(runs, Measured(metrics=["R@1"], paper={"eps": {"sop": 0.05}}))
    assert list(frame["R@1"]) == [0.5, 0.51]  # of the last epoch and of the best
    assert list(frame["paper eps"]) == [0.05, 0.05]
    with pytest.raises(ValueError, match=r"0\.json has no metric 'NMI'; it has R@1"):
        read_measured(runs, Measured(metrics=["NMI"]))


def test_a_rise_is_that_of_a_straight_line_over_the_steps():
    check = rising(table(frame_of({1: [0.1, 0.11], 2: [0.2, 0.21], 40: [0.3, 0.41]}), "x", "R@1"), "rises")
    assert check.cases[0][0] == pytest.approx([20.0, 30.0])
    assert "rises: it rises in 2 of 2 steps from 1 to 40" in check.says
    # the middle does not tilt a line over three steps, the ends do
    check = rising(table(frame_of({1: [0.3], 2: [0.9], 3: [0.1]}), "x", "R@1"), "rises")
    assert check.cases[0][0] == pytest.approx([-20.0])


def test_all_cases_are_so_if_the_worst_is():
    check = always([pd.Series([1.0, -3.0, 2.0]), pd.Series([2.0, 2.0, 1.0])], "better")
    assert check.cases == [[[1.0, -3.0, 2.0], [2.0, 2.0, 1.0]]]
    assert mean(check) == 0
    assert check.says == "better: above zero in 1 of 2 cases"


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([3.0, 1.0, 2.0, -9.0], -0.75),  # three of four are above zero, their mean is not
        ([9.0, 9.0, -1.0, -1.0], -1.0),  # the mean is above zero, half of them are not
        ([3.0, 2.0, 1.0, -1.0], 1.0),
        ([-3.0, -2.0, -1.0, 1.0], -2.0),  # a quarter that is above zero is not most
        ([3.0, 2.0, 5.0, 9.0, 4.0, 4.0, -1.0, -2.0], 2.0),
        ([3.0, 1.0, -1.0], -1.0),
        ([2.0], 2.0),
    ],
)
def test_most_cases_are_three_in_four_and_their_mean_counts_too(cases, expected):
    check = mostly([pd.Series([case, case]) for case in cases], "better")
    assert mean(check) == expected
    assert Cases(np.array(check.cases), check.needed).interval(0.05) == pytest.approx((expected, expected))
    assert f"above zero in {sum(case > 0 for case in cases)} of {len(cases)} cases" in check.says


def test_a_seed_without_a_finite_number_leaves_a_check_undecided_and_is_named():
    check = over_seeds("better", [1.0, float("nan"), 2.0])
    assert check.says == "better (undecided, as a seed gives no finite number: 1, nan, 2 points)"
    assert [str(found.verdict) for found in findings([check])] == ["undecided"]


def test_candidates_saturate_where_no_pair_of_losses_and_data_differs_either_way():
    rows = [
        {
            "dataset": name,
            "loss": "margin",
            "checkpoint": "last",
            "seed": seed,
            "K": k,
            "P@1": (k == 500) * change / 100,
        }
        for name, change in {"a": 0.1, "b": -0.4, "c": 0.2}.items()
        for k in (0, 20, 100, 500)
        for seed in range(3)
    ]
    assert mean(check_candidates(pd.DataFrame(rows))[2]) == pytest.approx(0.5 - 0.4)


def test_the_best_value_inside_is_held_against_the_best_outside():
    clear = pd.DataFrame({0: [50.0, 60.0, 40.0], 1: [51.0, 62.0, 40.0]}, index=[0.0, 0.9, 1.0])
    check = best_within(clear, [0.9, 1.0], "best")
    assert check.cases == [[[10.0, 11.0]], [[-10.0, -11.0]]]
    assert mean(check) == 10.5
    assert mean(best_within(clear, [1.0], "best")) == -21
    assert highest(clear) == "the highest mean, 61.0 %, is at 0.9"


def test_a_flat_sweep_stays_below_its_limit():
    values = pd.DataFrame({0: [50.0, 50.5, 51.0], 1: [50.0, 50.5, 51.0]}, index=[0, 1, 2])
    check = flat(values, 2.0, "flat")
    assert mean(check) == 1.0
    assert (check.margin, check.unit) == (0, "points to spare")
    assert "flat: means lie within 1.0 points (limit 2)" in check.says


def test_weights_are_best_within_the_papers_range_and_never_hurt():
    rows = [
        {"seed": 0, "rate": 1e-4, "gamma": gamma, "lambda": lam, "R@1": lam / 2 + gamma}
        for gamma in (0.0, 0.1)
        for lam in (0.0, 0.8, 1.0)
    ]
    rows = [{"dataset": "birds", "checkpoint": "last", **row} for row in rows]
    mixture, regulariser = check_weights(pd.DataFrame(rows))
    assert mean(mixture) == pytest.approx(-10.0)
    assert mean(regulariser) == pytest.approx(10.0)
    rows[3]["R@1"] = -0.1  # one case in three, with the regulariser
    rows[4]["R@1"] = 0.9
    mixture, regulariser = check_weights(pd.DataFrame(rows))
    assert mean(mixture) == pytest.approx(30.0)
    assert mean(regulariser) == pytest.approx(-10.0)
    assert "above zero in 2 of 3 cases" in regulariser.says
    assert mixture.says.startswith("birds: R@1 is best")
    rows += [{**row, "rate": 2e-4, "R@1": float(row["lambda"] == 0.8)} for row in rows if row["gamma"] == 0.1]
    checks = check_weights(pd.DataFrame(rows))  # the other rate with one weight of the regulariser alone
    assert [check.says.split(":")[0] for check in checks] == ["birds, rate 0.0001"] * 2 + ["birds, rate 0.0002"]
    assert [mean(check) for check in checks] == pytest.approx([30.0, -10.0, 100.0])


def test_rates_that_a_scale_chose_for_each_weight_make_one_line_of_all_weights():
    rows = [
        {
            "seed": 0,
            "rate": 1e-4 * (1 + lam),
            "gamma": gamma,
            "lambda": lam,
            "R@1": lam / 2 + gamma,
            "paper lambda": 0.8,
        }
        for gamma in (0.0, 0.1)
        for lam in (0.0, 0.8, 1.0)
    ]
    frame = pd.DataFrame(rows).assign(dataset="birds", published="cub", checkpoint="last")
    assert [check.says.split(":")[0] for check in check_weights(frame)] == ["birds", "birds"]
    picture = WEIGHTS.draw(frame)
    assert {text.get_text() for text in picture.legends[0].texts} == {"γ = 0", "γ = 0.1", "default"}
    assert sorted(len(line.get_xdata()) for line in picture.axes[0].get_lines())[-2:] == [3, 3]


def test_the_contextual_loss_is_held_against_every_other_of_its_set_up():
    reached = {"Contextual": (0.6, 0.7), "Contrastive": (0.9, 0.6), "Triplet": (0.65, 0.69), "MS": (0.61, 0.65)}
    rows = [
        {"dataset": "birds", "setting": "224", "seed": seed, "loss": loss, "train_R@1": seen, "R@1": unseen}
        for loss, (seen, unseen) in reached.items()
        for seed in range(2)
    ]
    higher, lower = check_seen_losses(pd.DataFrame(rows).assign(checkpoint="last"))
    assert [mean(higher), mean(lower)] == pytest.approx([1.0, 1.0])  # the nearest: Triplet, and MS
    assert higher.says == "birds, 224: test R@1 is higher with Contextual: above zero in 3 of 3 cases"


def test_every_loss_and_every_rate_is_in_the_legend_and_no_two_look_alike():
    losses = {"224": ["Contextual", *"abcdefg"], "256": ["Contextual", *"abchij"]}
    rows = [
        {"loss": loss, "setting": setting, "dataset": dataset, "checkpoint": checkpoint, "R@1": 0.5, "train_R@1": 0.6}
        for setting, names in losses.items()
        for loss in names
        for dataset in ("birds", "cars")
        for checkpoint in ("best", "last")
    ]
    picture = SEEN_LOSSES.draw(pd.DataFrame(rows).assign(seed=0, published="cub"))
    assert len(picture.axes) == 4
    assert {text.get_text() for text in picture.legends[0].texts} == {*losses["224"], *losses["256"]}
    assert len({(line.get_color(), line.get_marker()) for line in picture.legends[0].get_lines()}) == 11
    tried = [(0.0, 8e-5), (0.1, 8e-5), (0.1, 7e-5)]
    rows = [
        {"gamma": gamma, "rate": rate, "lambda": lam, "dataset": dataset, "R@1": 0.5, "paper lambda": 0.8}
        for dataset, points in {"birds": [(0.0, 1.4e-4)], "cars": tried}.items()
        for gamma, rate in points
        for lam in (0.8, 0.95)
    ]
    picture = WEIGHTS.draw(pd.DataFrame(rows).assign(seed=0, published="cub", checkpoint="last"))
    labels = {f"γ = {gamma:g}, rate {rate:g}" for gamma, rate in [(0.0, 1.4e-4), *tried]}
    assert {text.get_text() for text in picture.legends[0].texts} == labels | {"default"}


def test_learning_rates_of_figure_7_are_three_where_recipes_state_them_and_one_where_a_scale_does():
    for scale, several in {"paper": True, "mini": False}.items():
        plan = Plan({**MINI, "scale": scale})
        runs = [run for run in figure_runs(plan, read_figures(plan)["contextual_7"]) if run.published == "cub"]
        at = [run.place["rate"] for run in runs if (run.place["lambda"], run.place["gamma"]) == (0.4, 0.1)]
        assert len({*at}) == (3 if several else 1)
        assert {run.place["gamma"] for run in runs if run.place["lambda"] == 0.95} == {0.1}
