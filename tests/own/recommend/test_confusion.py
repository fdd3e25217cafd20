"""Which classes are taken for each other, by the first match of each picture."""

import pytest
import torch

from lookalike.files import packed_names, write_tensors
from lookalike.own.recommend.confusion import Pair, confused, pairs_of
from lookalike.stages.embed import embed
from shown_pages import draw_birds
from trainings import save

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


def test_avsl_finds_the_same_in_a_gallery_where_it_does_not_compare_every_pair(tmp_path, monkeypatch):
    manifest, model, kept = draw_birds(tmp_path), tmp_path / "model", tmp_path / "embeddings"
    save(model, "avsl")
    settings = {"batch_size": 8, "representation": {"name": "own"}, "training_pictures": False}
    embed(settings, manifest=str(manifest), root=str(tmp_path / "birds"), model=str(model), embeddings=str(kept))
    scored = {**SETTINGS, "scoring": {"name": "graph"}}
    every = confused(scored, model, kept)
    monkeypatch.setattr("lookalike.methods.avsl.scoring.EVERY_PAIR", 2)
    assert confused(scored, model, kept) == every
