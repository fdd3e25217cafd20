"""Runs of a project small enough to be made in a test, for what is told to MLflow about them."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.request import urlopen

from databases import free_port
from lookalike.workflow.running.jobs import call
from trainings import section, write_dataset

IDENTITY = {"scale": "mini", "recipe": "margin", "dataset": "figurines_birds", "seed": "0"}


def result(root, folder, recipe="margin", ending="json"):
    return str(root / "results" / "mini" / folder / recipe / "figurines_birds" / f"seed0.{ending}")


def make_runs(root, *, tracked):
    """A training with its evaluation, and one more evaluation that shares the training, each as its job makes it.

    Returns the text of the three logs.
    """
    manifest = write_dataset(root / "pictures", {"train": 2, "test": 2})
    data = {"manifest": str(manifest), "root": str(manifest.parent)}
    model, history = result(root, "models", ending="safetensors"), result(root, "models", ending="csv")
    resume = str(root / ".unfinished")
    made = {"model": model, "history": history, "resume": resume, "seed": 0, "code": "c"}
    logs = [finish(root, "train", [model, history], tracked, settings=section("embedder").dump(), **data, **made)]
    embedded = {"batch_size": 4, "representation": {"name": "own"}, "training_pictures": False}
    settings = {"count_query_in_r": False, "nmi": False, "scoring": {"name": "cosine"}}
    for recipe in ("margin", "margin_diml"):
        metrics = result(root, "metrics", recipe)
        made = {"model": model, "metrics": metrics, "embedded": embedded, **data}
        logs.append(finish(root, "evaluate", [metrics], tracked, settings=settings, recall_at=[1, 2], **made))
    return "".join(logs)


def finish(folder, stage, outputs, tracked, **arguments):
    """Run a job of a stage in this process; its log."""
    inputs = [arguments["model"]] if stage == "evaluate" and arguments["model"] else []
    job = {"stage": stage, "outputs": outputs, "inputs": inputs, "code": "c", "settings": "s"}
    call({"stage": stage, "offered": {"test": arguments}, "log": str(folder / "log"), "job": job, "tracked": tracked})
    return (folder / "log").read_text()


def runs_in(uri, scale="mini"):
    """All runs of a scale in MLflow, by recipe; two of one recipe are a mistake."""
    import mlflow

    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name(f"lookalike-{scale}")
    found = client.search_runs([experiment.experiment_id]) if experiment else []
    by_recipe = {run.data.tags["recipe"]: run for run in found}
    assert len(by_recipe) == len(found)
    return by_recipe


@contextmanager
def closed_port():
    """Address of a port of this machine that nobody listens to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def silent_server():
    """Address of a server that accepts and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def mlflow_server(folder, port=0, *, store="", workers=1):
    """Address of a real server of MLflow on this machine; by default its runs are in an SQLite file of the folder."""
    port = port or free_port()
    store = store or f"sqlite:///{folder / 'server.db'}"
    stored = ["--backend-store-uri", store, "--artifacts-destination", str(folder / "kept")]
    command = [sys.executable, "-m", "mlflow", "server", *stored, "--port", str(port), "--workers", str(workers)]
    # Else it starts eight more processes, for scorers of language models.
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=nowhere, stderr=nowhere)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert server.poll() is None
            try:
                urlopen(f"{address}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait()
