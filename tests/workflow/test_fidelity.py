"""The target `fidelity` trains each trial and its unchanged recipe once, and nothing that the scale overrules."""

import re

import pytest

from lookalike.workflow.plan.fidelity import trials
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.fidelity import overruled_trials
from projects import make_project

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
LINE = "-n --cores all fidelity"

pytestmark = pytest.mark.slow


def planned(text, verb):
    """Recipe, data set and seed of the jobs of a stage, with repetitions."""
    return re.findall(rf"Job \d+: {verb} (\w+) on (\w+), seed (\d+)", text)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a committed document, which must not stand for runs."""
    project = make_project(tmp_path_factory.mktemp("fidelity") / "project")
    (project.root / "docs").mkdir(exist_ok=True)
    (project.root / "docs" / "fidelity.md").write_text("from another machine\n")
    return project


@pytest.fixture(scope="module")
def dry_run(project):
    done = project.run(LINE)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_each_trial_trains_once_per_seed_and_data_set_unless_it_shares_a_training(dry_run):
    plan = Plan(MINI)
    trained = planned(dry_run, "Train")
    assert len(trained) == len(set(trained))
    assert {seed for _, _, seed in trained} == {"0", "1", "2"}
    # Trials of embedding or evaluation alone, which share the training of the recipe that they change.
    sharing = {"fidelity_location_pooling_paper", "fidelity_solver_released", "fidelity_count_query_in_r_paper"}
    expected = {trial.name for trial in trials()} - {*overruled_trials(plan), *sharing}
    recipes = {recipe for recipe, _, _ in trained}
    assert {recipe for recipe in recipes if recipe.startswith("fidelity_")} == expected
    unchanged = {(recipe, dataset) for recipe, dataset, _ in trained if not recipe.startswith("fidelity_")}
    tried = {(recipe, dataset) for recipe, dataset, _ in trained} - unchanged
    assert len(tried) == len(expected) + 1  # one trial runs on two data sets
    assert len(trained) == 3 * (len(tried) + len(unchanged))
    assert ("avsl_proxy_anchor", "figurines_products") in unchanged


def test_nothing_that_the_scale_overrules_is_run(dry_run):
    overruled = overruled_trials(Plan(MINI))
    assert overruled
    assert not set(overruled) & {recipe for recipe, _, _ in planned(dry_run, "Evaluate")}


def test_seeds_of_the_call_are_taken_where_there_are_two(project):
    done = project.run(f"{LINE} --config seeds=[3,4]")
    assert done.returncode == 0, done.stderr
    assert {seed for _, _, seed in planned(done.stdout + done.stderr, "Train")} == {"3", "4"}


def test_a_committed_document_does_not_stand_for_runs(project, dry_run):
    assert (project.root / "docs" / "fidelity.md").read_text() == "from another machine\n"
    assert planned(dry_run, "Train")


def test_the_target_is_run_by_name_only(project):
    done = project.run("-n --cores all --config scale=ci")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "Assemble ci_recipes" in said
    assert "fidelity_" not in said
