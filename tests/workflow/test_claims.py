"""The target `claims` plans both recipes of every pair for several seeds."""

import re
from itertools import product

import pytest

from lookalike.workflow.plan.claims import claim_runs, read_claims
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import result_file
from projects import make_project
from recorded import leave

pytestmark = pytest.mark.slow

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """What a dry run says, in a project with verdicts from elsewhere."""
    project = make_project(tmp_path_factory.mktemp("claims") / "project")
    for suffix in ("csv", "md"):
        path = project.root / "results" / "mini" / f"claims.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from another machine\n")
    done = project.run("-n --cores 1 claims --quiet reason")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_three_seeds_of_every_pair_are_planned(text):
    plan = Plan(MINI)
    runs = claim_runs(plan, read_claims(plan))
    sides = ("changed", "baseline", "learned", "started", "mapped")
    recipes = {recipe for run in runs for side in sides for _, recipe in run.read(side)}
    evaluated = set(re.findall(r"Job \d+: Evaluate (\w+) on (\w+), seed (\d)", text))
    assert {seed for _, _, seed in evaluated} == {"0", "1", "2"}
    assert {plan.shared("evaluate", recipe, "figurines_birds") for recipe in recipes} == {each[0] for each in evaluated}
    attended = re.findall(r"Job \d+: Measure the attention of (\w+) on (\w+), seed (\d)", text)
    assert ("sam_triplet", "figurines_birds", "2") in attended
    assert len(attended) == len(set(attended)) == 6 * 3
    assert "Hold the papers' claims against the measured runs" in text


def test_verdicts_that_are_there_already_do_not_stand_for_runs(text):
    assert "Evaluate sam_triplet on figurines_birds, seed 2" in text


def test_where_a_call_is_to_say_what_was_not_run_nothing_learns_and_starts_are_made(project):
    plan = Plan({**MINI, "scale": "ci"})
    inputs, dataset = Inputs(plan), "figurines_few_birds"
    for recipe, seed in product(("sam_siamese", "siamese"), range(3)):
        file = project.root / inputs.reference_folder / result_file(plan, "metrics", recipe, dataset, seed)
        leave(file, {"last": {"R@1": 0.5}}, **inputs.today(recipe, dataset, seed))
        file.with_suffix(".classes.csv").touch()
    done = project.run("-n --cores 1 claims --quiet reason --config scale=ci missing=say")
    text = done.stdout + done.stderr
    trained, evaluated = (
        {*re.findall(rf"Job \d+: {kind} (\w+) on {dataset}, seed \d", text)} for kind in ("Train", "Evaluate")
    )
    before = ("start_of_siamese", "rca_of_siamese", "rca_of_sam_siamese")
    assert evaluated == {plan.shared("evaluate", recipe, dataset) for recipe in before}
    assert {plan.settings(recipe, dataset).train.loss for recipe in trained} == {None}
    assert "Hold the papers' claims against the measured runs" in text


def test_an_unknown_recipe_is_refused_before_any_job_of_any_target(project):
    project.edit("params/claims.yaml", "{changed: diml_trained_margin,", "{changed: diml_trained_margni,")
    done = project.run("-n --cores 1 tables")
    assert done.returncode != 0
    message = r"claims\.yaml, diml_training\.pairs\.0\.changed: unknown 'diml_trained_margni', did you mean"
    assert re.search(message, done.stdout + done.stderr)
