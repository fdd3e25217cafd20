"""Runs share decoded pictures of the same split and view, and see what they would have decoded."""

import pytest
import torch

from lookalike.training.decoding import Decoder
from lookalike.training.images import Images, Loader, in_order
from lookalike.training.roles import read_role
from trainings import SETTINGS, write_dataset

VIEWS = {
    "random": SETTINGS["image"],
    "random, original size": {**SETTINGS["image"], "resize_px": None},
    "centre or its mirror image": {**SETTINGS["image"], "scale": None, "ratio": None},
    "centre": SETTINGS["test_image"],
}
CPU = torch.device("cpu")


@pytest.fixture
def split(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 3, "test": 2})
    return {"manifest": manifest, "root": tmp_path}


def decoder(tmp_path, **over):
    return Decoder(**{"folder": str(tmp_path / "decoded"), "limit_gb": 1, **over})


def loaded(images, workers=0):
    loader = Loader(images, device=CPU, workers=workers)
    return torch.cat([batch for batch, _ in loader.batches(in_order(len(images), 4), seed=3)])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_run_sees_what_it_would_have_decoded(split, tmp_path, view, workers):
    paths = read_role(**split, role="train").paths
    found = decoder(tmp_path).pictures(paths, view, **split)
    assert len(found) == 1
    expected = loaded(Images(paths, view))
    for path in paths:
        path.unlink()
    assert torch.equal(loaded(Images(paths, view, found), workers), expected)


def test_views_that_differ_only_in_what_is_random_share_one_file(split, tmp_path):
    paths = read_role(**split, role="train").paths
    others = [{**SETTINGS["image"], "crop_px": 20}, {**SETTINGS["image"], "scale": [0.2, 0.4], "flip": 0.0}]
    for view in (SETTINGS["image"], *others):
        decoder(tmp_path).pictures(paths, view, **split)
    assert len([path for path in (tmp_path / "decoded").iterdir() if path.is_dir()]) == 1
    decoder(tmp_path).pictures(paths, {**SETTINGS["image"], "resize_px": 26}, **split)
    decoder(tmp_path).pictures(paths[1:], SETTINGS["image"], **split)
    split["manifest"].write_text(split["manifest"].read_text() + "\n")
    decoder(tmp_path).pictures(paths, SETTINGS["image"], **split)
    assert len([path for path in (tmp_path / "decoded").iterdir() if path.is_dir()]) == 4


def test_without_a_folder_or_a_limit_nothing_is_kept(split, tmp_path):
    paths = read_role(**split, role="test").paths
    for nowhere in (Decoder(), decoder(tmp_path, limit_gb=0), decoder(tmp_path, limit_gb=1e-6)):
        assert nowhere.pictures(paths, SETTINGS["test_image"], **split) == []


def test_test_pictures_that_are_decoded_need_no_process_of_their_own(split, tmp_path):
    paths = read_role(**split, role="test").paths
    found = decoder(tmp_path).pictures(paths, SETTINGS["test_image"], **split)
    assert Images(paths, SETTINGS["test_image"], found).is_memory
    assert not Images(paths, SETTINGS["test_image"]).is_memory
    assert not Images(paths, SETTINGS["image"], found).is_memory
