"""Trials run where they change something, over enough seeds for an interval."""

import pytest

from lookalike.plan.fidelity import trials
from lookalike.plan.plan import Plan
from lookalike.plan.trials import overruled_trials, trial_runs

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}


@pytest.fixture(scope="module")
def runs():
    return trial_runs(Plan(MINI))


def datasets(runs, trial):
    return list(runs[runs["recipe"] == trial]["published"].unique())


def test_every_trial_runs_beside_its_recipe_or_is_overruled(runs):
    overruled = overruled_trials(Plan(MINI))
    expected = {(trial.name, trial.recipe) for trial in trials() if trial.name not in overruled}
    assert set(runs[["recipe", "unchanged"]].itertuples(index=False, name=None)) == expected
    assert {"fidelity_learning_rates_paper", "fidelity_trunk_rate_paper"} <= set(overruled)
    assert not set(overruled) & set(runs["recipe"])


def test_a_trial_runs_on_cub_unless_it_is_about_other_data_sets(runs):
    assert datasets(runs, "fidelity_ties_paper") == ["cub"]
    assert datasets(runs, "fidelity_level_negative_margin_paper") == ["sop"]
    assert datasets(runs, "fidelity_repeated_groups_released") == ["cub", "cars"]
    assert runs.groupby("recipe")["published"].nunique().max() == 2
    assert {"figurines_birds", "figurines_vehicles", "figurines_products"} == set(runs["dataset"])


def test_nothing_is_overruled_at_the_papers_scale():
    plan = Plan({**MINI, "scale": "paper"})
    assert overruled_trials(plan) == []
    assert datasets(trial_runs(plan), "fidelity_trunk_rate_paper") == ["cub", "cars"]


def test_the_scale_of_the_gate_overrules_what_mini_does():
    assert overruled_trials(Plan({**MINI, "scale": "ci"})) == overruled_trials(Plan(MINI))


def test_a_trial_whose_data_set_a_scale_lacks_runs_on_the_usual_one_and_shares_all(runs):
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
