"""The stage that copies pictures: a manifest under a name known before, with paths beside it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.workflow.data import read_manifest, write_manifest
from lookalike.workflow.settings.datasets import PictureCache
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.stages.pictures import pictures
from lookalike.workflow.training.images import Images
from lookalike.workflow.training.roles import read_role
from trainings import write_dataset

SETTINGS = PictureCache(shorter_side_px=20, encoding="png", broken="stop")
VIEW = View(resize_px=20, crop_px=16)


@pytest.fixture
def manifest(tmp_path):
    path = write_dataset(tmp_path / "originals", {"train": 3, "test": 2})
    write_manifest(read_manifest(path), path, path.parent)
    return path


def copied(manifest, **settings):
    target = manifest.parents[1] / "pictures" / "manifest-20px-png.csv"
    form = SETTINGS.model_copy(update=settings)
    pictures(form, manifest=str(manifest), root=str(manifest.parent), copied=str(target))
    return target


@pytest.mark.parametrize("role", ["train", "test"])
def test_the_copy_has_the_same_rows_and_the_same_pixels(manifest, role):
    target = copied(manifest)
    before, after = read_role(manifest, manifest.parent, role), read_role(target, target.parent, role)
    assert [path.name for path in after.paths] == [path.name for path in before.paths]
    assert after.labels.tolist() == before.labels.tolist()
    for row in range(len(before.paths)):
        assert (Images(after.paths, VIEW)[row, 0][0] == Images(before.paths, VIEW)[row, 0][0]).all()
    assert min(Image.open(after.paths[0]).size) == 20


def test_a_second_call_finds_the_copy(manifest):
    written = copied(manifest).read_bytes()
    (folder,) = (path for path in (manifest.parents[1] / "pictures").iterdir() if path.is_dir())
    before = folder.stat().st_mtime_ns
    assert copied(manifest).read_bytes() == written
    assert folder.stat().st_mtime_ns == before


def test_a_broken_picture_stops_by_its_name_or_is_left_out_with_a_count(manifest, capsys):
    broken = Path(read_manifest(manifest)["path"].iloc[0])
    (manifest.parent / broken).write_bytes(np.random.default_rng(0).bytes(100))
    with pytest.raises(ValueError, match=f"{broken}: no readable picture"):
        copied(manifest)
    target = copied(manifest, broken="skip")
    assert len(read_manifest(target)) == len(read_manifest(manifest)) - 1
    assert f"1 skipped\n{broken}\n" in capsys.readouterr().out
