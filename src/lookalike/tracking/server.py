"""Where runs are copied to, and whether anybody is there.

A server that is away must not stop the work: MLflow itself asks seven times with growing pauses, for minutes in every
job. Here a call asks once, within `ANSWER_S`, and leaves what it found in a small file for its jobs.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import Request, urlopen

from lookalike.files import read_json, write_json
from lookalike.paths import project_root

ANSWER_S = 3.0  # a server that takes longer to say that it is there is away
PATIENCE_S = 600.0  # after which a job of a long call asks a server again that was away
BEHIND_A_GATE = (502, 503, 504)  # what a proxy answers for a server that is not there
DATABASE_PORTS = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
# MLflow's own defaults are 120 s and seven retries with growing pauses; what the user has set stays.
REQUESTS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


class AwayError(Exception):
    """Nobody answers where runs are tracked; the message is one line that says what to do."""


def tracking_uri() -> str:
    """Where runs are logged: ``MLFLOW_TRACKING_URI``, else the SQLite file that ``mlflow ui`` opens here by itself."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{project_root() / 'mlflow.db'}"


def is_tracked() -> bool:
    """Whether there is anything to ask: a server is named, or the file of this project exists."""
    return bool(os.environ.get("MLFLOW_TRACKING_URI")) or Path(tracking_uri().removeprefix("sqlite:///")).is_file()


def ask_server(within: float = ANSWER_S) -> str:
    """Ask whether the server is there, and leave the answer for all jobs in this folder.

    Args:
        within: seconds that it has for an answer; a file is looked at however long that takes.

    Returns:
        Empty if it is there, else one line for the terminal.
    """
    uri = tracking_uri()
    if uri.startswith("sqlite"):
        reason = _fault_of_file(Path(uri.partition(":///")[2]))
    else:
        reason = _within(within, lambda: _fault_of(uri, within))
    if not reason:
        _record().unlink(missing_ok=True)
        return ""
    line = without_password(
        f"MLflow: {uri} is away ({reason}); results do not depend on it, and "
        "`lookalike track sync` sends the runs when it is back"
    )
    write_json(_record(), {"uri": without_password(uri), "line": line})
    return line


def require_server() -> None:
    """Go on only if the server is there, as this call has found out already or finds out now.

    Raises:
        AwayError: if it is away.
    """
    if line := recently_away() or ask_server():
        raise AwayError(line)


def recently_away() -> str:
    """What was found less than `PATIENCE_S` ago about a server that is away; empty if it was there, or not asked."""
    try:
        record, age = read_json(_record()), time.time() - _record().stat().st_mtime
    except (OSError, ValueError):
        return ""
    return str(record["line"]) if record["uri"] == without_password(tracking_uri()) and age < PATIENCE_S else ""


def lower_patience() -> None:
    """Let MLflow's requests end soon, unless the user wants something else."""
    for name, value in REQUESTS.items():
        os.environ.setdefault(name, value)


def without_password(text: str) -> str:
    """A text without user and password of the address that runs go to."""
    user = urlsplit(tracking_uri()).netloc.rpartition("@")[0]
    secret = user.partition(":")[2] or user
    for form in {secret, unquote(secret)} - {""}:
        text = re.sub(rf"[^\s/'\"]*{re.escape(form)}@", "", text)
    return text


def one_line(error: Exception) -> str:
    """What MLflow says of an error, whatever it is."""
    words = (str(error).splitlines() or ["no message"])[0]
    return without_password(f"MLflow: {type(error).__name__}: {words}")


def _record() -> Path:
    return project_root() / ".snakemake" / "mlflow_away.json"


def _within(seconds: float, ask: Callable[[], str]) -> str:
    """The answer, also where the look-up of a name or a trickle of bytes would take for ever."""
    answer: list[str] = []
    thread = threading.Thread(target=lambda: answer.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else f"no answer within {seconds:.0f} s"


def _fault_of(uri: str, within: float) -> str:
    """What is wrong with an address, empty if nothing is or it cannot be asked."""
    address = urlsplit(uri)
    kind = address.scheme.partition("+")[0]
    try:
        if kind in ("http", "https"):
            return _fault_of_server(address, within)
        return _fault_of_database(address, DATABASE_PORTS[kind], within) if kind in DATABASE_PORTS else ""
    except (OSError, ValueError) as error:
        return str(error)


def _fault_of_server(address: SplitResult, within: float) -> str:
    user, _, host = address.netloc.rpartition("@")
    request = Request(f"{address._replace(netloc=host).geturl().rstrip('/')}/health")
    if user:  # which urllib would take for a part of the host's name
        request.add_header("Authorization", f"Basic {base64.b64encode(unquote(user).encode()).decode()}")
    try:
        with urlopen(request, timeout=within):
            return ""
    except HTTPError as error:  # whoever refuses is there
        return f"answers {error.code}" if error.code in BEHIND_A_GATE else ""
    except URLError as error:
        certificate = isinstance(error.reason, ssl.SSLError)  # MLflow may be told to accept it
        return "" if certificate else str(getattr(error.reason, "strerror", None) or error.reason)


def _fault_of_file(path: Path) -> str:
    if path.is_file():
        try:
            with closing(sqlite3.connect(path, timeout=0)) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            return "" if "locked" in str(error) else str(error)  # another job writes, and MLflow waits for it
    return ""


def _fault_of_database(address: SplitResult, port: int, within: float) -> str:
    with socket.create_connection((address.hostname or "localhost", address.port or port), timeout=within):
        return ""
