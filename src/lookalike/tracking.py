"""Copy runs to MLflow, so that they can be watched and compared there.

What counts are the files below ``results/``; MLflow gets a copy after they are written. A tracking server that fails
is reported in the job's log and changes no result. This is the only module that imports MLflow.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock

from lookalike.parameters import canonical
from lookalike.paths import project_root

# Tags that together name a run; a repeated run replaces its older self.
IDENTITY = ("scale", "recipe", "dataset", "seed")
LONGEST_TAG = 5000  # characters, of which every version of MLflow keeps all


@dataclass(frozen=True)
class Uses:
    """What one table makes of one run.

    Attributes:
        identity: the tags `IDENTITY` of the run.
        recipes: all recipes of the table that are trained or scored by this run.
        cells: rows and data sets that it fills, ``Margin/cub``.
        parameters: all sections of the run's own recipe, flat.
        tags: further ones.
    """

    identity: dict[str, str]
    recipes: list[str]
    cells: list[str]
    parameters: dict[str, str]
    tags: dict[str, str]


@dataclass(frozen=True)
class Copy:
    """What MLflow holds of one run: its id, tags, parameters, and its last metrics by MLflow's names."""

    id: str
    tags: dict[str, str]
    parameters: dict[str, str]
    metrics: dict[str, float]


class Tracked:
    """The MLflow run of one training, as a context.

    Args:
        tags: must hold ``IDENTITY`` and ``experiment``; empty switches tracking off.
        parameters: nested settings of the run.
        existing: go on with the run of an earlier stage instead of starting one.
    """

    def __init__(self, tags: Mapping[str, str], parameters: Mapping[str, Any], *, existing: bool = False) -> None:
        self._tags = dict(tags)
        self._parameters = flat(parameters)
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


def log_scores(tags: Mapping[str, str], scores: Mapping[str, Mapping[str, float]], path: str) -> None:
    """Log metrics by checkpoint as ``<checkpoint>/<name>``, and the file that holds them, to the run of some tags."""
    with Tracked(tags, {}, existing=True) as tracked:
        for checkpoint, values in scores.items():
            tracked.metrics({f"{checkpoint}/{name}": value for name, value in values.items()})
        tracked.artifact(path)


def tag_runs(table: str, uses: Iterable[Uses]) -> None:
    """Tag the runs behind a table with what it makes of them.

    ``tables`` and ``recipes`` add up over tables; what the same table said earlier is replaced. An evaluation of a
    shared model has no parameters until here; those that an earlier evaluation left with other values cannot be changed
    in MLflow and are named by the tag ``outdated``. A failing server is reported and changes nothing.
    """
    try:
        client = _client()
        experiments = _experiments(client)
        # Tables that are assembled at the same time read and write the same tags.
        with FileLock(project_root() / ".snakemake" / "mlflow_tags.lock"):
            for use in uses:
                if (run := _search(client, experiments, use.identity)) is not None:
                    _tag(client, run, table, use)
    except Exception as error:
        print(f"MLflow: {type(error).__name__}: {error}; the runs of {table} are not all tagged")


def with_cells(tag: str, table: str, cells: Sequence[str]) -> str:
    """The tag ``tables`` with the cells that one table fills from a run.

    Args:
        tag: what it said before, entries ``table/row/data set`` between semicolons, possibly empty.
        table: whose earlier entries are replaced.
        cells: ``row/data set``.

    Returns:
        At most `LONGEST_TAG` characters: of the tables with the most text only the number of cells is left.
    """
    of: dict[str, list[str]] = {}
    for entry in filter(None, tag.split("; ")):
        of.setdefault(entry.partition("/")[0], []).append(entry)
    of[table] = [f"{table}/{cell}" for cell in cells]
    while len(text := "; ".join(entry for name in sorted(of) for entry in of[name])) > LONGEST_TAG:
        longest = max(of, key=lambda name: len("; ".join(of[name])))
        if len(of[longest]) == 1:
            return text[:LONGEST_TAG]
        of[longest] = [f"{longest}/{len(of[longest])} cells"]
    return text


def copy_of(run_id: str) -> Copy:
    """What MLflow holds of the run with an id.

    Raises:
        ValueError: if there is none, or no MLflow.
    """
    from mlflow.exceptions import MlflowException

    if not is_tracked():
        raise ValueError(f"MLflow run {run_id}: nothing is tracked at {tracking_uri()}")
    try:
        return _copy(_client().get_run(run_id))
    except MlflowException as error:
        raise ValueError(f"MLflow run {run_id}: {str(error).splitlines()[0]} ({tracking_uri()})") from None


def copies_of(identities: Iterable[Mapping[str, str]]) -> list[Copy | None]:
    """What MLflow holds of runs, ``None`` for those it does not know; by their tags `IDENTITY`."""
    client = _client()
    experiments = _experiments(client)
    found = [_search(client, experiments, identity) for identity in identities]
    return [None if run is None else _copy(run) for run in found]


def is_tracked() -> bool:
    """Whether there is anything to ask: a server is named, or the file of this project exists."""
    return bool(os.environ.get("MLFLOW_TRACKING_URI")) or Path(tracking_uri().removeprefix("sqlite:///")).is_file()


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as MLflow's parameters: dotted keys, values as text."""
    found: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}.")
        else:
            found[name] = value if isinstance(value, str) else canonical(value)
    return found


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


def _copy(run: Any) -> Copy:
    own = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    return Copy(run.info.run_id, own, dict(run.data.params), dict(run.data.metrics))


def _tag(client: Any, run: Any, table: str, use: Uses) -> None:
    from mlflow.entities import Param, RunTag

    before, parameters = run.data.tags, {key: value[:500] for key, value in use.parameters.items()}
    recipes = sorted({*filter(None, before.get("recipes", "").split(", ")), *use.recipes})
    outdated = sorted(key for key, value in parameters.items() if run.data.params.get(key, value) != value)
    tags = {
        **use.tags,
        "tables": with_cells(before.get("tables", ""), table, use.cells),
        "recipes": ", ".join(recipes)[:LONGEST_TAG],
        "outdated": ", ".join(outdated)[:LONGEST_TAG],
    }
    new = [Param(key, value) for key, value in parameters.items() if key not in run.data.params]
    kept = {key: value for key, value in tags.items() if before.get(key, "") != value}
    for start in range(0, len(new), 100):  # MLflow takes a hundred at once
        client.log_batch(run.info.run_id, params=new[start : start + 100])
    if kept:
        client.log_batch(run.info.run_id, tags=[RunTag(*pair) for pair in kept.items()])


def _experiments(client: Any) -> list[str]:
    return [each.experiment_id for each in client.search_experiments()]


def _search(client: Any, experiments: list[str], identity: Mapping[str, str]) -> Any:
    """The newest run of an identity in some experiments, ``None`` if there is none."""
    chosen = " and ".join(f"tags.{key} = '{identity[key]}'" for key in IDENTITY)
    return next(iter(client.search_runs(experiments, chosen, max_results=1)), None)
