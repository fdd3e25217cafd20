import errno
import hashlib
import os
import shutil
import socket
import threading
from functools import partial

import pytest

from lookalike.workflow.data import DownloadError, checksums, download, fetch
from lookalike.workflow.data.checksums import RECORD
from lookalike.workflow.settings.datasets import Archive

BYTES = bytes((n * n * 7919 + n // 3) % 251 for n in range(300_000))
PAGE = b"<!DOCTYPE html><html>Google Drive - Quota exceeded</html>"


def archive_of(*urls, content=BYTES, **changes):
    known = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **changes}
    return Archive(file="birds.tgz", creates="birds", urls=list(urls), **known)


@pytest.fixture
def get(tmp_path):
    return partial(fetch, folder=tmp_path / "archives", timeout_s=5.0, pause_s=0.0)


@pytest.fixture
def dead_url():
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{port.getsockname()[1]}/birds.tgz"


def assert_only(path):
    left = {entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")}
    assert left == {path.name}


def test_an_archive_is_downloaded_whole(server, get):
    server.files["/a"] = BYTES
    path = get(archive_of(f"{server.url}/a"))
    assert path.name == "birds.tgz"
    assert path.read_bytes() == BYTES
    assert_only(path)


def test_a_second_call_asks_nobody(server, get):
    server.files["/a"] = BYTES
    first = get(archive_of(f"{server.url}/a"))
    assert get(archive_of(f"{server.url}/a")) == first
    assert len(server.requests) == 1


def test_dead_mirrors_are_passed_over(server, get, dead_url):
    server.files["/good"] = BYTES
    path = get(archive_of(dead_url, f"{server.url}/gone", "http://[nonsense", f"{server.url}/good"))
    assert path.read_bytes() == BYTES
    assert [asked for asked, _ in server.requests] == ["/gone", "/good"]


def test_a_broken_transfer_is_taken_up_where_it_broke(server, get, answer_ranged):
    server.files["/a"] = BYTES
    server.answers["/a"] = [partial(answer_ranged, stop=100_000), partial(answer_ranged, stop=250_000)]
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES
    assert server.requests == [("/a", None), ("/a", "bytes=100000-"), ("/a", "bytes=250000-")]


def test_a_part_of_an_earlier_process_is_taken_up(server, get, tmp_path):
    server.files["/a"] = BYTES
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "birds.tgz.part").write_bytes(BYTES[:200_000])
    assert_only(get(archive_of(f"{server.url}/a")))
    assert server.requests == [("/a", "bytes=200000-")]


def test_a_server_without_ranges_starts_again(server, get, answer_whole, answer_ranged):
    server.files["/a"] = BYTES
    server.answers["/a"] = [partial(answer_ranged, stop=100_000), answer_whole]
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES
    assert len(server.requests) == 2


def test_a_part_from_somewhere_else_is_thrown_away(server, get, tmp_path):
    server.files["/a"] = BYTES
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "birds.tgz.part").write_bytes(PAGE)
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES
    assert server.requests == [("/a", f"bytes={len(PAGE)}-"), ("/a", None)]


def test_a_part_longer_than_the_file_is_thrown_away(server, get, tmp_path):
    server.files["/a"] = BYTES
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "birds.tgz.part").write_bytes(BYTES + b"more")
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES
    assert server.requests == [("/a", f"bytes={len(BYTES) + 4}-"), ("/a", None)]


def test_a_part_that_is_whole_already_asks_nobody(server, get, tmp_path):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "birds.tgz.part").write_bytes(BYTES)
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES
    assert server.requests == []


def test_a_range_from_the_wrong_place_is_not_appended(server, get, answer_ranged):
    def elsewhere(handler, content):
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 0-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    server.files |= {"/a": BYTES, "/b": BYTES}
    server.answers["/a"] = [partial(answer_ranged, stop=100_000), elsewhere]
    assert get(archive_of(f"{server.url}/a", f"{server.url}/b")).read_bytes() == BYTES
    assert server.requests[-1] == ("/b", "bytes=100000-")


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (PAGE, "text/html; charset=utf-8"),  # a quota page says what it is
        (PAGE, "application/gzip"),
        (BYTES[:-1], "application/gzip"),
        (BYTES + b"x", "application/gzip"),
        (BYTES[:-1] + b"x", "application/gzip"),
        (b"", "application/gzip"),
    ],
    ids=["page", "disguised page", "truncated", "too long", "wrong checksum", "empty"],
)
@pytest.mark.parametrize("with_size", [True, False])
def test_what_is_not_the_archive_gives_way_to_the_next_mirror(server, get, answer_whole, bad, kind, with_size):
    server.files |= {"/bad": bad, "/good": BYTES}
    server.answers["/bad"] = [partial(answer_whole, kind=kind)]
    changes = {} if with_size else {"size": None, "sha256": None, "md5": hashlib.md5(BYTES).hexdigest()}
    path = get(archive_of(f"{server.url}/bad", f"{server.url}/good", **changes))
    assert path.read_bytes() == BYTES
    assert_only(path)
    assert [asked for asked, _ in server.requests] == ["/bad", "/good"]


def test_a_body_without_a_length_is_read_to_its_end(server, get):
    def unannounced(handler, content):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(content)

    server.files["/a"] = BYTES
    server.answers["/a"] = [unannounced]
    assert get(archive_of(f"{server.url}/a", size=len(BYTES))).read_bytes() == BYTES


def test_when_nothing_works_one_line_says_what_to_do_by_hand(server, get, dead_url, tmp_path):
    server.files["/page"] = PAGE
    with pytest.raises(DownloadError) as error:
        get(archive_of(dead_url, f"{server.url}/page", f"{server.url}/gone"), manual="ask the owner at example.org")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"birds.tgz cannot be fetched: {dead_url} does not answer: ")
    assert f"/page announces {len(PAGE)} bytes instead of 300000" in message
    assert "/gone answers 404 Not Found" in message
    assert message.endswith(
        f"By hand: ask the owner at example.org; put the file into {tmp_path / 'archives'}, under any name"
    )
    assert not list((tmp_path / "archives").glob("birds*"))


def test_an_archive_without_address_says_what_to_do_by_hand(get):
    with pytest.raises(
        DownloadError, match=r"img\.zip cannot be fetched: it has no address\. By hand: .*, as img\.zip"
    ):
        get(Archive(file="img.zip", creates="img", unverified=True), manual="accept the agreement")


@pytest.mark.parametrize("name", ["birds.tgz", "renamed by hand (1).bin"])
@pytest.mark.parametrize("place", ["archives", "archives/from a friend/2019"])
def test_an_archive_on_disk_is_known_by_its_bytes(server, get, tmp_path, name, place):
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / name).write_bytes(BYTES)
    (tmp_path / place / "another of this size").write_bytes(bytes(len(BYTES)))
    assert get(archive_of(f"{server.url}/a")) == tmp_path / place / name
    assert server.requests == []


def test_linked_folders_are_looked_into_once_and_hidden_ones_never(server, get, tmp_path):
    (tmp_path / "archives" / ".trash").mkdir(parents=True)
    (tmp_path / "archives" / ".trash" / "birds.tgz").write_bytes(BYTES)
    (tmp_path / "archives" / "circle").symlink_to(tmp_path / "archives")
    with pytest.raises(DownloadError):
        get(archive_of())
    (tmp_path / "big disk").mkdir()
    (tmp_path / "big disk" / "a").write_bytes(BYTES)
    (tmp_path / "archives" / "link").symlink_to(tmp_path / "big disk")
    assert get(archive_of()) == tmp_path / "archives" / "link" / "a"


def test_a_wrong_file_of_that_name_is_replaced_by_a_download_and_else_explained(server, get, tmp_path):
    (tmp_path / "archives").mkdir()
    wrong = tmp_path / "archives" / "birds.tgz"
    wrong.write_bytes(BYTES[:-1] + b"x")
    with pytest.raises(DownloadError, match=r"archives/birds\.tgz has the sha256 .* instead of"):
        get(archive_of())
    server.files["/a"] = BYTES
    assert get(archive_of(f"{server.url}/a")).read_bytes() == BYTES


def test_an_archive_without_checksum_is_known_by_its_name_and_must_be_whole(server, get, tmp_path):
    (tmp_path / "archives").mkdir()
    found = tmp_path / "archives" / "cars.zip"
    archive = Archive(file="cars.zip", creates="cars", unverified=True, urls=[f"{server.url}/a"])
    server.files["/a"] = PAGE
    with pytest.raises(DownloadError, match="serves another file: it is no whole archive"):
        get(archive)
    (tmp_path / "cars").mkdir()
    shutil.make_archive(str(found.with_suffix("")), "zip", tmp_path / "cars")
    assert get(archive) == found
    server.files["/a"] = found.read_bytes()
    found.write_bytes(PAGE)
    assert get(archive).read_bytes() == server.files["/a"]


def test_pieces_without_checksum_are_not_put_together(server, get, tmp_path):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "list.txt.part").write_bytes(b"old")
    server.files["/a"] = b"new and longer"
    archive = Archive(file="list.txt", creates="list.txt", unverified=True, urls=[f"{server.url}/a"])
    assert get(archive).read_bytes() == b"new and longer"


def test_gigabytes_are_read_once(server, get, tmp_path, monkeypatch):
    read = []

    def count(path, algorithm="sha256", real=checksums.file_digest):
        read.append(path.name)
        return real(path, algorithm)

    monkeypatch.setattr(checksums, "file_digest", count)
    server.files["/a"] = BYTES
    path = get(archive_of(f"{server.url}/a"))
    get(archive_of(f"{server.url}/a"))
    assert read == []  # pooch has, in the transfer
    path.write_bytes(BYTES)
    os.utime(path, ns=(1, 1))
    get(archive_of(f"{server.url}/a"))
    (tmp_path / "archives" / RECORD).unlink()
    get(archive_of(f"{server.url}/a"))
    assert read == ["birds.tgz", "birds.tgz"]


def test_a_full_disk_stops_at_once_and_says_where(server, get, tmp_path):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "birds.tgz.part").symlink_to("/dev/full")
    server.files |= {"/a": BYTES, "/b": BYTES}
    with pytest.raises(OSError, match=r"birds\.tgz\.part cannot be written: No space left on device") as error:
        get(archive_of(f"{server.url}/a", f"{server.url}/b"))
    assert error.value.errno == errno.ENOSPC
    assert len(server.requests) == 1


def test_a_disk_too_small_for_the_archive_is_noticed_before_the_download(server, get, tmp_path, monkeypatch):
    small = shutil.disk_usage(tmp_path)._replace(free=len(BYTES) - 1)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: small)
    server.files["/a"] = BYTES
    with pytest.raises(OSError, match="No space left on device"):
        get(archive_of(f"{server.url}/a"))
    assert not list((tmp_path / "archives").glob("birds*"))


def test_a_server_that_falls_silent_is_given_up(server, get):
    release = threading.Event()

    def silent(handler, content):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        release.wait(20)

    server.files |= {"/a": BYTES, "/b": BYTES}
    server.answers["/a"] = [silent]
    try:
        assert get(archive_of(f"{server.url}/a", f"{server.url}/b"), timeout_s=0.3).read_bytes() == BYTES
    finally:
        release.set()
