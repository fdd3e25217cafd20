"""The place that runs are copied to: its address, whether anybody is there, and the runs that it holds.

A server that is away must not stop the work: MLflow itself asks seven times with growing pauses, for minutes in every
job. Here a call asks once, within `ANSWER_S`, and leaves the answer in a small file for its jobs.

A run is named by its tags `IDENTITY`, which are read off the path of its results, and by its user: several people who
share a server each have theirs. All runs of a scale lie in one experiment.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from filelock import FileLock

from lookalike.base.files import read_json, write_json
from lookalike.base.paths import project_root
from lookalike.workflow.running.ending import Terminated

ANSWER_S = 3.0  # a server that takes longer to say that it is there is away
PATIENCE_S = 600.0  # after which a job of a long call asks a server again that was away
BEHIND_A_GATE = (502, 503, 504)  # what a proxy answers for a server that is not there
DATABASE_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
# MLflow's own defaults are 120 s and seven retries with growing pauses; values of the user stay.
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # else a server gets two lines per run
}
IDENTITY = ("scale", "recipe", "dataset", "seed")  # tags that together name a run of one user
KIND = {"mlflow.experimentKind": "custom_model_development"}  # MLflow's page opens with runs, not with traces
LOCAL = "http://127.0.0.1:5000"  # where `mlflow ui` shows its page
USER = "mlflow.user"  # the tag that MLflow's page shows as a run's user
Held = dict[tuple[str, ...], list[Any]]  # runs of MLflow by the values of their `IDENTITY`, the newest first


class AwayError(Exception):
    """Nobody answers at the address of MLflow; the message is one line that tells the remedy."""


def tracking_uri() -> str:
    """Address of MLflow: ``MLFLOW_TRACKING_URI``, else the SQLite file that ``mlflow ui`` opens here by itself.

    A ``?`` in the name of a folder would begin a query of the address: the file is named as seen from here then.

    Raises:
        ValueError: for such a folder on the way from here.
    """
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri
    path = str(project_root() / "mlflow.db")
    path = os.path.relpath(path) if "?" in path else path
    if "?" in path:
        raise ValueError(f"{path}: the `?` would begin a query of MLflow's address; call in {project_root()}")
    return f"sqlite:///{path}"


def ask_server(within: float = ANSWER_S) -> str:
    """Ask whether the server is there, and leave the answer for all jobs in this folder.

    Args:
        within: seconds that it has for an answer; a file is looked at however long that takes.

    Returns:
        Empty if it is there, else one line for the terminal.
    """
    uri = tracking_uri()
    reason = _fault_of_file(uri) if uri.startswith("sqlite") else _fault_of_server(uri, within)
    if not reason:
        _answer().unlink(missing_ok=True)
        return ""
    line = without_password(
        f"MLflow: {uri} is away ({reason}); results do not depend on it, and "
        "`lookalike track sync` sends the runs when it is back"
    )
    write_json(_answer(), {"uri": without_password(uri), "line": line})
    return line


def recently_away() -> str:
    """The line about a server that was away less than `PATIENCE_S` ago; empty if it was there, or not asked."""
    try:
        answer, age = read_json(_answer()), time.time() - _answer().stat().st_mtime
    except (OSError, ValueError):
        return ""
    return str(answer["line"]) if answer["uri"] == without_password(tracking_uri()) and age < PATIENCE_S else ""


def without_password(text: str) -> str:
    """A text without user and password of the address of MLflow."""
    user = urlsplit(tracking_uri()).netloc.rpartition("@")[0]
    secret = user.partition(":")[2] or user
    for form in {secret, unquote(secret)} - {""}:
        text = re.sub(rf"[^\s/'\"]*{re.escape(form)}@", "", text)
    return text


def one_line(error: Exception) -> str:
    """An error of MLflow in one line."""
    words = (str(error).splitlines() or ["no message"])[0]
    return without_password(f"MLflow: {type(error).__name__}: {words}")


@contextmanager
def forgiving(otherwise: str) -> Iterator[None]:
    """Make a fault of MLflow in the block one line in the job's log, and no reason to fail.

    Args:
        otherwise: consequence of the fault, for the line.
    """
    try:
        yield
    except (AwayError, Terminated) as error:  # told to end, a job whose results are on disk ends well
        print(error if isinstance(error, AwayError) else f"MLflow: told to end; {otherwise}")
    except Exception as error:  # whatever a server may raise
        print(ask_server() or f"{one_line(error)}; {otherwise}")  # asked, so that later jobs know


def connect(*, ask: bool = True) -> Any:
    """A client with few retries.

    Args:
        ask: whether to ask first if the server is there; jobs of one call ask once.

    Raises:
        AwayError: if it is away.
        MlflowException: if it is there and something else is wrong.
    """
    if ask and (line := recently_away() or ask_server()):
        raise AwayError(line)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import mlflow

    with _first_use():
        client = mlflow.MlflowClient(tracking_uri())
        client.search_experiments(max_results=1)
    return client


def experiment_of(client: Any, scale: str) -> str:
    """Id of the experiment with all runs of a scale; it is there afterwards."""
    name = f"lookalike-{scale}"
    with _first_use():
        known = client.get_experiment_by_name(name)
        if known is not None:
            return str(known.experiment_id)
        folder = None if os.environ.get("MLFLOW_TRACKING_URI") else (project_root() / "mlruns" / name).as_uri()
        return str(client.create_experiment(name, folder, tags=KIND))


def page_address(place: str) -> str:
    """Address of a place on MLflow's page; for the project's file, on the page of ``mlflow ui``."""
    uri = without_password(tracking_uri()).rstrip("/")
    return f"{uri if uri.startswith('http') else LOCAL}/#{place}"


def held(client: Any, scale: str, identity: Mapping[str, str] | None = None) -> Held:
    """Runs of this user in the experiment of a scale, of a known identity or all; nothing without the experiment."""
    known, token, found = client.get_experiment_by_name(f"lookalike-{scale}"), None, Held()
    condition = " and ".join(f"tags.{key} = '{value}'" for key, value in (identity or {}).items())
    while known is not None and token != "":
        page = client.search_runs([known.experiment_id], condition, max_results=1000, page_token=token)
        for run in page:
            if run.data.tags.get(USER, getpass.getuser()) == getpass.getuser():  # runs of older code name no user
                found.setdefault(tuple(run.data.tags.get(name, "") for name in IDENTITY), []).append(run)
        token = page.token or ""
    return found


@contextmanager
def _first_use() -> Iterator[None]:
    """One process at a time: several that meet an empty database would each try to create its tables and all fail."""
    if tracking_uri().startswith("http"):
        yield  # a server does that by itself, and whoever waits for it should not hold up others
        return
    with FileLock(project_root() / ".snakemake" / "mlflow.lock"):
        yield


def _answer() -> Path:
    return project_root() / ".snakemake" / "mlflow_away.json"


def _fault_of_file(uri: str) -> str:
    path = Path(uri.partition(":///")[2])
    if path.is_file():
        try:
            with closing(sqlite3.connect(path, timeout=0)) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            return "" if "locked" in str(error) else str(error)  # another job writes, and MLflow waits for it
    return ""


def _fault_of_server(uri: str, within: float) -> str:
    """Fault of an address, also where the look-up of a name or a trickle of bytes would take for ever."""
    fault: list[str] = []
    thread = threading.Thread(target=lambda: fault.append(_fault(uri, within)), daemon=True)
    thread.start()
    thread.join(within)
    return fault[0] if fault else f"no answer within {within:.0f} s"


def _fault(uri: str, within: float) -> str:
    """Fault of an address, empty if there is none or it cannot be asked."""
    address = urlsplit(uri)
    kind, host = address.scheme.partition("+")[0], address.netloc.rpartition("@")[2]
    try:
        if kind in ("http", "https"):
            urlopen(f"{kind}://{host}{address.path.rstrip('/')}/health", timeout=within).close()
        elif kind in DATABASE_PORTS:
            place = (address.hostname or "localhost", address.port or DATABASE_PORTS[kind])
            socket.create_connection(place, timeout=within).close()
    except HTTPError as error:  # whoever refuses, or asks for a password, is there
        return f"answers {error.code}" if error.code in BEHIND_A_GATE else ""
    except URLError as error:
        certificate = isinstance(error.reason, ssl.SSLError)  # MLflow may be told to accept it
        return "" if certificate else str(getattr(error.reason, "strerror", None) or error.reason)
    except (OSError, ValueError) as error:
        return str(error)
    return ""
