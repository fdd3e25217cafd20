"""Own pictures that cannot be read, or that lie in two classes, are named, and left out by choice."""

import numpy as np
import pytest
from PIL import Image

from lookalike.data import read_layout, read_manifest, write_manifest
from lookalike.data.readable import unreadable
from lookalike.data.screening import check_readable, screened

FOLDER = {"title": "mine", "layout": "folder"}


@pytest.fixture
def pictures(tmp_path):
    generator = np.random.default_rng(0)
    for name in ("a/0", "a/1", "b/0", "b/1", "c/0", "c/1", "d/0", "d/1", "new/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(generator.integers(0, 255, (8, 9, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    return tmp_path


def screen(root, **keys):
    specification = {**FOLDER, "unlabelled": ["new"], **keys}
    return screened(read_layout(specification, root), specification, root, processes=2)


def left_out(frame):
    return dict(frame.loc[frame["role"] == "left_out", ["path", "reason"]].itertuples(index=False))


def test_what_cannot_be_read_is_named_with_the_number_of_the_others(pictures, capsys):
    (pictures / "a/1.png").write_text("<html>")
    (pictures / "d/0.png").write_bytes((pictures / "d/0.png").read_bytes()[:60])
    (pictures / "new/0.png").write_bytes(b"")
    message = (
        r"a/1\.png: no readable picture \(.*\) \(and 2 more, all in the log\); mend or remove them, or .*`broken: skip`"
    )
    with pytest.raises(ValueError, match=message) as refused:
        screen(pictures)
    assert "\n" not in str(refused.value)
    log = capsys.readouterr().out
    assert "9 of 9 pictures decoded, 3 cannot be read" in log
    assert all(f"{pictures / name}: no readable picture" in log for name in ("a/1.png", "d/0.png", "new/0.png"))


def test_what_cannot_be_read_is_left_out_by_choice_and_stays_in_the_manifest_by_name(pictures, tmp_path_factory):
    (pictures / "a/1.png").write_text("<html>")
    (pictures / "new/0.png").write_bytes(b"")
    frame = screen(pictures, broken="skip")
    assert left_out(frame).keys() == {"a/1.png", "new/0.png"}
    assert all(reason.startswith("no readable picture") for reason in left_out(frame).values())
    path = tmp_path_factory.mktemp("out") / "manifest.csv"
    write_manifest(frame, path)
    assert left_out(read_manifest(path)) == left_out(frame)


def test_equal_pictures_in_two_classes_are_named(pictures, capsys):
    (pictures / "c/0.png").write_bytes((pictures / "a/0.png").read_bytes())
    message = r"^a/0\.png: same bytes as c/0\.png, which is in another class \(and 1 more, .*`duplicates: drop`$"
    with pytest.raises(ValueError, match=message):
        screen(pictures)
    assert "c/0.png: same bytes as a/0.png" in capsys.readouterr().out


def test_equal_pictures_in_two_classes_are_all_dropped_by_choice(pictures):
    (pictures / "c/0.png").write_bytes((pictures / "a/0.png").read_bytes())
    frame = screen(pictures, duplicates="drop")
    assert left_out(frame) == {"a/0.png": "same bytes as c/0.png", "c/0.png": "same bytes as a/0.png"}


def test_of_an_unlabelled_picture_and_an_equal_labelled_one_the_labelled_one_stays(pictures):
    (pictures / "new/0.png").write_bytes((pictures / "d/0.png").read_bytes())
    with pytest.raises(ValueError, match=r"^new/0\.png: same bytes as d/0\.png"):
        screen(pictures)
    assert left_out(screen(pictures, duplicates="drop")) == {"new/0.png": "same bytes as d/0.png"}


def test_equal_pictures_of_one_class_may_stay(pictures):
    (pictures / "a/1.png").write_bytes((pictures / "a/0.png").read_bytes())
    frame = screen(pictures)
    assert "left_out" not in set(frame["role"])
    assert "reason" not in frame


def test_a_split_that_is_made_elsewhere_is_read_too(pictures, capsys):
    frame = read_layout({**FOLDER, "unlabelled": ["new"]}, pictures)
    check_readable(frame, pictures, "stop", processes=2)
    (pictures / "b/0.png").write_text("<html>")
    check_readable(frame, pictures, "skip", processes=2)
    assert "b/0.png: no readable picture" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"b/0\.png: no readable picture"):
        check_readable(frame, pictures, "stop", processes=2)


def test_every_picture_is_decoded_by_several_processes_in_order(pictures):
    paths = sorted(pictures.rglob("*.png")) * 20
    broken = pictures / "broken.png"
    broken.write_bytes(b"x")
    assert list(unreadable([*paths, broken], processes=2)) == [broken]
