"""Jobs run in children of one preloaded parent, and fail with one clear line."""

import logging
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from snakemake.iocontainers import Namedlist

from interrupted import children
from lookalike.workflow.running import jobs, machine
from lookalike.workflow.stages import split
from waiting import BEGINS_S, wait_until

INPUT = {"model": "nowhere.safetensors", "manifest": "nowhere.csv"}
EMBEDDED = {"batch_size": 4, "representation": {"name": "own"}, "training_pictures": False}
SETTINGS = {"count_query_in_r": False, "nmi": False, "scoring": {"name": "cosine"}}
PARAMS = {"settings": SETTINGS, "embedded": EMBEDDED, "recall_at": [1], "root": "nowhere"}
OFFERED = {"output": {"metrics": "metrics.json"}, "input": INPUT, "params": PARAMS}
EVALUATE = {"stage": "evaluate", "offered": OFFERED}


@pytest.fixture(scope="module")
def parent():
    """A parent, and the address that the environment has of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(jobs.ADDRESS, "")
        process = jobs.start_parent(tracked=False)
        yield process
        process.stdin.close()
        process.wait(timeout=60)


def test_a_failing_stage_ends_with_one_line_and_leaves_its_traceback_in_the_log(tmp_path, monkeypatch):
    monkeypatch.delenv(jobs.ADDRESS, raising=False)
    log = tmp_path / "evaluate.log"
    with pytest.raises(SystemExit) as stopped:
        jobs.call({**EVALUATE, "log": str(log)})
    first, second = str(stopped.value.code).splitlines()
    assert first.startswith("evaluate: ")
    assert "nowhere.csv" in first
    assert second == f"log: {log}"
    assert "Traceback" in log.read_text()


def test_a_job_with_a_device_that_torch_cannot_use_fails_and_does_not_take_the_cpu(tmp_path, monkeypatch):
    monkeypatch.delenv(jobs.ADDRESS, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(machine, "device_files", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match=r"^evaluate: CUDA device 0 is there, but torch .* cannot use it"):
        jobs.call({**EVALUATE, "log": str(tmp_path / "evaluate.log"), "gpu": 1})


def stage_of(monkeypatch, function):
    """A stage of a test's own, which needs no torch: what `jobs.call` is asked for."""
    monkeypatch.setattr(split, "split", function)
    return {"stage": "split", "offered": {}, "gpu": None}


@pytest.fixture
def job(tmp_path):
    """The global ``snakemake`` of a script of rule ``split``, whose stage needs no torch."""
    files = Namedlist(toclone=["a", "b"])
    files._set_name("metrics", 0, end=2)
    files._set_name("strangers", 2, end=2)
    named = {"params": {"code": "c"}, "wildcards": {"dataset": "birds", "seed": "3"}, "resources": {}}
    named = {kind: Namedlist(fromdict=values) for kind, values in named.items()}
    config = {**dict.fromkeys(jobs.OF_CALL, 2), "tracking": False}
    log, output = Namedlist([str(tmp_path / "log")]), Namedlist(["split.csv"])
    return SimpleNamespace(rule="split", input=files, output=output, log=log, config=config, threads=4, **named)


def test_a_rule_hands_its_stage_what_its_arguments_are_called_by(job, monkeypatch):
    given = []

    def stage(output, metrics, dataset, seed, workers, mixed, strangers="nobody"):
        given.extend([output, metrics, dataset, seed, workers, mixed, strangers])

    stage_of(monkeypatch, stage)
    jobs.run(job)
    assert given == ["split.csv", ["a", "b"], "birds", 3, 3, 2, "nobody"]


def test_an_argument_that_nobody_names_or_two_do_is_refused_with_rule_and_stage(job, monkeypatch):
    job.params = Namedlist(fromdict={"stage": "lookalike.workflow.stages.split:split", "dataset": "another"})
    for function, said in (
        (lambda dataset: None, "'dataset' is named by params and wildcards; rename one of them"),
        (lambda root: None, "'root' is named by none of output, input, params, wildcards, call"),
    ):
        stage_of(monkeypatch, function)
        with pytest.raises(SystemExit, match=f"^split: rule split, stage split: argument {said}\nlog: {job.log[0]}"):
            jobs.run(job)


def test_a_warning_of_the_package_is_marked_in_the_log_of_its_job(tmp_path, monkeypatch):
    def warns():
        print("said")
        logging.getLogger("lookalike.workflow.data.screening").warning("%d pictures left out", 3)
        logging.getLogger("another.package").warning("not ours")

    jobs.call({**stage_of(monkeypatch, warns), "log": str(tmp_path / "log")})
    assert (tmp_path / "log").read_text().splitlines()[:2] == ["said", "warning: 3 pictures left out"]
    logging.getLogger("lookalike").warning("later")  # closes nothing that is still in use
    assert "later" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("local", [True, False])
def test_jobs_of_this_machine_have_a_parent_and_no_limit_and_those_of_a_scheduler_have_none(monkeypatch, local):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(jobs, "start_parent", lambda *, tracked: f"parent, tracked: {tracked}")
    workflow = SimpleNamespace(local_exec=local, scheduler=SimpleNamespace(job_rate_limiter="limit"))
    try:
        assert jobs.parent_of_jobs(workflow, tracked=True) == ("parent, tracked: True" if local else None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert workflow.scheduler.job_rate_limiter == (None if local else "limit")


@pytest.mark.slow
def test_a_stage_in_a_child_of_the_parent_fails_in_the_same_words(tmp_path, parent, monkeypatch):
    messages = []
    for address in (os.environ[jobs.ADDRESS], ""):
        monkeypatch.setenv(jobs.ADDRESS, address)
        with pytest.raises(SystemExit) as stopped:
            jobs.call({**EVALUATE, "log": str(tmp_path / "evaluate.log")})
        messages.append(stopped.value.code)
    assert messages[0] == messages[1]


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_fails_the_jobs_that_need_it_and_not_the_parent(tmp_path, monkeypatch):
    monkeypatch.setenv(jobs.ADDRESS, "")
    monkeypatch.setattr(jobs, "PRELOADED", ("lookalike.workflow.stages.misspelt", "torch"))
    process = jobs.start_parent(tracked=False)
    try:
        for stage, reason in (("misspelt", "ModuleNotFoundError: No module named"), ("evaluate", ".*nowhere")):
            with pytest.raises(SystemExit, match=f"^{stage}: {reason}"):
                jobs.call({**EVALUATE, "stage": stage, "log": str(tmp_path / f"{stage}.log")})
        assert process.poll() is None
    finally:
        process.stdin.close()
        process.wait(timeout=60)


@pytest.mark.slow
def test_a_job_that_asks_before_the_parent_runs_waits_and_is_its_child(tmp_path, monkeypatch):
    monkeypatch.setenv(jobs.ADDRESS, "")
    monkeypatch.setattr(jobs, "_perform", lambda request: "run by the one that asked, which nobody tells to end")
    process = jobs.start_parent(tracked=False)
    with pytest.raises(SystemExit, match=r"^evaluate: .*nowhere"):
        jobs.call({**EVALUATE, "log": str(tmp_path / "evaluate.log")})
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_the_parent_ends_with_the_call_that_started_it(monkeypatch):
    monkeypatch.setenv(jobs.ADDRESS, "")
    process = jobs.start_parent(tracked=False)
    address = Path(os.environ[jobs.ADDRESS])
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert not address.exists()


@pytest.mark.slow
def test_a_killed_child_is_reported_as_killed(tmp_path, parent):
    waits_for_ever = tmp_path / "split.csv"
    os.mkfifo(waits_for_ever)
    offered = {**OFFERED, "input": {**INPUT, "manifest": str(waits_for_ever)}}
    request = {**EVALUATE, "offered": offered, "log": str(tmp_path / "log")}
    failures = []
    waiting = threading.Thread(target=lambda: failures.append(jobs._ask_parent(os.environ[jobs.ADDRESS], request)))
    waiting.start()
    wait_until(
        lambda: children(parent.pid), BEGINS_S, "the child has not begun"
    )  # before it can refuse what is no file
    (child,) = children(parent.pid)
    os.kill(child, signal.SIGKILL)
    waiting.join(timeout=60)
    assert failures == ["the process running it was killed (out of memory?)"]


def test_a_job_in_a_process_of_its_own_hears_that_it_is_to_end(tmp_path, monkeypatch):
    def ends():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)

    before = signal.getsignal(signal.SIGTERM)
    said = r"^split: ended by SIGTERM; the same line goes on from what is on disk"
    with pytest.raises(SystemExit, match=said):
        jobs.call({**stage_of(monkeypatch, ends), "log": str(tmp_path / "log")})
    assert signal.getsignal(signal.SIGTERM) == before
