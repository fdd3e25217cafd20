"""Decoded pictures are the pictures, decoded once."""

import pickle
import threading

import numpy as np
import pytest
from PIL import Image

from lookalike.workflow.data import decoded as module
from lookalike.workflow.data.decoded import decoded
from lookalike.workflow.data.pictures import read_picture

LIMIT = 10**9


def small(picture):
    return picture.resize((9, 7))


@pytest.fixture
def paths(tmp_path):
    generator = np.random.default_rng(0)
    (tmp_path / "originals").mkdir()
    for number in range(5):
        pixels = generator.integers(0, 255, (20 + number, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "originals" / f"{number}.jpg")
    return sorted((tmp_path / "originals").iterdir())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("prepare", [lambda picture: picture, small])
def test_every_picture_is_what_its_file_gives(paths, tmp_path, prepare, threads):
    found = decoded(paths, tmp_path / "kept", prepare, limit_bytes=LIMIT, threads=threads)
    for path in reversed(paths):
        assert path in found
        assert np.array_equal(found[path], np.asarray(prepare(read_picture(path))))
    assert tmp_path not in found


def test_the_second_call_decodes_nothing(paths, tmp_path, monkeypatch):
    first = decoded(paths, tmp_path / "kept", small, limit_bytes=LIMIT)
    monkeypatch.setattr(module, "read_picture", lambda path: pytest.fail(f"decodes {path}"))
    second = decoded(paths, tmp_path / "kept", small, limit_bytes=LIMIT)
    assert second[paths[3]].tobytes() == first[paths[3]].tobytes()


def test_another_process_maps_the_file_itself(paths, tmp_path):
    found = decoded(paths, tmp_path / "kept", small, limit_bytes=LIMIT)
    expected = found[paths[2]].tobytes()
    sent = pickle.dumps(found)
    assert len(sent) < 4000
    assert pickle.loads(sent)[paths[2]].tobytes() == expected


def test_what_is_too_large_is_not_kept_and_not_looked_at_again_until_the_limit_is_raised(paths, tmp_path, monkeypatch):
    def never(path):
        pytest.fail(f"decodes {path}")

    needed = sum(3 * read_picture(path).width * read_picture(path).height for path in paths)
    assert decoded(paths, tmp_path / "kept", lambda picture: picture, limit_bytes=needed - 1) is None
    assert sum(path.stat().st_size for path in (tmp_path / "kept").iterdir()) < 1000
    with monkeypatch.context() as patch:
        patch.setattr(module, "read_picture", never)
        assert decoded(paths, tmp_path / "kept", lambda picture: picture, limit_bytes=needed - 1) is None
    found = decoded(paths, tmp_path / "kept", lambda picture: picture, limit_bytes=needed)
    assert found[paths[4]].tobytes() == read_picture(paths[4]).tobytes()


def test_a_disk_without_room_is_left_as_it_is(paths, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "SPARE_BYTES", 10**18)
    assert decoded(paths, tmp_path / "kept", small, limit_bytes=LIMIT) is None
    assert "do not fit on the disk" in caplog.text
    assert not (tmp_path / "kept").exists()


def test_a_broken_picture_is_named_and_leaves_nothing_behind(paths, tmp_path):
    paths[3].write_bytes(paths[3].read_bytes()[:80])
    with pytest.raises(ValueError, match=r"3\.jpg: no readable picture"):
        decoded(paths, tmp_path / "kept", small, limit_bytes=LIMIT)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["originals"]


def test_of_two_that_come_together_one_decodes(paths, tmp_path, monkeypatch):
    read = []

    def counted(path):
        read.append(path)
        return read_picture(path)

    monkeypatch.setattr(module, "read_picture", counted)
    monkeypatch.setattr(module, "SAMPLED", 10**9)
    threads = [
        threading.Thread(target=decoded, args=(paths, tmp_path / "kept", small), kwargs={"limit_bytes": LIMIT})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 2 * len(paths)  # once for their size, once to be kept
