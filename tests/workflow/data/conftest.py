"""A web server on this machine that misbehaves as asked, and writers of miniature data sets."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Touch = Callable[[Path, Iterable[str]], None]
Lines = Callable[[Path, Iterable[str]], None]
Answer = Callable[[http.server.BaseHTTPRequestHandler, bytes], None]


@dataclass
class Server:
    """``files`` go out by the next of their ``answers``, or as from a good server; ``requests`` are (path, range)."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)


def whole(handler: http.server.BaseHTTPRequestHandler, content: bytes, kind: str = "application/gzip") -> None:
    """The whole file, whatever range is asked for."""
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def ranged(handler: http.server.BaseHTTPRequestHandler, content: bytes, stop: int | None = None) -> None:
    """The range asked for; with ``stop``, the connection breaks there."""
    asked = handler.headers.get("Range")
    if asked is None:
        begin = 0
        handler.send_response(200)
    else:
        begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        if begin >= len(content):
            handler.send_error(416)
            return
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
    handler.send_header("Content-Length", str(len(content) - begin))
    handler.end_headers()
    handler.wfile.write(content[begin:stop])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append((self.path, self.headers.get("Range")))
            if self.path not in state.files:
                self.send_error(404)
                return
            planned = state.answers.get(self.path, [])
            answer = planned.pop(0) if planned else ranged
            answer(self, state.files[self.path])

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state = Server(f"http://127.0.0.1:{running.server_port}")
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        running.shutdown()
        thread.join()


@pytest.fixture
def answer_whole() -> Callable[..., None]:
    return whole


@pytest.fixture
def answer_ranged() -> Callable[..., None]:
    return ranged


@pytest.fixture
def touch() -> Touch:
    """Empty images: enough for readers, which open none."""

    def make(root: Path, names: Iterable[str]) -> None:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()

    return make


@pytest.fixture
def write_lines() -> Lines:
    def write(path: Path, lines: Iterable[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return write
