"""The complete plan of the papers resolves in a dry run of Snakemake, to the jobs that ``lookalike plan`` tells."""

import re

import pytest

from lookalike.command.costs.jobs import job_counts
from lookalike.plan.plan import Plan

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True}


@pytest.mark.slow
def test_a_dry_run_of_the_papers_has_the_jobs_that_the_plan_tells(project):
    done = project.run("--dry-run --config scale=paper -- tables")
    assert done.returncode == 0, done.stderr
    stats = (done.stdout + done.stderr).rpartition("Job stats:")[2].partition("total")[0]
    jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", stats, re.MULTILINE)}
    assert jobs == {rule: count for rule, count in job_counts(Plan(PAPER)).items() if count}
    assert sum(jobs.values()) > 500
