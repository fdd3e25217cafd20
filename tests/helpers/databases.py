"""A PostgreSQL server of Debian's packages on this machine, for tests alone."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

USER = "postgres"  # whom Debian's package makes; the server refuses to run as root


def free_port():
    """A port of the loopback address that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def postgresql():
    """Address of an empty database; skips the test where PostgreSQL is not installed."""
    if not (programs := sorted(Path("/usr/lib/postgresql").glob("*/bin"))):
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    run, port = _server(programs[-1])
    named = ["-h", "127.0.0.1", "-p", str(port), "-U", USER]
    run("createdb", *named, "runs")
    try:
        yield f"postgresql://{USER}@127.0.0.1:{port}/runs"
    finally:
        run("dropdb", *named, "--force", "runs")


@cache
def _server(programs):
    """The one of this process, which ends with it: what runs its programs, and its port."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql"))
    as_user = []
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
        as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    port, data = free_port(), folder / "data"

    def run(program, *arguments):
        command = [*as_user, programs / program, *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    run("initdb", "--pgdata", data, "--auth", "trust", "--encoding", "UTF8", "--username", USER)
    listen = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    run("pg_ctl", "--pgdata", data, "--wait", "--log", folder / "log", "-o", listen, "start")
    atexit.register(shutil.rmtree, folder)
    atexit.register(run, "pg_ctl", "--pgdata", data, "--wait", "--mode", "immediate", "stop")
    return run, port
