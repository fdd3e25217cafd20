"""Ranking losses mixed with the contrastive one, over the grid of one sweep."""

import itertools
import math

import pytest

from figure_checks import mean, so
from lookalike.base.files import write_json
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.figures.contextual.surrogates import (
    checks_grid,
    checks_summary,
    data,
    draw_grid,
    draw_summary,
)
from lookalike.workflow.report.figures.parts.form import NoOptions, Run
from lookalike.workflow.report.figures.parts.style import style
from projects import spoil

LOSSES = ("contextual", "roadmap", "smooth_ap")


@pytest.fixture
def runs(tmp_path):
    """Metrics of every point of a small grid; ``shared`` rates read one file, as at a scale with one rate."""

    def write(recall, *, shared=True, losses=LOSSES, datasets=("birds",), seeds=(0,)):
        made = []
        for dataset, seed, loss, lam, margin, rate in itertools.product(
            datasets, seeds, losses, ("0.0", "0.8", "1.0"), ("0.6", "0.9"), ("2e-05", "8e-05")
        ):
            name = [dataset, str(seed), loss, lam, margin, *([] if shared else [rate])]
            path = tmp_path / ("_".join(name) + ".json")
            value = recall(dataset, seed, loss, float(lam), float(margin), float(rate))
            write_json(path, {"last": {"R@1": value, "train_R@1": value / 2}})
            place = {"loss": loss, "lambda": lam, "margin": margin, "rate": rate}
            made.append(Run("x", dataset, dataset, seed, "metrics", str(path), place))
        return made

    return write


def plan_of(scale):
    return Plan({"scale": scale, "seeds": [0], "archives": "data/archives", "tracking": False})


def recall(dataset, seed, loss, lam, margin, rate):
    return {"contextual": 0.5, "roadmap": 0.4, "smooth_ap": 0.3}[loss] + 0.1 * lam - 0.1 * margin + 0.02 * seed


def test_rates_that_share_every_training_are_one_point(runs):
    frame = data(runs(recall), NoOptions())
    assert len(frame) == 3 * 3 * 2
    assert frame["rate"].isna().all()
    assert not frame["again"].any()
    [row] = frame[(frame["loss"] == "roadmap") & (frame["lambda"] == 0.8) & (frame["margin"] == 0.9)].to_dict("records")
    assert row["R@1"] == pytest.approx(0.4 + 0.08 - 0.09)
    assert row["train_R@1"] == pytest.approx(row["R@1"] / 2)


def test_a_training_that_stands_for_two_margins_counts_once(runs):
    made = runs(recall, losses=("contextual", "roadmap"))
    alike = [run for run in made if run.place["lambda"] == "1.0" and run.place["loss"] == "roadmap"]
    frame = data([Run(**{**vars(run), "path": alike[0].path}) if run in alike else run for run in made], NoOptions())
    assert frame["again"].sum() == 1
    # 0.4 + 0.08 - 0.06, 0.4 + 0.08 - 0.09 and once 0.4 + 0.1 - 0.06
    assert "ROADMAP 44.0 % (42.0 %)" in checks_summary(frame)[0].says


def test_rates_with_trainings_of_their_own_stay_apart(runs):
    frame = data(runs(recall, shared=False), NoOptions())
    assert len(frame) == 3 * 3 * 2 * 2
    assert sorted(frame["rate"].unique()) == [2e-5, 8e-5]
    with style():
        assert len(draw_grid(frame[frame["loss"] == "roadmap"]).axes) == 2 * 2


def test_a_run_without_training_pictures_is_refused(runs):
    [first, *_] = made = runs(recall)
    write_json(first.path, {"last": {"R@1": 0.5}})
    with pytest.raises(ValueError, match=r"holds no train_R@1 of the last epoch; embed\.training_pictures"):
        data(made, NoOptions())


def test_the_best_point_of_a_loss_is_its_own_not_that_of_the_contrastive_loss_alone(runs):
    only_contrastive = lambda *point: 0.9 if point[3] == 0 else 0.2 + 0.1 * point[3]  # noqa: E731
    found, alone = checks_grid(data(runs(only_contrastive, losses=("roadmap",)), NoOptions()))
    assert "of ROADMAP at λ > 0 is at best 30.0 % (λ = 1; train R@1 15.0 %), over the grid 28.0 %" in found.says
    assert "reaches 90.0 %" in alone.says
    assert found.holds is None
    assert alone.holds is None


def test_the_verdict_of_each_data_set_takes_means_over_seeds(runs):
    frame = data(runs(recall, datasets=("birds", "vehicles"), seeds=(0, 1)), NoOptions())
    birds, vehicles = checks_summary(frame)
    assert so(birds) and so(vehicles)
    # contextual 0.5 + 0.1 - 0.06 + 0.01, ROADMAP one tenth less
    assert mean(birds) == pytest.approx(10.0)
    assert "Contextual 55.0 % (52.5 %)" in birds.says
    worse = lambda dataset, *point: 0.9 if (dataset, point[1]) == ("vehicles", "smooth_ap") else recall(dataset, *point)  # noqa: E731
    birds, vehicles = checks_summary(data(runs(worse, datasets=("birds", "vehicles")), NoOptions()))
    assert so(birds)
    assert not so(vehicles)


def test_the_summary_has_a_panel_per_data_set_and_a_line_per_loss(runs):
    frame = data(runs(recall, datasets=("figurines_birds", "cars")), NoOptions())
    with style():
        axes = draw_summary(frame).axes
    assert [panel.get_title() for panel in axes] == ["birds", "cars"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["Contextual", "ROADMAP", "Smooth-AP"]
    best = max(line.get_xdata()[0] for line in axes[0].get_lines()[1:] if len(line.get_xdata()) == 1)
    assert math.isclose(best, 54, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("scale", "sweep", "trainings"),
    [
        # Five losses at two lambda and three margins, and once at lambda 1; the contrastive loss at three margins.
        ("mini", "contextual_surrogates", 5 * (2 * 3 + 1) + 3),
        ("mini", "contextual_surrogates_sop", 2 * (2 * 3 + 1) + 3),
        # The same at each of four rates.
        ("paper", "contextual_surrogates", 4 * (5 * (2 * 3 + 1) + 3)),
    ],
)
def test_points_that_nothing_tells_apart_share_a_training(scale, sweep, trainings):
    plan = plan_of(scale)
    runs_of_points = plan.runs_of(sweep).query("not trivial")
    for dataset, runs in runs_of_points.groupby("dataset"):
        assert len({plan.shared("train", recipe, dataset) for recipe in runs["recipe"]}) == trainings


@pytest.mark.parametrize("lam", ["0.4", "0.8", "1.0"])
def test_the_sweep_gives_ranking_and_contrastive_loss_weights_that_sum_to_one(lam):
    plan = plan_of("paper")
    for point in plan.sweeps["contextual_surrogates"].points:
        loss = plan.deciding(point.name, "cars")["train"]["loss"]
        assert loss["positive_margin"] == (0.75 if point.at["lambda"] == "1.0" else float(point.at["margin"]))
        if point.at["lambda"] == lam:
            assert loss["name"] == point.at["loss"]
            weight = loss["lam"] if loss["name"] == "contextual" else 1 - loss["contrastive_weight"]
            assert weight == pytest.approx(float(lam))
            assert loss.get("gamma", 0) == 0
        if point.at["lambda"] == "0.0":
            assert loss["name"] == "contrastive_cosine"


@pytest.mark.parametrize(
    ("figure", "loss", "dataset"),
    [
        ("contextual_19", "roadmap", "figurines_birds"),
        ("contextual_27", "blackbox_ap", "figurines_vehicles"),
        ("contextual_28", "contextual", "figurines_products"),
    ],
)
def test_a_figure_reads_its_own_part_of_the_sweep(figure, loss, dataset):
    plan = plan_of("mini")
    runs = figure_runs(plan, read_figures(plan)[figure])
    assert len(runs) == 4 * 3 * 4 * 3  # the last for the seeds
    assert {(run.place["loss"], run.dataset) for run in runs} == {(loss, dataset)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "at: {loss: smooth_ap}",
            "at: {loss: smooth}",
            r"contextual_20\.runs\.0\.at: sweep contextual_surrogates has no",
        ),
        (
            "smooth_ap}, datasets: [cub]",
            "smooth_ap}, datasets: [sop]",
            r"contextual_20\.runs\.0\.datasets: unknown 'sop'",
        ),
    ],
)
def test_a_part_of_a_sweep_that_is_not_there_is_refused(params, old, new, message):
    spoil(params / "figures.yaml", old, new)
    with pytest.raises(ValueError, match=message):
        read_figures(plan_of("mini"))
