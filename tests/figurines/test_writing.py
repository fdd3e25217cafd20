from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from figurines import PRESETS, write_figurines


def digests(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_same_seed_writes_the_same_bytes(preset, written, shrunk, tmp_path):
    write_figurines(preset, tmp_path / "again", seed=3, parameters=shrunk(preset))
    assert digests(tmp_path / "again") == digests(written(preset))


@pytest.mark.parametrize("preset", PRESETS)
def test_several_processes_write_the_same_bytes_as_one(preset, written, shrunk, tmp_path):
    write_figurines(preset, tmp_path / "shared", seed=3, parameters=shrunk(preset), processes=3)
    assert digests(tmp_path / "shared") == digests(written(preset))


def test_another_seed_draws_other_pictures(written, shrunk, tmp_path):
    write_figurines("birds", tmp_path / "other", seed=4, parameters=shrunk("birds"))
    ours, theirs = digests(written("birds")), digests(tmp_path / "other")
    pictures = {digest for name, digest in ours.items() if name.endswith(".jpg")}
    assert not pictures & set(theirs.values())


def test_a_picture_does_not_depend_on_how_many_others_there_are(written, shrunk, tmp_path):
    fewer = replace(shrunk("vehicles"), images_per_class=(1,))
    write_figurines("vehicles", tmp_path / "fewer", seed=3, parameters=fewer)
    first_of_each = sorted((tmp_path / "fewer" / "car_ims").iterdir())
    known = set(digests(written("vehicles") / "car_ims").values())
    assert len(first_of_each) == 12
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() in known for path in first_of_each)


def test_the_mat_file_holds_neither_time_nor_platform(written):
    header = (written("vehicles") / "cars_annos.mat").read_bytes()[:116]
    assert header.rstrip() == b"MATLAB 5.0 MAT-file, lookalike figurines"


def test_an_unknown_preset_is_refused_and_the_known_ones_are_named(tmp_path):
    with pytest.raises(ValueError, match="'trees' is unknown; known are birds, vehicles, products, shop"):
        write_figurines("trees", tmp_path / "trees")


def test_a_folder_with_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not an empty folder"):
        write_figurines("birds", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_place_of_the_root_is_refused(tmp_path):
    (tmp_path / "root").write_text("mine")
    with pytest.raises(FileExistsError, match="root"):
        write_figurines("birds", tmp_path / "root")


def test_an_empty_folder_is_filled(shrunk, tmp_path):
    root = tmp_path / "deep" / "root"
    root.mkdir(parents=True)
    write_figurines("vehicles", root, parameters=replace(shrunk("vehicles"), images_per_class=(1,)))
    assert (root / "cars_annos.mat").is_file()


def test_a_failure_leaves_nothing_behind(shrunk, tmp_path):
    def fail_half_way(root, collection):
        (root / "half.txt").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_figurines("birds", tmp_path / "root", parameters=replace(shrunk("birds"), layout=fail_half_way))
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_another_process_is_told_and_leaves_nothing_behind(shrunk, tmp_path):
    def fail(kind, nth, rng, nuisance):
        raise OSError(f"no paint for {kind.name}")

    with pytest.raises(OSError, match="no paint for "):
        write_figurines("birds", tmp_path / "root", parameters=replace(shrunk("birds"), picture=fail), processes=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("preset", PRESETS)
def test_the_notes_name_preset_seed_and_licence(preset, written):
    notes = (written(preset) / "README.txt").read_text()
    assert f"preset {preset}, seed 3" in notes
    assert "CC0" in notes
    assert "figurines" in notes


def test_test_classes_may_have_numbers_of_pictures_of_their_own(shrunk, tmp_path):
    parameters = replace(shrunk("birds"), test_classes=9, images_per_test_class=(1,))
    write_figurines("birds", tmp_path / "birds", seed=3, parameters=parameters)
    folders = sorted((tmp_path / "birds" / "CUB_200_2011" / "images").iterdir())
    counts = [len(list(folder.iterdir())) for folder in folders]
    assert len(counts) == 6 + 9
    assert min(counts[:6]) >= 3 and counts[6:] == [1] * 9
