"""Trials run where they change something, and the document lists every point with what each choice changed."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from lookalike.workflow.plan.fidelity import choices, papers, trials
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.fidelity import (
    COLUMNS,
    Tried,
    document,
    fidelity,
    fidelity_cells,
    overruled_trials,
    trial_runs,
)
from projects import ROOT

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
TRIAL = next(trial for trial in trials() if trial.option == "ties")
TRIALS = {trial.name: trial for trial in trials()}


@pytest.fixture(scope="module")
def planned():
    return trial_runs(Plan(MINI))


def datasets(planned, trial):
    return list(planned[planned["recipe"] == trial]["published"].unique())


def test_every_trial_runs_beside_its_recipe_or_is_overruled(planned):
    overruled = overruled_trials(Plan(MINI))
    expected = {(trial.name, trial.recipe) for trial in trials() if trial.name not in overruled}
    assert set(planned[["recipe", "unchanged"]].itertuples(index=False, name=None)) == expected
    assert {"fidelity_learning_rates_paper", "fidelity_trunk_rate_paper"} <= set(overruled)
    assert not set(overruled) & set(planned["recipe"])


def test_a_trial_runs_on_cub_unless_it_is_about_other_data_sets(planned):
    assert datasets(planned, "fidelity_ties_paper") == ["cub"]
    assert datasets(planned, "fidelity_level_negative_margin_paper") == ["sop"]
    assert datasets(planned, "fidelity_repeated_groups_released") == ["cub", "cars"]
    assert planned.groupby("recipe")["published"].nunique().max() == 2
    assert {"figurines_birds", "figurines_vehicles", "figurines_products"} == set(planned["dataset"])


def test_nothing_is_overruled_at_the_papers_scale():
    plan = Plan({**MINI, "scale": "paper"})
    assert overruled_trials(plan) == []
    assert datasets(trial_runs(plan), "fidelity_trunk_rate_paper") == ["cub", "cars"]


def test_the_scale_of_the_gate_overrules_what_mini_does():
    assert overruled_trials(Plan({**MINI, "scale": "ci"})) == overruled_trials(Plan(MINI))


def test_a_trial_whose_data_set_a_scale_lacks_runs_on_the_usual_one_and_shares_all(planned):
    plan, name = Plan({**MINI, "scale": "ci"}), "fidelity_level_negative_margin_paper"
    assert datasets(trial_runs(plan), name) == ["cub"]
    assert plan.shared("evaluate", name, "figurines_few_birds") == "avsl_proxy_anchor"


def test_own_pictures_stand_for_nothing_and_are_tried_on_all_the_same():
    own = {"name": "mine", "datasets": {"pictures": {"layout": "folder", "folder": "x"}}}
    found = trial_runs(Plan({**MINI, **own}))
    assert set(found["dataset"]) == {"pictures"}
    assert {"fidelity_ties_paper", "fidelity_learning_rates_paper"} <= set(found["recipe"])


@pytest.mark.parametrize(("seeds", "expected"), [([0], [0, 1, 2]), ([7], [0, 1, 2]), ([3, 5], [3, 5])])
def test_a_single_seed_becomes_three(seeds, expected):
    found = trial_runs(Plan({**MINI, "seeds": seeds}))
    assert set(found.groupby("recipe", sort=False)["seed"].unique().map(lambda each: tuple(dict.fromkeys(each)))) == {
        tuple(expected)
    }


@pytest.fixture
def write(tmp_path):
    """Run the stage on metrics of two seeds."""

    def run(published):
        place = {"recipe": TRIAL.name, "unchanged": TRIAL.recipe, "dataset": "birds", "published": "cub"}
        files = {}
        for side, recall in (("metrics", 0.6), ("metrics_unchanged", 0.5)):
            files[side] = [tmp_path / f"{side}{seed}.json" for seed in (0, 1)]
            for path in files[side]:
                scores = {"last": {"R@1": recall, "MAP@R": 0.1}, "best": {"R@1": 0.0, "MAP@R": 0.0}}
                path.write_text(json.dumps(scores))
        runs = [{**place, "seed": seed} for seed in (0, 1)]
        fidelity(runs, scale="ci", overruled=[], **files, output=str(tmp_path / "fidelity.csv"), published=published)
        return tmp_path

    return run


def test_the_last_epochs_are_compared(write):
    cells = pd.read_csv(write("") / "fidelity.csv").set_index("metric")
    assert cells["difference"].to_dict() == {"R@1": pytest.approx(10), "MAP@R": 0}
    assert set(cells["option"]) == {"ties"}


def test_the_document_is_published_only_where_it_is_asked_for(write, tmp_path):
    folder = write("")
    assert "R@1 +10.0 (+10.0 to +10.0)" in (folder / "fidelity.md").read_text()
    assert not (folder / "docs").exists()
    write(str(tmp_path / "docs" / "fidelity.md"))
    assert (folder / "docs" / "fidelity.md").read_text() == (folder / "fidelity.md").read_text()


def rows(markdown):
    """Cells of all lines of tables."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("\\|", "|") for cell in line] for line in lines]


def changes(markdown):
    """What the document says of each option, its choices in order."""
    said, option = {}, ""
    for row in rows(markdown):
        if len(row) == 7 and not {"option", "---"} & {row[4]}:
            option = row[4].partition(" on ")[0].strip("`") or option
            said.setdefault(option, []).append(row[6])
    return said


def cells(*values):
    """Rows of `fidelity_cells` from what the document reads of them."""
    read = ["recipe", "dataset", "published", "metric", "difference", "low", "high", "n"]
    return pd.DataFrame(values, columns=read).reindex(columns=COLUMNS)


def run(recipe, seed, changed, unchanged, *, dataset="figurines_birds", published="cub"):
    place = {"recipe": recipe, "unchanged": TRIALS[recipe].recipe, "dataset": dataset, "published": published}
    return Tried(**place, seed=seed, metrics=changed, metrics_unchanged=unchanged)


def test_every_option_stands_with_its_choices_and_every_fixed_point_without():
    text = document()
    table = rows(text)
    for paper in papers():
        content = choices(paper)
        for point in (*content.options.values(), *content.fixed):
            expected = [point.point, point.paper or "–", point.released or "–", point.recommended]
            assert any(row[:4] == expected for row in table), expected
    levels = [row[5].partition(":")[0] for row in table if len(row) == 7 and row[5] not in ("level", "---")]
    assert levels == [trial.level for trial in TRIALS.values()]
    assert {len(row) for row in table} == {5, 7}
    assert "snakemake --cores all fidelity" in text


def test_a_choice_is_said_to_change_what_the_cells_hold():
    found = changes(
        document(
            cells(
                ("fidelity_sigmoid_scale_paper", "birds", "cub", "R@1", -0.42, -0.9, 0.06, 5),
                ("fidelity_sigmoid_scale_paper", "birds", "cub", "MAP@R", 1.0, 0.5, 1.5, 5),
                ("fidelity_mask_hard", "birds", "cub", "R@1", 0.3, 0.1, 0.5, 3),
                ("fidelity_level_negative_margin_paper", "products", "sop", "R@1", 2.0, 1.0, 3.0, 3),
                ("fidelity_repeated_groups_released", "birds", "cub", "R@1", 1.0, -1.0, 3.0, 3),
                ("fidelity_repeated_groups_released", "cars", "cars", "R@1", -1.0, -3.0, 1.0, 3),
            )
        )
    )
    assert found["sigmoid_scale"] == ["R@1 -0.4 (-0.9 to +0.1), MAP@R +1.0 (+0.5 to +1.5), n = 5"]
    assert found["mask"] == ["not run", "R@1 +0.3 (+0.1 to +0.5), n = 3", "not run", "not run"]
    assert found["level_negative_margin"] == ["on products R@1 +2.0 (+1.0 to +3.0), n = 3"]
    both = "R@1 +1.0 (-1.0 to +3.0), n = 3; on cars R@1 -1.0 (-3.0 to +1.0), n = 3"
    assert found["repeated_groups"] == [both]
    assert found["ties"] == ["not run"]


def test_no_effect_is_said_only_where_no_seed_differs():
    found = changes(
        document(
            cells(
                ("fidelity_ties_paper", "birds", "cub", "R@1", 0.0, 0.0, 0.0, 3),
                ("fidelity_ties_paper", "birds", "cub", "MAP@R", 0.0, 0.0, 0.0, 3),
                ("fidelity_min_over_map", "birds", "cub", "R@1", 0.0, -1.2, 1.2, 3),
                ("fidelity_count_query_in_r_paper", "birds", "cub", "R@1", 0.0, 0.0, 0.0, 3),
                ("fidelity_count_query_in_r_paper", "birds", "cub", "RP", 0.5, 0.4, 0.6, 3),
            )
        )
    )
    assert found["ties"] == ["no effect"]
    assert found["min_over"] == ["R@1 +0.0 (-1.2 to +1.2), n = 3"]
    assert found["count_query_in_r"] == ["R@1 +0.0 (+0.0 to +0.0), RP +0.5 (+0.4 to +0.6), n = 3"]


def test_an_overruled_trial_is_set_by_the_scale_that_is_named():
    text = document(overruled=["fidelity_learning_rates_paper"], scale="ci")
    assert changes(text)["learning_rates"] == ["set by ci"]
    assert changes(text)["ties"] == ["not run"]
    assert "| change at ci |" in text


def test_cells_are_differences_over_paired_seeds_in_percent():
    name = "fidelity_ties_paper"
    found = fidelity_cells(
        [
            run(name, 0, {"R@1": 0.52, "MAP@R": 0.3, "RP": 0.1}, {"R@1": 0.5, "MAP@R": 0.3, "RP": 0.1}),
            run(name, 1, {"R@1": 0.66, "MAP@R": 0.3, "RP": 0.1}, {"R@1": 0.6, "MAP@R": 0.3, "RP": 0.1}),
        ]
    ).set_index("metric")
    assert list(found.index) == ["R@1", "MAP@R"]
    recall = found.loc["R@1"]
    assert (recall["paper"], recall["option"], recall["level"], recall["n"]) == ("avsl", "ties", "paper", 2)
    assert recall["mean"] == pytest.approx(59, abs=1e-9)
    assert recall["mean_unchanged"] == pytest.approx(55, abs=1e-9)
    assert recall["difference"] == pytest.approx(4, abs=1e-9)
    half = 12.7062047 * (8**0.5) / 2**0.5  # Student's 97.5 % quantile, deviation of 2 and 6
    assert (recall["low"], recall["high"]) == pytest.approx((4 - half, 4 + half), abs=1e-5)
    assert list(found.loc["MAP@R", ["difference", "low", "high"]]) == [0, 0, 0]


def test_precision_at_r_is_shown_where_r_is_what_is_tried():
    metrics = {"R@1": 0.5, "MAP@R": 0.3, "RP": 0.1}
    found = fidelity_cells([run("fidelity_count_query_in_r_paper", seed, metrics, metrics) for seed in (0, 1)])
    assert list(found["metric"]) == ["R@1", "MAP@R", "RP"]


def test_data_sets_of_a_trial_stay_apart():
    name = "fidelity_repeated_groups_released"
    first = [run(name, seed, {"R@1": 0.5, "MAP@R": 0.2}, {"R@1": 0.4, "MAP@R": 0.2}) for seed in (0, 1)]
    second = [
        replace(each, dataset="figurines_vehicles", published="cars", metrics={"R@1": 0.3, "MAP@R": 0.2})
        for each in first
    ]
    found = fidelity_cells([*first, *second])
    assert list(found["dataset"]) == ["figurines_birds"] * 2 + ["figurines_vehicles"] * 2
    assert list(found["difference"]) == pytest.approx([10, 0, -10, 0], abs=1e-9)


def test_the_document_on_disk_is_that_of_the_parameter_files():
    def without_changes(text):
        return [row[:6] for row in rows(text)]

    on_disk = (ROOT / "docs" / "fidelity.md").read_text()
    assert without_changes(on_disk) == without_changes(document())
