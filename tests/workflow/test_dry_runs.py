"""What calls would run, as Snakemake plans it: the papers in full, targets too long for a test, and choices."""

import re

import pytest
from quotes import trainings

from lookalike.app.command.costs.jobs import job_counts
from lookalike.workflow.plan.plan import Plan

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True}

pytestmark = pytest.mark.slow


def planned(project, call):
    """Jobs of a call by their rule."""
    done = project.run(f"--dry-run {call}")
    assert done.returncode == 0, done.stderr
    stats = (done.stdout + done.stderr).rpartition("Job stats:")[2].partition("total")[0]
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", stats, re.MULTILINE)}


def test_a_dry_run_of_the_papers_has_the_jobs_that_the_plan_tells(project):
    jobs = planned(project, "--config scale=paper -- tables")
    assert jobs == {rule: count for rule, count in job_counts(Plan(PAPER)).items() if count}
    assert sum(jobs.values()) > 500


@pytest.mark.parametrize("target", ["ablations", "figures", "grid"])
def test_a_target_trains_as_often_as_the_documents_say(project, target):
    assert planned(project, target)["train"] == int(trainings(target))


def test_the_start_is_made_anew_on_request(project):
    assert planned(project, "pretrain --forcerun pretrain") == {"pretrain": 1}


def test_an_epoch_chosen_on_held_out_classes_takes_a_training_of_its_own(project):
    metrics = "results/mini_held_out/metrics/margin/figurines_birds/seed0.json"
    jobs = planned(project, f"--config selection=held_out -- {metrics}")
    assert {rule: jobs[rule] for rule in ("hold_out", "select", "train", "evaluate")} == {
        "hold_out": 1,
        "select": 1,
        "train": 1,
        "evaluate": 1,
    }
