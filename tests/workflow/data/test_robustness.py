"""After each fault no folder is half made and the same call, made again, finishes: see ``docs/robustness.md``."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
from functools import partial

import pytest

from described import ensure_data
from disks import mount, small_disk
from lookalike.workflow.data import DownloadError, fetch
from tars import tar_of, unpack
from waiting import BEGINS_S, wait_until

PICTURES = {f"pictures/{label}/{n}.jpg": os.urandom(20_000) for label in "ab" for n in range(10)}  # nothing to compress
PAGE = b"<!DOCTYPE html><html>Quota exceeded</html>"


ARCHIVE = tar_of(PICTURES)
HOSTILE = tar_of({**PICTURES, "../outside.jpg": b"x"})


def specification_of(*urls, checked=True):
    known = {"size": len(ARCHIVE), "sha256": hashlib.sha256(ARCHIVE).hexdigest()} if checked else {"unverified": True}
    return {
        "title": "pictures",
        "layout": "folder",
        "counts": {"train": {"classes": 1, "images": 10}, "test": {"classes": 1, "images": 10}},
        "archives": [{"file": "pictures.tgz", "creates": "pictures", "urls": list(urls), **known}],
    }


@pytest.fixture
def places(tmp_path):
    return tmp_path / "data" / "pictures", tmp_path / "archives"


def visible(folder):
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"} if folder.is_dir() else set()


def assert_nothing_is_half_made(root, archives):
    """No root, no folder it would have been made from, and no archive under its final name."""
    assert visible(root.parent) == set()
    assert visible(archives) <= {"pictures.tgz.part", "pictures.tgz.refused", ".checksums.json"}
    assert not (root.parent.parent / "outside.jpg").exists()


def assert_finished(root):
    assert {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.jpg")} == PICTURES
    assert visible(root.parent) == {root.name}


def gone(handler, content):
    handler.send_error(503)


def cut(handler, content):
    """Half of what was announced, and nothing on the next attempts."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])


def closed(handler, content):
    """The connection ends without a word."""
    handler.close_connection = True


def serving(content, kind="application/gzip"):
    def answer(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


FAULTS = {
    "no answer": ([closed], True),
    "temporarily unavailable": ([gone], True),
    "cut connection": ([cut, closed], True),
    "cut connection, then a server without ranges that is cut too": ([cut, cut], True),
    "quota page": ([serving(PAGE, "text/html")], True),
    "quota page that calls itself an archive": ([serving(PAGE)], True),
    "truncated archive": ([serving(ARCHIVE[:-100])], True),
    "wrong checksum": ([serving(bytes(len(ARCHIVE)))], True),
    "truncated archive without published checksum": ([serving(ARCHIVE[: len(ARCHIVE) // 2])], False),
    "hostile archive without published checksum": ([serving(HOSTILE)], False),
}


@pytest.mark.parametrize(("answers", "checked"), FAULTS.values(), ids=FAULTS.keys())
def test_after_a_bad_answer_nothing_is_half_made_and_the_same_call_finishes(
    server, places, monkeypatch, answers, checked
):
    monkeypatch.setattr("lookalike.workflow.data.prepare.fetch", partial(fetch, timeout_s=5.0, pause_s=0.0))
    server.files["/a"] = ARCHIVE
    server.answers["/a"] = list(answers)
    specification = specification_of(f"{server.url}/a", checked=checked)
    with pytest.raises((DownloadError, ValueError)):
        ensure_data(specification, *places)
    assert_nothing_is_half_made(*places)
    assert not server.answers["/a"]
    assert_finished(ensure_data(specification, *places))


def test_a_disk_that_fills_up_in_unpacking_leaves_the_archive_only(server, places, monkeypatch):
    server.files["/a"] = ARCHIVE
    specification = specification_of(f"{server.url}/a")
    written = []
    real = tarfile.copyfileobj

    def full(*arguments, **options):
        written.append(arguments)
        if len(written) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tarfile, "copyfileobj", full)
        with pytest.raises(OSError, match=r"cannot be unpacked into .*: No space left on device"):
            ensure_data(specification, *places)
    assert len(written) == 6
    assert visible(places[0].parent) == set()
    assert_finished(ensure_data(specification, *places))
    assert len(server.requests) == 1


@pytest.fixture
def growing_disk(tmp_path):
    """A file system of 200 kB, and what makes it one of 20 MB."""
    with small_disk(tmp_path / "disk", "200k") as folder:
        yield folder, partial(mount, folder, "20m", "remount")


def unannounced(handler, content):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(content)


def test_a_download_onto_a_disk_that_is_really_full_finishes_once_there_is_room(server, places, growing_disk):
    archives, enlarge = growing_disk
    server.files["/a"] = ARCHIVE
    server.answers["/a"] = [unannounced]  # otherwise the announced size alone is refused
    specification = specification_of(f"{server.url}/a")
    del specification["archives"][0]["size"]
    with pytest.raises(OSError, match="No space left on device") as error:
        ensure_data(specification, places[0], archives)
    assert error.value.errno == errno.ENOSPC
    assert_nothing_is_half_made(places[0], archives)
    assert (archives / "pictures.tgz.part").stat().st_size > 100_000
    assert enlarge()
    assert_finished(ensure_data(specification, places[0], archives))


def test_unpacking_onto_a_disk_that_is_really_full_finishes_once_there_is_room(server, places, growing_disk):
    disk, enlarge = growing_disk
    server.files["/a"] = ARCHIVE
    specification = specification_of(f"{server.url}/a")
    with pytest.raises(OSError, match=r"cannot be unpacked into .*: No space left on device") as error:
        ensure_data(specification, disk / "pictures", places[1])
    assert error.value.errno == errno.ENOSPC
    assert visible(disk) == set()
    assert enlarge()
    assert_finished(ensure_data(specification, disk / "pictures", places[1]))
    assert len(server.requests) == 1


ENSURE = """
import json, sys, tarfile, time
from pathlib import Path
from lookalike.workflow.data import ensure_data
from lookalike.workflow.settings.datasets import Dataset
write, written = tarfile.copyfileobj, []
def slow(*arguments, **options):
    write(*arguments, **options)
    written.append(arguments)
    if len(written) == int(sys.argv[4]):
        print("half", flush=True)
        time.sleep(600)
tarfile.copyfileobj = slow
print("asking", flush=True)
print(ensure_data(Dataset(**json.loads(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])), flush=True)
"""


@pytest.fixture
def start(places):
    """Start ``ensure_data`` in a process of its own, which stops after so many members are written."""
    processes = []

    def begin(specification, stop_after=0):
        command = [sys.executable, "-c", ENSURE, json.dumps(specification), *map(str, places), str(stop_after)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "asking\n"
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def test_two_processes_download_and_unpack_once(server, places, start):
    both_ask = threading.Event()

    def slow(handler, content):
        both_ask.wait(60)
        serving(content)(handler, content)

    server.files["/a"] = ARCHIVE
    server.answers["/a"] = [slow, slow]
    processes = [start(specification_of(f"{server.url}/a")) for _ in range(2)]
    both_ask.set()
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert {out for out, _ in answers} == {f"{places[0]}\n"}
    assert len(server.requests) == 1
    assert_finished(places[0])


def test_a_process_killed_in_the_download_is_gone_on_with(server, places, start):
    arrived, release = threading.Event(), threading.Event()

    def half(handler, content):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:150_000])
        handler.wfile.flush()
        arrived.set()
        release.wait(60)

    server.files["/a"] = ARCHIVE
    server.answers["/a"] = [half]
    specification = specification_of(f"{server.url}/a")
    process = start(specification)
    assert arrived.wait(60)
    part = places[1] / "pictures.tgz.part"
    # What is written reaches the disk by the buffer.
    wait_until(lambda: part.is_file() and part.stat().st_size, BEGINS_S, "nothing was written")
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    release.set()
    assert_nothing_is_half_made(*places)
    have = part.stat().st_size
    assert_finished(ensure_data(specification, *places))
    assert server.requests[-1] == ("/a", f"bytes={have}-")


def test_a_process_killed_in_unpacking_leaves_no_data_and_the_same_call_finishes(server, places, start):
    server.files["/a"] = ARCHIVE
    specification = specification_of(f"{server.url}/a")
    process = start(specification, stop_after=7)
    assert process.stdout.readline() == "half\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not places[0].exists()
    assert len(list((places[0].parent / ".pictures.partial").rglob("*.jpg"))) == 7
    assert_finished(ensure_data(specification, *places))
    assert len(server.requests) == 1


def test_whole_pictures_of_the_wrong_number_are_refused_and_their_archive_is_named(server, places):
    server.files["/a"] = tar_of({"pictures/a/0.jpg": b"0", "pictures/b/0.jpg": b"1"})
    specification = specification_of(f"{server.url}/a", checked=False)
    for _ in range(2):  # a file that is whole stays: asking again would bring the same one
        with pytest.raises(ValueError, match=r"10 images expected, .* \(unpacked from .*archives/pictures\.tgz\)"):
            ensure_data(specification, *places)
    assert visible(places[0].parent) == set()
    assert len(server.requests) == 1
    (places[1] / "pictures.tgz").write_bytes(ARCHIVE)
    assert_finished(ensure_data(specification, *places))


def test_a_hostile_archive_from_a_person_writes_nothing_and_stays_where_it_is(tmp_path, places):
    places[1].mkdir()
    specification = specification_of(checked=False)
    (places[1] / "pictures.tgz").write_bytes(HOSTILE)
    with pytest.raises(ValueError, match=r"'\.\./outside\.jpg' would be extracted to .*outside the destination"):
        ensure_data(specification, *places)
    assert visible(places[0].parent) == set()
    assert not list(tmp_path.rglob("outside.jpg"))
    assert (places[1] / "pictures.tgz").read_bytes() == HOSTILE
    (places[1] / "pictures.tgz").write_bytes(ARCHIVE)
    assert_finished(ensure_data(specification, *places))


def test_a_name_that_is_too_long_for_the_disk_leaves_nothing(tmp_path):
    (tmp_path / "long.tgz").write_bytes(tar_of({"a/0.jpg": b"x", "a/" + "x" * 300: b"x"}))
    with pytest.raises(OSError, match=r"long\.tgz cannot be unpacked into .*: File name too long"):
        unpack(tmp_path / "long.tgz", tmp_path / "target")
    assert visible(tmp_path) == {"long.tgz"}
