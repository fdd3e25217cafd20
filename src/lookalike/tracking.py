"""Copy runs to MLflow, so that they can be watched and compared there.

What counts are the files below ``results/``; MLflow gets a copy after they are written. A tracking server that fails
is reported in the job's log and changes no result. This is the only module that imports MLflow.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from filelock import FileLock

from lookalike.parameters import canonical
from lookalike.paths import project_root

# Tags that together name a run; a repeated run replaces its older self.
IDENTITY = ("scale", "recipe", "dataset", "seed")


class Tracked:
    """The MLflow run of one training, as a context.

    Args:
        tags: must hold ``IDENTITY`` and ``experiment``; empty switches tracking off.
        parameters: nested settings of the run.
        existing: go on with the run of an earlier stage instead of starting one.
    """

    def __init__(self, tags: Mapping[str, str], parameters: Mapping[str, Any], *, existing: bool = False) -> None:
        self._tags = dict(tags)
        self._parameters = _flat(parameters)
        self._existing = existing
        self._client: Any = None
        self._run = ""

    def __enter__(self) -> Tracked:
        if self._tags:
            self._attempt(self._open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run:
            self._attempt(lambda: self._client.set_terminated(self._run, "FAILED" if kind else "FINISHED"))

    def epoch(self, line: Mapping[str, float]) -> None:
        """Log one line of the history, all values in one batch."""
        self.metrics({key: value for key, value in line.items() if key != "epoch"}, step=int(line["epoch"]))

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log values in one batch."""
        if self._run:
            self._attempt(lambda: self._log(values, step))

    def artifact(self, path: str) -> None:
        """Copy a file to the run."""
        if self._run:
            self._attempt(lambda: self._client.log_artifact(self._run, path))

    def _log(self, values: Mapping[str, float], step: int) -> None:
        import time

        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(
            self._run, metrics=[Metric(metric_name(key), value, now, step) for key, value in values.items()]
        )

    def _open(self) -> None:
        from mlflow.entities import Param, RunTag

        self._client = _client()
        experiment = _experiment(self._client, self._tags["experiment"])
        chosen = " and ".join(f"tags.{key} = '{self._tags[key]}'" for key in IDENTITY)
        older = self._client.search_runs([experiment], chosen)
        if self._existing and older:
            self._run = older[0].info.run_id
            return
        for run in older:
            self._client.delete_run(run.info.run_id)
        name = "-".join(self._tags[key] for key in ("recipe", "dataset")) + f"-seed{self._tags['seed']}"
        run = self._client.create_run(experiment, run_name=name)
        parameters = [Param(key, value[:500]) for key, value in self._parameters.items()]
        tags = {**self._tags, **_environment()}
        self._client.log_batch(run.info.run_id, params=parameters, tags=[RunTag(*pair) for pair in tags.items()])
        self._run = run.info.run_id

    def _attempt(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:
            print(f"MLflow: {type(error).__name__}: {error}; this run is tracked no further")
            self._run = ""


def metric_name(name: str) -> str:
    """Name of a metric as MLflow allows it: ``R@1`` becomes ``R_at_1``."""
    return name.replace("@", "_at_")


def tracking_uri() -> str:
    """Where runs are logged: ``MLFLOW_TRACKING_URI``, else the SQLite file that ``mlflow ui`` opens here by itself."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{project_root() / 'mlflow.db'}"


def _client() -> Any:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    with _first_use():
        client = mlflow.MlflowClient(tracking_uri())
        client.search_experiments(max_results=1)
    return client


def _experiment(client: Any, name: str) -> str:
    with _first_use():
        known = client.get_experiment_by_name(name)
        if known is not None:
            return str(known.experiment_id)
        folder = None if os.environ.get("MLFLOW_TRACKING_URI") else (project_root() / "mlruns" / name).as_uri()
        return str(client.create_experiment(name, folder))


@contextmanager
def _first_use() -> Iterator[None]:
    """One process at a time: several that meet an empty database would each try to create its tables and all fail."""
    with FileLock(project_root() / ".snakemake" / "mlflow.lock"):
        yield


def _environment() -> dict[str, str]:
    import torch

    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False).stdout.strip()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{platform.machine()} CPU"
    return {"commit": commit or "unknown", "hardware": device, "torch": torch.__version__, "host": platform.node()}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value if isinstance(value, str) else canonical(value)
    return flat
