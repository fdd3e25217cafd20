"""MLflow's client, and what it holds of runs.

A run is named by its tags `IDENTITY`, which are read off the path of its results, and by its user: several people who
share a server each have theirs. All runs of a scale lie in one experiment, so that everything that is compared lies in
one list.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from lookalike.paths import project_root
from lookalike.settings.layers import canonical
from lookalike.tracking.server import (
    AwayError,
    is_tracked,
    lower_patience,
    require_server,
    tracking_uri,
    without_password,
)

# Tags that together name a run; a repeated run replaces its older self.
IDENTITY = ("scale", "recipe", "dataset", "seed")
USER = "mlflow.user"  # the tag that MLflow's page shows as a run's user
LONGEST_TAG = 5000  # characters, of which every version of MLflow keeps all
LONGEST_PARAMETER = 500


@dataclass(frozen=True)
class Copy:
    """What MLflow holds of one run: its id, tags, parameters, and its last metrics by MLflow's names."""

    id: str
    tags: dict[str, str]
    parameters: dict[str, str]
    metrics: dict[str, float]


def identity_of(result: Path | str) -> dict[str, str]:
    """The tags `IDENTITY` of the run behind ``results/<scale>/<kind>/<recipe>/<dataset>/seed<seed>.<ending>``."""
    scale, _, recipe, dataset, _ = Path(result).absolute().parts[-5:]
    seed = Path(result).stem.removeprefix("seed")
    return dict(zip(IDENTITY, (scale, recipe, dataset, seed), strict=True))


def identity_in(tags: Mapping[str, str]) -> tuple[str, ...]:
    """The values of `IDENTITY` among some tags."""
    return tuple(tags.get(name, "") for name in IDENTITY)


def user() -> str:
    """Who makes runs here."""
    return getpass.getuser()


def is_own(run: Any) -> bool:
    """Whether a run is this user's, or one of older code, which named no user."""
    return bool(run.data.tags.get(USER, user()) == user())


def connect() -> Any:
    """A client of a server that is there, with few retries.

    Raises:
        AwayError: if it is away; jobs of one call ask once.
        MlflowException: if it is there and something else is wrong.
    """
    require_server()
    return open_client()


def open_client() -> Any:
    """A client without asking first whether the server is there; its requests end soon.

    Raises:
        MlflowException: if something is wrong.
    """
    lower_patience()
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # else a server gets two lines per run
    import mlflow

    with _first_use():
        client = mlflow.MlflowClient(tracking_uri())
        client.search_experiments(max_results=1)
    return client


def experiment_of(client: Any, scale: str) -> str:
    """Id of the experiment that holds all runs of a scale; it is there afterwards."""
    name = f"lookalike-{scale}"
    with _first_use():
        known = client.get_experiment_by_name(name)
        if known is not None:
            return str(known.experiment_id)
        folder = None if os.environ.get("MLFLOW_TRACKING_URI") else (project_root() / "mlruns" / name).as_uri()
        return str(client.create_experiment(name, folder))


def find(client: Any, identity: Mapping[str, str], experiment: str = "") -> Any:
    """The newest run of an identity and of this user, ``None`` if there is none."""
    if not experiment:
        known = client.get_experiment_by_name(f"lookalike-{identity['scale']}")
        if known is None:
            return None
        experiment = known.experiment_id
    condition = " and ".join(f"tags.{key} = '{identity[key]}'" for key in IDENTITY)
    return next(filter(is_own, client.search_runs([experiment], condition)), None)


def copy_of(run_id: str) -> Copy:
    """What MLflow holds of the run with an id.

    Raises:
        ValueError: if there is none, or no MLflow.
    """
    if not is_tracked():
        raise ValueError(without_password(f"MLflow run {run_id}: nothing is tracked at {tracking_uri()}"))
    try:
        client = connect()
    except AwayError as error:
        raise ValueError(f"MLflow run {run_id}: {error}") from None
    from mlflow.exceptions import MlflowException

    try:
        return _copy(client.get_run(run_id))
    except MlflowException as error:
        line = f"MLflow run {run_id}: {str(error).splitlines()[0]} ({tracking_uri()})"
        raise ValueError(without_password(line)) from None


def copies_of(identities: Iterable[Mapping[str, str]]) -> list[Copy | None]:
    """What MLflow holds of runs, ``None`` for those it does not know; by their tags `IDENTITY`."""
    client = connect()
    runs = [find(client, identity) for identity in identities]
    return [None if run is None else _copy(run) for run in runs]


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as MLflow's parameters: dotted keys, values as text."""
    parameters: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            parameters |= flat(value, f"{name}.")
        else:
            parameters[name] = value if isinstance(value, str) else canonical(value)
    return parameters


def metric_name(name: str) -> str:
    """Name of a metric as MLflow allows it: ``R@1`` becomes ``R_at_1``."""
    return name.replace("@", "_at_")


@contextmanager
def _first_use() -> Iterator[None]:
    """One process at a time: several that meet an empty database would each try to create its tables and all fail."""
    if tracking_uri().startswith("http"):
        yield  # a server does that by itself, and whoever waits for it should not hold up others
        return
    with FileLock(project_root() / ".snakemake" / "mlflow.lock"):
        yield


def _copy(run: Any) -> Copy:
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    return Copy(run.info.run_id, tags, dict(run.data.params), dict(run.data.metrics))
