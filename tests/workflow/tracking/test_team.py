"""Runs of many jobs in one database: a real MLflow server over PostgreSQL, PostgreSQL itself, and a file of SQLite."""

import subprocess
import sys
import time
from contextlib import ExitStack

import psutil
import pytest
import torch

from databases import postgresql
from lookalike.app.command import main
from lookalike.base.files import write_json, write_tensors, write_text
from lookalike.workflow.tracking import send_finished
from tracked import mlflow_server, result, runs_in

pytestmark = pytest.mark.nightly

WRITERS, EPOCHS = 16, 20
ABOUT = {"settings": {"loss": {"name": "margin", "margin": 0.2}}, "seed": 0, "data": "0123456789abcdef"}
# As a call's jobs do it: forked from one parent, each with its files on disk when it sends them.
AT_ONCE = """
import os, sys
import mlflow  # once, for all
from lookalike.workflow.tracking import send_finished

children = []
for model in sys.argv[1:]:
    if child := os.fork():
        children.append(child)
        continue
    print(f"job {os.getpid()}")
    scores = model.replace("models", "metrics").replace("safetensors", "json")
    send_finished("train", model, model=model, settings={"loss": {"name": "margin"}})
    send_finished("evaluate", scores, model=model, settings={"scoring": {"name": "cosine"}})
    sys.stdout.flush()
    os._exit(0)
assert not any(os.waitpid(child, 0)[1] for child in children)
"""


def numbers_of(writer):
    """History and scores of one run, unlike those of every other."""
    history = [(epoch, 1 / (epoch + writer), 0.5 + writer / 100 + epoch / 1000) for epoch in range(1, EPOCHS + 1)]
    return history, {
        "best": {"R@1": 0.9 - writer / 100, "MAP@R": 0.4},
        "last": {"R@1": 0.8 - writer / 100, "MAP@R": 0.3},
    }


def write_result(root, writer):
    """Results of one writer, as they lie on disk; the file of its model."""
    history, scores = numbers_of(writer)
    recipe = f"recipe{writer}"
    write_json(result(root, "metrics", recipe), scores)
    lines = [f"{epoch},{loss!r},{recall!r}" for epoch, loss, recall in history]
    write_text(result(root, "models", recipe, "csv"), "\n".join(["epoch,loss,R@1", *lines]) + "\n")
    write_tensors(model := result(root, "models", recipe, "safetensors"), {"last/bias": torch.zeros(1)}, ABOUT)
    return model


def assert_every_number_is_there(uri):
    import mlflow

    client, runs = mlflow.MlflowClient(uri), runs_in(uri)
    assert sorted(runs) == sorted(f"recipe{writer}" for writer in range(WRITERS))
    for writer in range(WRITERS):
        run, (history, scores) = runs[f"recipe{writer}"], numbers_of(writer)
        assert run.info.status == "FINISHED"
        for name, column in (("epoch/loss", 1), ("epoch/R_at_1", 2)):
            points = client.get_metric_history(run.info.run_id, name)
            found = sorted((point.step, point.value) for point in points)
            assert found == [(line[0], pytest.approx(line[column], abs=1e-12)) for line in history]
        for checkpoint, values in scores.items():
            for name, value in values.items():
                assert run.data.metrics[f"{checkpoint}/{name.replace('@', '_at_')}"] == pytest.approx(value, abs=1e-12)
        assert sorted(file.path for file in client.list_artifacts(run.info.run_id)) == ["seed0.csv", "seed0.json"]


@pytest.fixture(params=["a server over PostgreSQL", "PostgreSQL itself", "a file of SQLite"])
def place(request, params, monkeypatch):
    with ExitStack() as stack:
        if request.param == "a file of SQLite":
            address = f"sqlite:///{params.parent / 'mlflow.db'}"
        else:
            address = stack.enter_context(postgresql())
            if request.param == "a server over PostgreSQL":
                address = stack.enter_context(mlflow_server(params.parent, store=address, workers=2))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        yield request.param, address


def test_sixteen_jobs_at_once_lose_no_number(place, params, monkeypatch, capsys):
    kind, uri = place
    models = [write_result(params.parent, writer) for writer in range(WRITERS)]
    command = [sys.executable, "-c", AT_ONCE, *models]
    done = subprocess.run(command, cwd=params.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("job ") == WRITERS
    said = [line for line in done.stdout.splitlines() if "MLflow" in line]
    monkeypatch.setattr("lookalike.workflow.tracking.sync.ANSWER_S", 60)
    assert main(["track", "sync"]) == 0, capsys.readouterr().err  # what a busy server or a locked file did not take
    with capsys.disabled():
        print(f"\n{kind}: {WRITERS - len(said)} of {WRITERS} jobs sent all by themselves")
    assert_every_number_is_there(uri)


def test_a_server_that_falls_silent_in_mid_call_has_every_number_once_it_is_back(params, monkeypatch, capsys):
    models = [write_result(params.parent, writer) for writer in range(WRITERS)]
    with postgresql() as store, mlflow_server(params.parent, store=store) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
        server = psutil.Process().children(recursive=True)  # PostgreSQL has left for a session of its own
        send_finished("train", models[0], model=models[0], settings={})
        for process in server:
            process.suspend()
        began = time.monotonic()
        for model in models[1:]:
            send_finished("train", model, model=model, settings={})
        assert time.monotonic() - began < 60  # one job waits, the others are told
        for process in server:
            process.resume()
        monkeypatch.setattr("lookalike.workflow.tracking.sync.ANSWER_S", 60)
        assert main(["track", "sync"]) == 0
        told = capsys.readouterr().out
        assert f"mini: {WRITERS} runs: {WRITERS - 1} sent, 1 completed" in told
        assert_every_number_is_there(uri)
