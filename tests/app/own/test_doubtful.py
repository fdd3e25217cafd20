"""Pictures of a folder that deserve a look."""

import shutil

import numpy as np
import pytest
from PIL import Image

from lookalike.app.own.doubtful import doubtful
from lookalike.app.own.search import open_gallery
from own_pictures import opened


def painted(path, colour, seed):
    """A picture of coarse patches around a colour, so that hashes of two tell them apart."""
    generator = np.random.default_rng(seed)
    patches = np.clip(np.array(colour) + generator.integers(-40, 41, (12, 12, 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(patches).resize((96, 96), Image.Resampling.BICUBIC).save(path)
    return path


@pytest.fixture(params=["embedder", "diml", "avsl"])
def found(request, tmp_path):
    for seed in range(6):
        painted(tmp_path / "p" / "red" / f"{seed}.png", (200, 60, 60), seed)
        painted(tmp_path / "p" / "blue" / f"{seed}.png", (60, 60, 200), 100 + seed)
    shutil.copy(tmp_path / "p/red/0.png", tmp_path / "p/red/again.png")
    Image.open(tmp_path / "p/blue/1.png").resize((48, 48)).save(tmp_path / "p/blue/small.png")
    painted(tmp_path / "p" / "red" / "stray.png", (60, 60, 200), 300)
    painted(tmp_path / "p" / "blue" / "green.png", (40, 240, 40), 400)
    return doubtful(open_gallery(opened(request.param), tmp_path / "p", store=tmp_path / "store"))


def test_copies_near_copies_outliers_and_strays_are_told_apart(found):
    assert [each.pictures for each in found["copies"]] == [("red/0.png", "red/again.png")]
    assert [set(each.pictures) for each in found["near_copies"]] == [{"blue/1.png", "blue/small.png"}]
    assert found["outliers"][0].pictures[0] == "blue/green.png"
    assert found["outliers"] == sorted(found["outliers"], key=lambda each: each.value)
    assert "red/stray.png" in {each.pictures[0] for each in found["strays"]}
    for name, other, own in (each.pictures for each in found["strays"]):
        assert name.split("/")[0] == own.split("/")[0] != other.split("/")[0]
    assert all(each.value > 0 for each in found["strays"])
    assert "red/again.png" not in {
        name for kind in ("near_copies", "outliers", "strays") for each in found[kind] for name in each.pictures
    }


def test_one_picture_is_nothing_to_compare(tmp_path):
    painted(tmp_path / "p" / "only.png", (200, 60, 60), 0)
    found = doubtful(open_gallery(opened(), tmp_path / "p", store=tmp_path / "store"))
    assert found == {"copies": [], "near_copies": [], "outliers": [], "strays": []}
