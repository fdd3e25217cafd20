"""Which classes are taken for each other, by the first match of each picture."""

import pytest
import torch

from lookalike.files import packed_names, write_tensors
from lookalike.own.recommend.confusion import Pair, confused, pairs_of

SETTINGS = {"scoring": {"name": "cosine"}, "count_query_in_r": False}
PATHS = ["x/a/0.jpg", "x/a/1.jpg", "x/b/0.jpg", "x/b/1.jpg", "x/c/0.jpg", "x/c/1.jpg"]


def test_pairs_count_both_directions_and_stand_in_order():
    found = ["x/b/0.jpg", "x/b/1.jpg", "x/a/0.jpg", "x/b/0.jpg", "x/b/1.jpg", "x/c/0.jpg"]
    pairs = pairs_of(PATHS, found)
    assert pairs == [
        Pair(("a", "b"), 3, 4, "x/a/0.jpg", "x/b/0.jpg"),
        Pair(("b", "c"), 1, 4, "x/c/0.jpg", "x/b/1.jpg"),
    ]
    assert pairs_of(PATHS, found, most=1) == pairs[:1]
    assert pairs_of(PATHS, PATHS) == []


@pytest.mark.parametrize("scoring", ["cosine", "structural_matching"])
def test_the_first_match_is_that_of_the_evaluation_and_never_the_picture_itself(tmp_path, scoring):
    angles = torch.tensor([0.0, 0.05, 0.11, 1.0, 2.0, 2.1])
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    tensors = {
        "labels/test": torch.tensor([1, 1, 2, 2, 3, 3]),
        "names/test": packed_names(PATHS),
        "best/test/embedding": vectors,
        "best/test/regions": vectors[:, None].repeat(1, 4, 1),
    }
    write_tensors(tmp_path / "e.safetensors", tensors, {"best_epoch": 1, "epochs": 1})
    settings = {**SETTINGS, "scoring": {"name": scoring}}
    (pair,) = confused(settings, tmp_path / "no model is read", tmp_path / "e.safetensors")
    assert (pair.classes, pair.wrong, pair.queries) == (("a", "b"), 1, 4)
    assert (pair.query, pair.match) == ("x/b/0.jpg", "x/a/1.jpg")
