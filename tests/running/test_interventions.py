"""One variable lets Snakemake run a call as it is."""

from types import SimpleNamespace

import pytest

from lookalike.running import interventions, jobs
from lookalike.running.interventions import VARIABLE, before_a_call, before_its_jobs, is_plain


@pytest.fixture
def workflow(monkeypatch):
    monkeypatch.setattr(jobs, "start_parent", lambda *, tracked: f"parent, tracked: {tracked}")
    return SimpleNamespace(is_main_process=True, local_exec=True, scheduler=SimpleNamespace(job_rate_limiter="limit"))


@pytest.mark.parametrize(("value", "plain"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_variable_is_off_where_it_is_empty_or_zero(monkeypatch, value, plain):
    monkeypatch.setenv(VARIABLE, value)
    assert is_plain() == plain


def test_jobs_have_a_parent_and_no_limit_unless_the_call_is_plain(workflow, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    assert before_its_jobs(workflow, tracked=True) is None
    assert workflow.scheduler.job_rate_limiter == "limit"
    monkeypatch.delenv(VARIABLE)
    assert before_its_jobs(workflow, tracked=True) == "parent, tracked: True"
    assert workflow.scheduler.job_rate_limiter is None


def test_jobs_of_a_scheduler_have_no_parent_here_and_keep_the_limit(workflow, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    workflow.local_exec = False
    assert before_its_jobs(workflow, tracked=False) is None
    assert workflow.scheduler.job_rate_limiter == "limit"


@pytest.fixture
def lock(tmp_path, monkeypatch):
    path = tmp_path / ".snakemake" / "locks" / "0.input.lock"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.chdir(tmp_path)
    return path


def test_locks_of_dead_calls_stay_where_the_call_is_plain(workflow, lock, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    before_a_call(workflow)
    assert lock.exists()
    monkeypatch.delenv(VARIABLE)
    before_a_call(workflow)
    assert not lock.exists()


def test_a_job_on_another_machine_does_not_pass_for_a_call_that_is_alive(workflow, lock, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    workflow.is_main_process = False
    before_a_call(workflow)
    assert lock.exists()
    assert not (lock.parents[1] / "alive.lock").exists()


def test_all_four_are_told_in_one_place():
    assert [line[0] for line in interventions.__doc__.splitlines() if line[:1].isdigit()] == ["1", "2", "3", "4"]
