"""A folder in the browser and as JSON: what is found, who may ask, and what hostile pictures do."""

import http.client
import io
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from PIL import Image

from browser import MISSING, browser, chromium
from lookalike.app.own import serving
from lookalike.app.own.search import open_gallery
from lookalike.app.own.serving import Service, application, is_loopback, server_of
from lookalike.workflow.data.pictures import MOST_PIXELS
from lookalike.workflow.running.machine import peak_megabytes, resident_megabytes
from own_pictures import opened, write_pictures
from waiting import wait_until


@contextmanager
def served(folder, *, token="", models=None):
    """The port of a server of a folder, in a thread of this process."""
    service = Service(models or [opened(), opened("diml", "b")], folder / "pictures", folder / "store")
    server = server_of(application(service, token))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: server.started, 60, "the server did not start")
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    write_pictures(folder / "pictures")
    (folder / "pictures" / "odd" / "broken.png").write_bytes(b"no picture")
    return folder


@pytest.fixture(scope="module")
def port(folder):
    with served(folder) as port:
        yield port


def call(port, path, body=None, **headers):
    """Status, headers and what was answered, as data where it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return (
        answer.status,
        answer.headers,
        json.loads(said) if answer.headers["content-type"] == "application/json" else said,
    )


def test_a_search_finds_what_the_gallery_finds_and_explains_it(folder, port):
    path = folder / "pictures" / "even" / "004.png"
    expected = open_gallery(opened(), folder / "pictures", store=folder / "store").search(path, 3)
    status, _, found = call(port, "/search?top=4&why=true", path.read_bytes())
    assert status == 200
    assert found["hits"][0]["picture"] == "even/004.png"
    assert found["hits"][0]["score"] == pytest.approx(1, abs=1e-5)
    rest = [(each["picture"], pytest.approx(each["score"], abs=1e-5)) for each in found["hits"][1:]]
    assert [(hit.path.relative_to(folder / "pictures").as_posix(), hit.score) for hit in expected] == rest
    assert (found["model"], found["way"], found["pictures"]) == ("untrained embedder", "cosine", 12)
    for each in found["hits"]:
        assert each["explanation"]["words"] and each["explanation"]["maps"]
        assert len(each["part"]) == 4 and 0 < each["part"][2] <= 1
    assert found["query"]["shown"].startswith("data:image/jpeg;base64,")
    assert found["query"]["part"] == found["hits"][0]["part"]  # the same file
    plain = call(port, "/search?top=4", path.read_bytes())[2]["hits"]
    assert [(each["explanation"], each["part"]) for each in plain] == [(None, None)] * 4


def test_a_picture_of_the_folder_does_not_find_itself(folder, port):
    path = folder / "pictures" / "even" / "004.png"
    hits = call(port, "/search?top=4", path.read_bytes())[2]["hits"]
    others = call(port, f"/search?top=3&without={hits[0]['number']}", path.read_bytes())[2]["hits"]
    assert [each["picture"] for each in others] == [each["picture"] for each in hits[1:]]
    assert call(port, "/search?without=99999", path.read_bytes())[0] == 404


def test_a_pair_is_explained_as_the_search_explains_it(folder, port):
    sent = (folder / "pictures" / "even" / "004.png").read_bytes()
    own = call(port, "/search?top=1", sent)[2]["hits"][0]["number"]
    for words in ("", "&way=structure", "&model=untrained%20diml"):
        _, _, found = call(port, f"/search?top=1&why=true&without={own}{words}", sent)
        (hit,) = found["hits"]
        status, _, pair = call(port, f"/explain?number={hit['number']}{words}", sent)
        assert status == 200
        assert {key: pair[key] for key in hit if key != "score"} | {"score": hit["score"]} == hit
        assert all(pair[key] == found[key] for key in ("model", "way", "query"))
    assert call(port, "/explain?number=99999", sent)[0] == 404
    status, _, refused = call(port, "/explain?number=0", sent[:100])
    assert status == 422 and refused["detail"].startswith("no readable picture")
    for words in ("", "number=x", "number=0&top=3", "number=0&model=x", "number=0&way=graph"):
        assert call(port, f"/explain?{words}", sent)[0] == 422, words


def test_a_file_that_has_gone_or_broken_is_found_without_reasons(tmp_path):
    pictures = tmp_path / "pictures"
    write_pictures(pictures)
    sent = (pictures / "even" / "004.png").read_bytes()
    with served(tmp_path) as port:
        whole = call(port, "/search?why=true", sent)[2]
        gone, broken = whole["hits"][0], whole["hits"][5]
        (pictures / gone["picture"]).unlink()
        (pictures / broken["picture"]).write_bytes(sent[:100])
        status, _, found = call(port, "/search?why=true", sent)
        assert status == 200 and found["query"] == whole["query"]
        for hit, before in zip(found["hits"], whole["hits"], strict=True):
            if before in (gone, broken):
                assert hit == before | {"explanation": None, "part": None}
            else:
                assert hit["explanation"]["words"] == before["explanation"]["words"]
        assert call(port, f"/explain?number={gone['number']}", sent)[0] == 404
        assert call(port, f"/search?top=1&why=true&without={whole['hits'][1]['number']}", sent)[2]["query"] is None


def test_a_search_is_kept_to_a_folder_and_asks_another_model_by_another_way(folder, port):
    path = folder / "pictures" / "even" / "004.png"
    _, _, found = call(port, "/search?below=odd&top=50", path.read_bytes())
    assert {each["picture"].split("/")[0] for each in found["hits"]} == {"odd"}
    assert found["pictures"] == len(found["hits"]) == 6
    _, _, found = call(port, "/search?model=untrained%20diml&why=true", path.read_bytes())
    assert (found["way"], found["hits"][0]["explanation"]["method"]) == ("structure", "structure")
    assert found["hits"][0]["explanation"]["places"]
    for words, said in (
        ("model=x", "model: unknown 'x'"),
        ("way=graph", "way: unknown"),
        ("below=../..", "below: unknown"),
        ("tops=3", "behind the ?: unknown 'tops', did you mean 'top'?"),
    ):
        status, _, refused = call(port, f"/search?{words}", path.read_bytes())
        assert status == 422 and refused["detail"].startswith(said)
    assert call(port, "/search?top=0", path.read_bytes())[0] == 422
    assert call(port, "/doubtful?below=odd")[0] == 422
    form = {"content-type": "multipart/form-data; boundary=x"}
    status, _, refused = call(port, "/search", b"--x\r\n" + path.read_bytes(), **form)
    assert status == 415 and "curl --data-binary @query.jpg" in refused["detail"]


def test_files_and_thumbnails_are_had_by_number_alone(folder, port):
    about = call(port, "/about")[2]
    assert about["folders"] == ["even", "odd"] and about["pictures"] == 12
    assert [each["ways"] for each in about["models"]] == [["cosine", "structure"], ["structure", "cosine"]]
    assert "broken.png: no readable picture" in about["unreadable"][0]
    named = about["samples"][3]
    status, headers, whole = call(port, f"/pictures/{named['number']}")
    assert (status, headers["content-type"]) == (200, "image/png")
    assert whole == (folder / "pictures" / named["picture"]).read_bytes()
    assert Image.open(io.BytesIO(call(port, f"/thumbnails/{named['number']}")[2])).format == "JPEG"
    for path in (
        "/pictures/99999",
        "/pictures/-1",
        "/thumbnails/99999",
        "/static/serving.py",
        "/static/..%2fserving.py",
    ):
        assert call(port, path)[0] == 404, path
    for path in ("/pictures/..%2f..%2fetc%2fpasswd", "/pictures/even"):
        assert call(port, path)[0] in (404, 422), path


def test_what_deserves_a_look_is_listed(port):
    found = call(port, "/doubtful")[2]
    assert found.keys() == {"copies", "near_copies", "outliers", "strays"}
    assert len(found["outliers"]) == 12 and len(found["outliers"][0]["pictures"]) == 2


def test_a_graph_is_served_and_so_is_a_name_that_is_no_text(tmp_path):
    picture = write_pictures(tmp_path / "pictures", 6)[2]
    odd = os.fsencode(tmp_path / "pictures") + b"/caf\xe9.png"
    shutil.copy(picture, odd)
    with served(tmp_path, models=[opened("avsl")]) as port:
        _, _, found = call(port, "/search?top=2&why=true", picture.read_bytes())
        assert (found["measure"], found["hits"][0]["explanation"]["method"]) == ("distance", "graph")
        assert found["hits"][0]["score"] == pytest.approx(0, abs=1e-5)
        assert {each["picture"] for each in found["hits"]} == {"caf\ufffd.png", "even/002.png"}
        (number,) = [each["number"] for each in found["hits"] if each["picture"].startswith("caf")]
        assert call(port, f"/pictures/{number}")[2] == picture.read_bytes()
        assert len(call(port, "/doubtful")[2]["copies"][0]["pictures"]) == 2


def test_the_schema_documents_search_and_explanation(port):
    schema = call(port, "/openapi.json")[2]
    names = {"/about", "/search", "/explain", "/doubtful", "/pictures/{number}", "/thumbnails/{number}"}
    assert set(schema["paths"]) == names
    search, explain = (schema["paths"][path]["post"] for path in ("/search", "/explain"))
    assert {each["name"] for each in search["parameters"]} == {"model", "way", "below", "top", "why", "without"}
    assert {each["name"]: each["required"] for each in explain["parameters"]} == {
        "number": True, "model": False, "way": False,
    }  # fmt: skip
    for each in (search, explain):
        assert each["requestBody"]["content"] == {"image/*": {"schema": {"type": "string", "format": "binary"}}}
        assert {"200", "401", "403", "404", "408", "413", "415", "422", "503"} == each["responses"].keys()
    for path in names - {"/search", "/explain"}:
        gone = {"404"} if "{number}" in path else set()
        assert {"401", "403", "503"} | gone <= schema["paths"][path]["get"]["responses"].keys(), path


def test_pages_of_others_may_not_ask(port):
    assert call(port, "/about", Host="attacker.example")[0] == 403  # a name that leads here
    assert call(port, "/about", Host="[")[0] in (400, 403)
    assert call(port, "/about", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0] == 403
    assert call(port, "/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200
    assert call(port, "/about", Host=f"localhost:{port}")[0] == 200
    own = f"http://127.0.0.1:{port}"
    others = ("http://attacker.example", f"http://127.0.0.1:{port + 1}", f"{own}.attacker.example", "null", "[", "")
    for path, body in (("/about", None), ("/search", b"no picture")):
        answered = 200 if body is None else 422
        assert call(port, path, body, Origin=own)[0] == answered
        assert call(port, path, body, Origin=f"http://LOCALHOST:{port}", Host=f"localhost:{port}")[0] == answered
        assert [call(port, path, body, Origin=origin)[0] for origin in others] == [403] * len(others)
    form = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": "http://attacker.example"}
    assert call(port, "/search", b"no picture", **form)[0] == 403
    headers = call(port, "/")[1]
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert headers["referrer-policy"] == "no-referrer"


def test_with_a_token_nothing_is_answered_without_it(folder):
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.0.0.4", "here")] == [
        *[True] * 3, *[False] * 4,
    ]  # fmt: skip
    with served(folder, token="dünn") as port:
        for path in ("/", "/about", "/openapi.json", "/static/page.css", "/pictures/0", "/?token=wrong", "/no such"):
            assert call(port, path.replace(" ", "%20"))[0] == 401, path
        assert call(port, "/search", b"x")[0] == 401
        status, headers, _ = call(port, "/?token=d%C3%BCnn")
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        assert call(port, "/about", Cookie=cookie.split(";")[0])[0] == 200
    with served(folder, token="thin") as port:
        shown = {"Authorization": "Bearer thin", "Host": "served.example"}
        assert call(port, "/about", **shown)[0] == 200
        assert call(port, "/about", **shown, Origin="https://served.example")[0] == 200  # behind a proxy with TLS
        assert call(port, "/about", **shown, Origin="https://attacker.example")[0] == 403


def test_nobody_else_reaches_it_without_a_token(folder, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append(self.config.app))
    monkeypatch.delenv("LOOKALIKE_TOKEN", raising=False)
    told = {}
    for host in ("127.0.0.1", "0.0.0.0"):
        serving.print_service([opened()], folder / "pictures", store=folder / "store", way=None, host=host, port=0)
        told[host] = capsys.readouterr().out
    assert "token" not in told["127.0.0.1"]
    assert len(told["0.0.0.0"].split("?token=")[1].split(",")[0]) >= 20
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ValueError, match="--port 0 takes a free one"):
        port = taken.getsockname()[1]
        serving.print_service(
            [opened()], folder / "pictures", store=folder / "store", way=None, host="127.0.0.1", port=port
        )


def png(width, height, rows=b""):
    """A PNG by its parts, of any size in its head."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def hostile(count):
    """Pictures cut short or spoiled, bombs, and what is no picture."""
    generator = np.random.default_rng(0)
    pixels = Image.fromarray(generator.integers(0, 256, (40, 52, 3), dtype=np.uint8))
    whole = {}
    for kind in ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "JPEG2000", "AVIF"):
        stream = io.BytesIO()
        pixels.save(stream, kind)
        whole[kind] = stream.getvalue()
    others = [
        b"", b"\x00" * 1000, b"<html><script>alert(1)</script>", b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nsystemdict\n", b"%PDF-1.7\n", b"PK\x03\x04" + b"a" * 99,
        b"../../../etc/passwd", b"GIF89a" + b"\xff" * 400, png(100_000, 100_000), png(60_000, 60_000, b"\x00" * 10**6),
        png(12_000, 12_000, bytes(12_000 * 36_001)), png(9000, 9000), png(20_000, 1), png(1, 60_000_000), png(0, 0),
        png(2**31 - 1, 2**31 - 1),
        b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + b"\x80\x00\x00" + b"\x00" * 6 + b",",
        b"P6 60000 60000 255\n", b"P6 " + b"9" * 5000,
        b"BM" + b"\xff" * 60, b"II*\x00\xff\xff\xff\xff", b"\xff\xd8\xff" * 400,
    ]  # fmt: skip
    yield from others
    for number in range(count - len(others)):
        data = bytearray(list(whole.values())[number % len(whole)])
        if number % 2:
            yield bytes(data[: generator.integers(1, len(data))])
        else:
            for place in generator.integers(0, min(len(data), 400 if number % 4 else len(data)), 12):
                data[place] = generator.integers(0, 256)
            yield bytes(data)


@contextmanager
def peak_below(*, calls):
    """The service, which is in this process, holds no more than its limits allow, over what it held before.

    Each call at a time has its bytes and the buffer that gathers them. One picture is decoded at a time: Pillow holds
    8 bits in RGB as four bytes a pixel, and `as_rgb` makes a copy.
    """
    most = calls * 2 * serving.MOST_BYTES + 2 * 4 * MOST_PIXELS
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident_megabytes()
    yield
    assert peak_megabytes() - before < most / 1e6


def files_of(folder):
    return sorted((str(path), path.stat().st_size) for path in folder.rglob("*"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_thousand_hostile_uploads_are_each_refused_in_a_line_and_write_nothing(
    folder, port, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, statuses, pictures = files_of(folder), [], list(hostile(1000))
    names = ["../../etc/passwd", "/etc/passwd", "a\\..\\b", "x" * 3000, "%00", "$(touch x)", "COM1"]
    kinds = ["image/jpeg", "text/html", "multipart/form-data; boundary=x", "x/../y"]
    with peak_below(calls=1):  # 11 MB were seen
        for number, data in enumerate(pictures):
            name = names[number % len(names)]
            headers = {"Content-Disposition": f'form-data; name="f"; filename="{name}"', "X-File-Name": name}
            headers["Content-Type"] = kinds[number % len(kinds)]
            status, answered, said = call(port, "/search?top=2", data, **headers)
            assert status in (200, 422), (number, status, said)
            if status == 422:
                assert answered["content-type"] == "application/json"
                assert said["detail"] and "\n" not in said["detail"], said
            statuses.append(status)
    assert statuses[:23] == [422] * 23
    assert 300 < statuses.count(422) < 1000  # Pillow reads some spoiled ones to their end
    assert files_of(folder) == before and files_of(tmp_path) == []
    assert "Traceback" not in "".join(capfd.readouterr())


def raw(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.settimeout(60)
        try:
            connection.sendall(data)
            return connection.recv(200)
        except ConnectionError:  # it is closed while more is sent
            return b""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_thirty_at_once_get_the_answers_of_one_within_bounds_of_memory(folder, port):
    vast = png(8000, 8000, bytes(8000 * 24_001))  # as many pixels as are decoded
    sent = [path.read_bytes() for path in sorted((folder / "pictures").rglob("0*.png"))]
    sent += [vast, bytes(serving.MOST_BYTES), *list(hostile(23))]

    def answer(data):
        for _ in range(1000):
            with suppress(ConnectionError):  # where 503 comes while the picture is still sent
                status, _, said = call(port, "/search?top=3", data)
                if status != 503:
                    return status, {each["picture"]: each["score"] for each in said.get("hits", [])}
            time.sleep(0.1)
        raise AssertionError("never answered")

    alone = [answer(data) for data in sent]
    assert [status for status, _ in alone] == [200] * 13 + [422] * 24
    with peak_below(calls=serving.MOST_CALLS), ThreadPoolExecutor(30) as clients:
        together = list(clients.map(answer, 10 * [vast] + 2 * sent))
    for (status, hits), (expected, of_one) in zip(together, 10 * [alone[sent.index(vast)]] + 2 * alone, strict=True):
        assert status == expected and hits == pytest.approx(of_one, abs=1e-5)


def test_a_call_too_many_is_refused(port):
    idle = []
    for status, more in ((200, serving.MOST_CALLS - 1), (503, 1)):
        idle += [socket.create_connection(("127.0.0.1", port)) for _ in range(more)]
        wait_until(lambda status=status: call(port, "/about")[0] == status, 60, f"no {status}")
    for each in idle:
        each.close()


def test_what_is_too_long_is_refused_before_it_is_kept(folder, port, monkeypatch):
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    assert b" 413 " in raw(port, head + b"Content-Length: 99999999999\r\n\r\n")
    answer = raw(port, head + b"X: " + b"a" * 200_000)
    assert answer == b"" or b" 400 " in answer or b" 431 " in answer
    with monkeypatch.context() as changed:
        changed.setattr(serving, "PATIENCE_S", 1.0)
        assert b" 408 " in raw(port, head + b"Content-Length: 50\r\n\r\nabc")
    assert b" 400 " in raw(port, head + b"Content-Length: -5\r\n\r\n")
    assert b" 400 " in raw(port, b"\x16\x03\x01\x02\x00\x01\x00" * 20 + b"\r\n\r\n")
    part = b"100000\r\n" + b"a" * 2**20 + b"\r\n"
    assert b" 413 " in raw(port, head + b"Transfer-Encoding: chunked\r\n\r\n" + part * 25)
    with socket.create_connection(("127.0.0.1", port)) as broken:
        broken.sendall(head + b"Content-Length: 50\r\n\r\nabc")
    path = folder / "pictures" / "even" / "004.png"
    assert call(port, "/search?top=1", path.read_bytes())[0] == 200


@pytest.mark.slow
def test_an_interrupt_right_behind_the_printed_line_ends_it_even_where_a_shell_ignores_interrupts(tmp_path):
    code = """if True:
        import signal, sys, uvicorn
        from lookalike.app.command import main
        run = uvicorn.Server.run
        uvicorn.Server.run = lambda server, **options: (signal.raise_signal(signal.SIGINT), run(server, **options))
        sys.exit(main(sys.argv[1:]))
    """
    line = [sys.executable, "-c", code, "serve", "groceries:", "--port", "0", "--index", str(tmp_path)]
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, **ignored)
    assert (done.returncode, done.stdout.partition(", until ")[2]) == (0, "Ctrl-C\n"), done.stderr
    assert "Warning" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason=MISSING)
def test_the_page_finds_explains_and_filters_in_a_browser(folder, port):
    with browser() as page:
        for width in (1280, 390):
            page.open(f"http://127.0.0.1:{port}/", width=width, dark=width == 390)
            page.wait("document.querySelectorAll('#samples img').length === 12 && document.querySelector('#way').value")
            page.choose("#file", folder / "pictures" / "even" / "004.png")
            page.wait("document.querySelectorAll('#found .open:not(:disabled)').length === 12")
            assert page.run("document.querySelector('#found .name').textContent") == "even/004.png"
            page.click("#found li:nth-child(2) .open")
            page.wait("document.querySelector('dialog[open] #words').textContent.startsWith('Cosine')")
            page.point("#query .frame", 0.3, 0.3)
            page.wait("document.querySelector('#place').textContent.includes('row')")
            page.click("#close")
            page.run("const e = document.querySelector('#below'); e.value = 'odd'; e.onchange()")
            page.wait("document.querySelectorAll('#found .open:not(:disabled)').length === 6")
            page.click("#samples button:nth-child(3)")
            page.wait("document.querySelector('#asked span').textContent === 'even/004.png'")
            page.wait("document.querySelectorAll('#found .open:not(:disabled)').length === 6")
            page.run("{ const e = document.querySelector('#below'); e.value = ''; e.onchange() }")
            page.wait("document.querySelectorAll('#found .open:not(:disabled)').length === 11")
            page.run("document.querySelector('#look').click()")
            page.wait("document.querySelectorAll('#doubtful h3').length === 4")
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
        page.run("const m = document.querySelector('#model'); m.selectedIndex = 1; m.onchange()")
        page.wait(
            "document.querySelector('#way').value === 'structure' && "
            "document.querySelector('#status').textContent.includes('similarity, found')"
        )
        page.run("{ const w = document.querySelector('#way'); w.value = 'cosine'; w.onchange() }")
        page.wait("document.querySelector('#status').textContent.includes('by cosine, found')")
        page.drop("#drop", folder / "pictures" / "odd" / "003.png")
        page.wait("document.querySelector('#asked span').textContent === '003.png'")
        page.wait("document.querySelector('#found .name').textContent === 'odd/003.png'")
        page.wait("document.querySelector('#found .open:not(:disabled)')")
        assert not page.run("document.querySelector('#drop').classList.contains('over')")
        link = page.run("document.querySelector('#found .links a').href")
        page.click("#found .links a")
        wait_until(lambda: link in page.addresses(), 60, "no file opened")
        assert call(port, link.partition(str(port))[2])[2] == (folder / "pictures" / "odd" / "003.png").read_bytes()
        page.choose("#file", folder / "pictures" / "odd" / "broken.png")
        page.wait("document.querySelector('#status').textContent.startsWith('Refused: no readable picture')")
        expected = [each for each in page.problems if "422" not in each]
        assert expected == []
        assert all(
            each.startswith((f"http://127.0.0.1:{port}/", "data:", "blob:"))
            for each in page.requests
            if each != "about:blank"
        )
