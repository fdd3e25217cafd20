"""Send one run to MLflow piece by piece, in the job that makes it or later from its files.

Metrics are fractions, and named by what they are about: ``best/R_at_1`` and ``last/...`` after training, ``epoch/...``
per epoch, ``seconds/...`` of work. The digests of the files that were sent stand in the tags ``history`` and
``scores``: by them ``lookalike track sync`` knows what is there already.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.data.checksums import file_digest
from lookalike.files import read_json
from lookalike.metrics.names import CHECKPOINTS
from lookalike.paths import project_root
from lookalike.tracking.client import LONGEST_PARAMETER, USER, experiment_of, find, flat, metric_name, user

FACTS = ("seed", "code", "classes", "data", "weights", "selected_epoch")  # what a model's file says beside its settings
AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}  # what MLflow takes in one request


def parameters_of(about: Mapping[str, Any], device: str = "") -> dict[str, str]:
    """Parameters of whatever rests on a training, from what the model's file is about."""
    facts = {key: about[key] for key in FACTS if key in about}
    return flat({"train": about.get("settings", {}), **facts} | ({"device": device} if device else {}))


def create(
    client: Any,
    identity: Mapping[str, str],
    parameters: Mapping[str, str],
    *,
    context: str,
    tags: Mapping[str, str],
    start: float,
    digest: str = "",
) -> str:
    """Start the run of an identity, in the place of an older one of the same user.

    Args:
        client: client of MLflow.
        identity: the run's tags `lookalike.tracking.client.IDENTITY`.
        parameters: parameters as MLflow shows them.
        context: what the data set is for, ``training`` or ``evaluation``.
        tags: further ones.
        start: beginning of the work, in seconds since 1970.
        digest: digest of the data set, if it is not that of the training.

    Returns:
        Its id.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    experiment = experiment_of(client, identity["scale"])
    while (older := find(client, identity, experiment)) is not None:
        client.delete_run(older.info.run_id)
    name = f"{identity['recipe']}-{identity['dataset']}-seed{identity['seed']}"
    run = client.create_run(experiment, start_time=int(1000 * start), run_name=name).info.run_id
    send(
        client,
        run,
        params=parameters,
        tags={**identity, **tags, USER: user(), "mlflow.source.name": f"lookalike {identity['recipe']}"},
    )
    if digest := (digest or parameters.get("data", "")):
        source = json.dumps({"uri": f"splits/{identity['dataset']}.csv"}, allow_nan=False)
        data = Dataset(identity["dataset"], digest[:12], source_type="local", source=source)
        client.log_inputs(run, [DatasetInput(data, [InputTag("mlflow.data.context", context)])])
    return str(run)


def end(client: Any, run: str, when: float, status: str = "FINISHED") -> None:
    """Say that the work of a run is over, and when it was."""
    client.set_terminated(run, status, end_time=int(1000 * when))


def send_history(
    client: Any, run: str, path: Path | str, *, known: Collection[int] = (), when: float | None = None
) -> None:
    """Send a history that lies on disk: what is measured per epoch, but for epochs that are known, and the file."""
    with Path(path).open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            step = int(line.pop("epoch"))
            values = {name: float(value) for name, value in line.items() if value}
            if step not in known:
                send_metrics(client, run, in_group("epoch", values), step, when)
    _send_file(client, run, "history", path)


def send_scores(client: Any, run: str, path: Path | str, *, when: float | None = None) -> None:
    """Send metrics that lie on disk: of both checkpoints, and the file."""
    scores = read_json(path)
    for checkpoint in CHECKPOINTS:
        send_metrics(client, run, in_group(checkpoint, scores[checkpoint]), 0, when)
    _send_file(client, run, "scores", path)


def complete(client: Any, run: Any, parameters: Mapping[str, str]) -> list[str]:
    """Add parameters that a run lacks; MLflow changes none, so those with other values come back."""
    known = run.data.params
    send(client, run.info.run_id, params={key: value for key, value in parameters.items() if key not in known})
    return sorted(key for key, value in parameters.items() if known.get(key, value) != value[:LONGEST_PARAMETER])


def send_metrics(client: Any, run: str, values: Mapping[str, float], step: int = 0, when: float | None = None) -> None:
    """Send numbers by MLflow's names; those that are none are left out."""
    from mlflow.entities import Metric

    now = int(1000 * (time.time() if when is None else when))
    metrics = [Metric(name, value, now, step) for name, value in values.items() if math.isfinite(value)]
    _in_batches(client, run, "metrics", metrics)


def send(
    client: Any, run: str, *, params: Mapping[str, str] | None = None, tags: Mapping[str, str] | None = None
) -> None:
    """Send parameters and tags."""
    from mlflow.entities import Param, RunTag

    _in_batches(client, run, "params", [Param(key, value[:LONGEST_PARAMETER]) for key, value in (params or {}).items()])
    _in_batches(client, run, "tags", [RunTag(key, value) for key, value in (tags or {}).items()])


def in_group(group: str, values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by their names in MLflow, which shows each group under a heading of its own."""
    return {f"{group}/{metric_name(name)}": float(value) for name, value in values.items()}


def short_digest(path: Path | str) -> str:
    """By which a file that was sent is known again."""
    return file_digest(Path(path))[:12]


def shown(path: Path | str) -> str:
    """A path as it stands in notes: below the project, where it lies there."""
    absolute = Path(path).absolute()
    return str(absolute.relative_to(project_root())) if absolute.is_relative_to(project_root()) else absolute.name


def _send_file(client: Any, run: str, tag: str, path: Path | str) -> None:
    client.log_artifact(run, str(path))
    send(client, run, tags={tag: short_digest(path), f"{tag}_file": shown(path)})


def _in_batches(client: Any, run: str, kind: str, values: Sequence[Any]) -> None:
    for part in _parts(values, AT_ONCE[kind]):
        client.log_batch(run, **{kind: part})


def _parts(values: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))
