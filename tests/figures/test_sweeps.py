"""Figures of finished metrics, drawn from numbers made up for the test."""

import json
from functools import cache

import pandas as pd
import pytest

from lookalike.figures.avsl.sweeps import EDGES
from lookalike.figures.contextual.sweeps import check_weights
from lookalike.figures.parts.form import Run
from lookalike.figures.parts.measured import read_measured
from lookalike.figures.parts.trends import always, difference, mostly, rising, table
from lookalike.plan.figures import figure_runs, read_figures
from lookalike.plan.plan import Plan
from lookalike.stages.figures import figures

MINI = {"scale": "mini", "seeds": [0, 1], "archives": "data/archives", "tracking": False}
DRAWN = ["avsl_5a", "avsl_5b", "avsl_momentum", "diml_3", "diml_4", "contextual_2", "contextual_6", "contextual_7"]
DRAWN += ["contextual_13", "contextual_14", "contextual_16", "contextual_17", "sam_weight", "sam_mask"]
METRICS = ["R@1", "R@2", "R@4", "RP", "MAP@R", "P@1", "train_R@1"]
SHIFTS = {"best": 0.0, "last": -0.01}


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
    runs = figure_runs(plan, entry)
    files = [written(tmp_path, number, 0.3 + 0.37 * number % 0.4) for number in range(len(runs))]
    figures(name, entry, runs, scale="small", files=files, output=str(tmp_path / name))
    frame = pd.read_csv(tmp_path / f"{name}.csv")
    assert set(frame["seed"]) == set(seeds)
    assert set(frame["dataset"]) == {run["dataset"] for run in runs}
    assert set(frame["checkpoint"]) == {"best", "last"}
    caption = (tmp_path / f"{name}.md").read_text()
    assert " in one run of each kind; one seed decides nothing:" in caption if seeds == [0] else "**Here**:" in caption
    verdicts = [line for line in caption.split("**Here**")[1].splitlines() if line.startswith("- ")]
    place = "this run" if seeds == [0] else "these runs"
    assert all(line.startswith((f"- **in {place}: ", "- **measured**")) for line in verdicts)


def test_half_a_point_of_one_seed_is_no_trend():
    rows = [
        {"k": k, "seed": 0, "R@1": value, "MAP@R": value / 2, "dataset": "b", "published": "b", "checkpoint": "best"}
        for k, value in ((8, 0.634), (32, 0.636), (128, 0.638), (512, 0.6365))
    ]
    for panel in EDGES.draw(pd.DataFrame(rows)).axes:
        low, high = panel.get_ylim()
        assert high - low >= 9.99


def test_points_and_axis_values_of_a_sweep_become_runs():
    plan = Plan(MINI)
    runs = figure_runs(
        plan, {"runs": [{"sweep": "avsl_edges", "reads": "metrics", "settings": {"k here": "train.method.k"}}]}
    )
    assert [(run["place"]["k"], run["place"]["k here"], run["seed"]) for run in runs][:4] == [
        (8, 1, 0), (8, 1, 1), (16, 2, 0), (16, 2, 1),
    ]  # fmt: skip
    assert {run["dataset"] for run in runs} == {"figurines_vehicles"}


def test_the_marked_values_are_those_of_the_recipes_at_paper_scale():
    plan = Plan({**MINI, "scale": "paper"})
    edges, size = (plan.settings("avsl_proxy_anchor", "cars")["train"][key] for key in ("method", "embedding"))
    entries = {name: entry["options"].get("paper") for name, entry in read_figures(plan).items() if name in DRAWN}
    assert (edges["k"], edges["momentum"]) == (entries["avsl_5a"]["k"], entries["avsl_momentum"]["gamma"])
    assert size["dim"] == entries["avsl_5b"]["r"]
    losses = {name: plan.settings("contextual", name)["train"]["loss"] for name in ("cub", "cars")}
    assert entries["contextual_7"]["lambda"] == {name: losses[name]["lam"] for name in ("cub", "cars")}
    keys = {"eps": "eps", "gamma": "gamma", "target": "target_similarity"}
    tuned = plan.settings("contextual_256", "sop")["train"]["loss"]
    assert entries["contextual_13"] == {name: tuned[key] for name, key in keys.items()}
    matched = plan.settings("margin_diml", "cub")
    assert matched["evaluate"]["scoring"]["truncation"] == entries["diml_3"]["K"]
    assert matched["embed"]["representation"]["side"] == entries["diml_4"]["G"]


def test_a_run_reached_by_two_sweeps_counts_once_and_a_missing_metric_is_named(tmp_path):
    runs = [Run("a", "sop", "shop", 0, "metrics", written(tmp_path, 0, 0.5), {"eps": 0.05}) for _ in range(2)]
    frame = read_measured(runs, {"metrics": ["R@1"], "paper": {"eps": {"sop": 0.05}}})
    assert list(frame["R@1"]) == [0.5, 0.49]
    assert list(frame["paper eps"]) == [0.05, 0.05]
    with pytest.raises(ValueError, match=r"0\.json has no metric 'NMI'; it has R@1"):
        read_measured(runs, {"metrics": ["NMI"]})


def test_a_rise_within_the_interval_is_undecided_and_one_seed_says_so():
    clear = rising(table(frame_of({1: [0.1, 0.11], 2: [0.2, 0.21], 4: [0.3, 0.31]}), "x", "R@1"), "rises")
    assert clear.holds is True
    assert "rises in 2 of 2 steps, rank correlation +1.00" in clear.says
    assert rising(table(frame_of({1: [0.1, 0.3], 2: [0.3, 0.1]}), "x", "R@1"), "rises").holds is None
    assert rising(table(frame_of({1: [0.3, 0.31], 2: [0.1, 0.11]}), "x", "R@1"), "rises").holds is False
    single = rising(table(frame_of({1: [0.1], 2: [0.2]}), "x", "R@1"), "rises")
    assert single.holds
    assert "points, one seed" in single.says


def test_differences_are_counted_and_paired_over_the_seeds():
    higher, lower = pd.Series([2.0, 2.2]), pd.Series([-0.9, -0.9])
    check = mostly([higher, higher, higher, lower], "better")
    assert "in 3 of 4 cases, on average +1.4 points" in check.says
    assert (check.holds, check.verdict) == (True, "yes")
    assert always([higher, higher, lower], "better").holds is False
    assert always([higher, higher], "better").holds is True
    assert mostly([lower, lower, lower, lower, higher], "better").holds is False
    assert mostly([higher, higher, higher, 10 * lower], "better").holds is None  # most are higher, their mean is not
    unclear = mostly([pd.Series([-1.0, 2.0])] * 3, "better")
    assert (unclear.holds, unclear.verdict) == (None, "undecided")
    assert difference(pd.Series([1.0]), pd.Series([2.0])) == ("-1.0 points, one seed", False)


def test_weights_are_best_within_the_papers_range_and_never_hurt():
    rows = [
        {"dataset": "birds", "seed": 0, "gamma": gamma, "lambda": lam, "checkpoint": "best", "R@1": lam / 2 + gamma}
        for gamma in (0.0, 0.1)
        for lam in (0.0, 0.5, 1.0)
    ]
    mixture, regulariser = check_weights(pd.DataFrame(rows))
    assert mixture.holds is False
    assert regulariser.holds is True
    rows[3]["R@1"] = -0.1  # one case in three, with the regulariser
    rows[4]["lambda"] = rows[1]["lambda"] = 0.9
    rows[4]["R@1"] = 0.9
    mixture, regulariser = check_weights(pd.DataFrame(rows))
    assert mixture.holds is True
    assert regulariser.holds is False
    assert "in 2 of 3 cases" in regulariser.says and "lowers it by up to 10.0" in regulariser.says


def test_five_of_eight_single_runs_are_no_verdict():
    cases = [pd.Series([value]) for value in (3.0, 4.0, 2.0, 5.0, 4.0, -2.0, -3.0, -1.8)]
    check = mostly(cases, "the full loss is better than min")
    assert "in 5 of 8 cases, on average +1.4 points, one seed" in check.says
    assert check.verdict == "undecided"
