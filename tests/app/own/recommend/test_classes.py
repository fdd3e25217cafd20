"""Whole classes are held out by a rule that knows their names alone, and a folder too small is refused in a line."""

import os
from pathlib import Path

import pytest
from PIL import Image

from described import read_layout
from lookalike.app.own.recommend.classes import read_classes, split_classes

NAMES = [f"class{number:02}" for number in range(13)]


def write(folder, classes, pictures=5):
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(pictures):
            Image.new("RGB", (8, 8), (place, number, 0)).save(folder / name / f"{number}.png")
    return folder


def test_half_of_the_classes_are_held_out_whatever_their_order_and_the_larger_part_trains():
    roles = split_classes(NAMES)
    assert list(roles.values()).count("test") == 6
    assert split_classes(NAMES[::-1]) == roles
    assert [roles[name] for name in NAMES] != sorted(roles.values())  # drawn, and not the first half by name


def test_an_overlay_splits_the_folder_as_the_rule_does(tmp_path):
    folder = write(write(tmp_path / "a", NAMES), ["few [x]*"], pictures=3)
    classes = read_classes(folder)
    assert classes.too_small == ("few [x]*",)
    assert classes.notes == ["Left out, with fewer than 4 pictures: few [x]*."]
    assert classes.rule.startswith("6 classes are held out and decide, 7 classes train; half of the 13, drawn once")
    read = read_layout(classes.specification(tmp_path / "links"), folder)
    roles = {path.split("/")[0]: role for path, role in zip(read["path"], read["role"], strict=True)}
    assert roles == split_classes(NAMES)
    assert not (tmp_path / "links").exists()


def test_folders_of_roles_say_what_is_held_out(tmp_path):
    write(tmp_path / "a" / "train", NAMES[:8])
    write(tmp_path / "a" / "test", NAMES[8:])
    classes = read_classes(tmp_path / "a")
    assert classes.by_folder
    assert classes.names("test") == NAMES[8:]
    assert "classes" not in classes.specification(tmp_path / "links")
    assert classes.rule == "5 classes are held out and decide, 8 classes train; as its folders say."


@pytest.mark.parametrize("roles", [False, True])
def test_a_limit_links_to_some_pictures_of_each_class(tmp_path, roles):
    folder = tmp_path / "a"
    for name, part in (("train", NAMES[:6]), ("test", NAMES[6:])):
        write(folder / name if roles else folder, part, pictures=9)
    classes = read_classes(folder, most=4)
    specification = classes.specification(tmp_path / "links")
    assert classes.specification(tmp_path / "links") == specification  # a second call finds the links
    assert specification["folder"] == str(tmp_path / "links")
    rows = read_layout(specification, tmp_path / "links")
    assert set(rows.groupby("label").size()) == {4}
    links = [tmp_path / "links" / path for path in rows["path"]]
    assert all(link.is_symlink() and link.resolve().is_relative_to(folder) for link in links)
    assert read_classes(folder, most=4).rows.equals(classes.rows)


@pytest.mark.parametrize(
    ("classes", "pictures", "said"),
    [
        (9, 5, "9 classes with 4 pictures or more are too few; 10 are enough, half to train on and half to hold out"),
        (12, 3, "0 classes with 4 pictures or more are too few; 10 are enough"),
        (0, 0, "holds no"),
    ],
)
def test_a_folder_too_small_is_refused_with_what_would_be_enough(tmp_path, classes, pictures, said):
    folder = write(tmp_path / "a", NAMES[:classes], pictures)
    folder.mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=said) as refused:
        read_classes(folder)
    assert "\n" not in str(refused.value)


def test_few_classes_in_the_folders_of_roles_are_refused_too(tmp_path):
    write(tmp_path / "a" / "train", NAMES[:8])
    write(tmp_path / "a" / "test", NAMES[8:10])
    with pytest.raises(ValueError, match="8 classes to train on and 2 to hold out are too few; 5 each are enough"):
        read_classes(tmp_path / "a")


def test_other_forms_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        read_classes(tmp_path / "nowhere")
    write(tmp_path / "a", NAMES)
    with pytest.raises(ValueError, match="3 pictures per class: at least 4 are needed"):
        read_classes(tmp_path / "a", most=3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\rb", r"path 'a\\rb/0\.png': lists hold neither a backslash nor a carriage return; rename it"),
        ("a\\b", r"path 'a\\\\b/0\.png': lists hold neither"),
    ],
)
def test_a_class_that_no_list_holds_as_it_is_called_is_refused_before_anything_is_written(tmp_path, name, said):
    with pytest.raises(ValueError, match=said):
        read_classes(write(tmp_path / "a", [*NAMES, name]))


def test_a_folder_that_no_overlay_names_as_it_is_called_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"a\\udcff'?: the name is no UTF-8, which files are written in; rename it"):
        read_classes(write(tmp_path / os.fsdecode(b"a\xff"), NAMES))


@pytest.mark.parametrize("most", [None, 4])
def test_a_class_in_two_forms_is_one_whose_pictures_all_count(tmp_path, most):
    folder = write(tmp_path / "a", [*NAMES, "caf\u00e9", "few "], pictures=3)
    write(folder, ["cafe\u0301"], pictures=3)
    for name in NAMES:
        for number in (3, 4):
            Image.new("RGB", (8, 8), (200, number, 0)).save(folder / name / f"{number}.png")
    classes = read_classes(folder, most=most)
    assert classes.too_small == ("few ",)
    assert classes.notes[0].startswith(r"Of the names 'cafe\u0301' and 'caf\xe9' are one name")
    read = read_layout(specification := classes.specification(tmp_path / "links"), Path(specification["folder"]))
    assert len(read) == len(classes.rows) == 13 * (most or 5) + (most or 6)
