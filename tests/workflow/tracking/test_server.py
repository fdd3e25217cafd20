"""Whether a server is there is found out once, and soon."""

import os
import re
import shutil
import socketserver
import sqlite3
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest

from lookalike.workflow.tracking.server import (
    ANSWER_S,
    PATIENCE_S,
    SETTINGS,
    AwayError,
    ask_server,
    connect,
    experiment_of,
    forgiving,
    one_line,
    recently_away,
    tracking_uri,
    without_password,
)
from tracked import closed_port, silent_server


@pytest.fixture
def at(params, monkeypatch):
    return lambda uri: monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)


class Answering(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with socketserver.TCPServer(("127.0.0.1", 0), type("Handler", (Answering,), {})) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def test_a_closed_port_and_a_server_that_never_answers_are_away_in_one_line_within_five_seconds(at):
    for place, reason in ((closed_port, r"Connection refused"), (silent_server, r"no answer within 3 s|timed out")):
        with place() as uri:
            at(uri)
            began = time.monotonic()
            line = ask_server()
            assert time.monotonic() - began < 5
            assert line.startswith(f"MLflow: {uri} is away (")
            assert line.endswith("`lookalike track sync` sends the runs when it is back")
            assert "\n" not in line
            assert re.search(reason, line)


def test_jobs_of_a_call_that_found_nobody_do_not_ask_again(at):
    with silent_server() as uri:
        at(uri)
        line = ask_server()
        began = time.monotonic()
        for _ in range(20):
            with pytest.raises(AwayError, match="is away"):
                connect()
        assert time.monotonic() - began < ANSWER_S
        assert recently_away() == line


def test_a_job_outside_of_a_call_finds_out_by_itself_and_tells_the_others(at):
    with closed_port() as uri:
        at(uri)
        assert recently_away() == ""
        with pytest.raises(AwayError, match="Connection refused"):
            connect()
        assert recently_away()


def test_a_server_that_was_away_is_asked_again_by_the_next_call_and_after_some_minutes(at, server, params):
    with closed_port() as uri:
        at(uri)
        ask_server()
        record = params.parent / ".snakemake" / "mlflow_away.json"
        os.utime(record, (time.time() - PATIENCE_S - 1,) * 2)
        assert recently_away() == ""
        ask_server()
    at(f"http://127.0.0.1:{server.server_address[1]}")
    assert recently_away() == ""  # which was said of another server
    assert ask_server() == ""
    assert not record.exists()


@pytest.mark.parametrize(("status", "away"), [(200, False), (401, False), (404, False), (500, False), (503, True)])
def test_whoever_refuses_is_there_but_not_a_proxy_without_its_server(at, server, status, away):
    server.RequestHandlerClass.status = status
    at(f"http://127.0.0.1:{server.server_address[1]}/some/path/")
    assert ("answers 503" in ask_server()) == away


@pytest.mark.parametrize(
    "text",
    [
        "Max retries: http://ann:p%40ss@host:5000/api",
        "Max retries: http://ann:p@ss@host:5000/api",
        "Max retries: 'ann:p@ss@host:5000'",
        "nonnumeric port: 'p%40ss@host:5000'",
    ],
)
def test_no_error_shows_the_password_of_an_address(at, text):
    at("http://ann:p%40ss@host:5000")
    assert "ss@" not in without_password(text)
    assert one_line(OSError(f"{text}\nmore")) == f"MLflow: OSError: {without_password(text)}"
    assert without_password(text).startswith(text[:11])
    at("http://host:5000")
    assert without_password(text) == text


def test_a_server_that_is_away_leaves_no_password_on_the_terminal_or_on_the_disk(at, params):
    with closed_port() as uri:
        at(uri.replace("http://", "http://ann:secret@"))
        assert ask_server().startswith(f"MLflow: {uri} is away (Connection refused)")
        assert recently_away()
    assert "secret" not in (params.parent / ".snakemake" / "mlflow_away.json").read_text()


def test_a_database_that_nobody_serves_and_a_file_that_is_none_are_away(at, tmp_path):
    with closed_port() as uri:
        at(uri.replace("http://", "postgresql://someone:secret@"))
        line = ask_server()
    assert "Connection refused" in line
    assert "secret" not in line
    (tmp_path / "mlflow.db").write_text("no database " * 100)
    at(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert "is away (file is not a database)" in ask_server()
    at(f"sqlite:///{tmp_path / 'not_there_yet.db'}")
    assert ask_server() == ""


def test_a_file_that_another_job_writes_to_is_there(at, tmp_path):
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as writer:
        writer.execute("CREATE TABLE runs (name)")
        writer.execute("BEGIN EXCLUSIVE")
        at(f"sqlite:///{tmp_path / 'mlflow.db'}")
        assert ask_server() == ""


def test_requests_of_mlflow_end_soon_unless_the_user_says_otherwise(at, empty_database, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in SETTINGS:
        os.environ.pop(name, None)
    os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = "60"
    os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{empty_database}"
    connect()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "60"
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"


def test_an_error_of_mlflow_is_one_line_in_the_log_of_a_job_and_shows_no_password(at, monkeypatch, capsys):
    at("http://ann:secret@host:5000")
    monkeypatch.setattr("lookalike.workflow.tracking.server.ask_server", lambda: "")
    with forgiving("this run is not tracked"):
        raise RuntimeError("http://ann:secret@host:5000/api answers nonsense\nmore of it")
    said = "MLflow: RuntimeError: http://host:5000/api answers nonsense; this run is not tracked\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("above", ["why?", "a%20b#c;d&e", "p[q]*+'\"$x"])
def test_a_project_has_its_database_in_itself_whatever_the_folders_above_are_called(
    tmp_path, empty_database, monkeypatch, above
):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    root = tmp_path / above / "project"
    (root / "params").mkdir(parents=True)
    (root / "Snakefile").touch()
    shutil.copy(empty_database, root / "mlflow.db")
    monkeypatch.chdir(root / "params")
    assert tracking_uri() == f"sqlite:///{'..' if '?' in above else root}/mlflow.db"
    assert ask_server() == ""
    experiment_of(connect(), "mini")
    with closing(sqlite3.connect(root / "mlflow.db")) as database:
        places = [place for (place,) in database.execute("SELECT artifact_location FROM experiments")]
    assert (root / "mlruns" / "lookalike-mini").as_uri() in places
    assert [path.name for path in tmp_path.iterdir()] == [above]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lookalike.workflow.tracking.server.project_root", lambda: root)
    if "?" in above:
        with pytest.raises(ValueError, match=r"^why\?/project/mlflow\.db: the `\?` would begin a query of MLflow's a"):
            tracking_uri()
