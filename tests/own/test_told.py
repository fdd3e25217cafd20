"""Explanations as data hold the numbers that they were made of."""

import json

import pytest
import torch
from PIL import Image

import lookalike
from lookalike.own.explained import explain_files, explain_hits
from lookalike.own.pictures import read_image
from lookalike.own.search import open_gallery
from lookalike.own.told import as_data
from own_pictures import opened, write_pictures


@pytest.mark.parametrize(
    ("kind", "method"), [("embedder", None), ("diml", None), ("avsl", None), ("embedder", "attention")]
)
def test_every_explanation_is_json_whose_parts_agree(tmp_path, kind, method):
    paths = write_pictures(tmp_path, 3)
    model = opened(kind)
    explained = explain_files(model, paths, method=method)
    data = json.loads(json.dumps(as_data(explained.explanation), allow_nan=False))
    assert list(data["maps"]) == ["query", "gallery", "negative"]
    assert data["value"] == pytest.approx(float(explained.explanation.value[0]))
    if method is None:
        assert data["explained"] == pytest.approx(data["value"], rel=1e-4)
    if "pairs" in data:
        height, width = explained.explanation.grid
        first = data["pairs"][0]
        row = first["query"][0] * width + first["query"][1]
        column = first["gallery"][0] * width + first["gallery"][1]
        assert first["adds"] == pytest.approx(float(explained.explanation.pairs[0].max()))
        assert first["adds"] == pytest.approx(float(explained.explanation.pairs[0, row, column]))
        assert first["query"][0] < height
    if "levels" in data:
        assert sum(level["adds"] for level in data["levels"]) == pytest.approx(data["value"], rel=1e-4)
        assert [level["nodes"][0]["adds"] >= level["nodes"][-1]["adds"] for level in data["levels"]] == [True] * 3
        assert "rectified_by" not in data["levels"][0]["nodes"][0]
        assert set(data["levels"][1]["nodes"][0]["rectified_by"]) <= {str(node) for node in range(8)}


def test_large_maps_are_averaged(tmp_path):
    paths = write_pictures(tmp_path, 2)
    explanation = explain_files(opened("embedder"), paths).explanation
    large = explanation.__class__(**{**explanation.__dict__, "maps": (torch.ones(1, 56, 56), torch.ones(1, 4, 40))})
    maps = as_data(large)["maps"]
    assert [len(maps["query"]["values"]), maps["query"]["of"]] == [28, [56, 56]]
    assert maps["gallery"]["of"] == [4, 40]
    assert {value for row in maps["query"]["values"] for value in row} == {1.0}


@pytest.mark.parametrize(("kind", "way"), [("embedder", "cosine"), ("avsl", "graph")])
def test_what_is_explained_is_the_score_of_the_search(tmp_path, kind, way):
    paths = write_pictures(tmp_path / "pictures", 6)
    for path in paths:  # of much detail: another size of the picture is another image
        Image.effect_noise((90, 50), 80).convert("RGB").save(path)
    gallery = open_gallery(opened(kind), tmp_path / "pictures", store=tmp_path / "store", way=way)
    hits = gallery.search(paths[0])
    found = explain_hits(gallery.model, paths[0], [hit.path for hit in hits], method=None)
    for hit, each in zip(hits, found, strict=True):
        value = float(each.explanation.value[each.row])
        assert value == pytest.approx(hit.score, rel=1e-4)
        pair = explain_files(gallery.model, [paths[0], hit.path]).explanation
        assert float(pair.value[0]) == pytest.approx(value, rel=1e-5)
    images = [read_image(gallery.model, path) for path in (paths[0], hits[0].path)]
    assert float(lookalike.explain(gallery.model.network, *images).value[0]) == pytest.approx(hits[0].score, rel=1e-4)


def test_hits_are_explained_as_alone(tmp_path, monkeypatch):
    paths = write_pictures(tmp_path, 6)
    model = opened()
    monkeypatch.setattr("lookalike.own.explained.TOGETHER", 2)
    together = explain_hits(model, paths[0], paths[1:])
    assert len(together) == 5
    for path, each in zip(paths[1:], together, strict=True):
        alone = explain_files(model, [paths[0], path])
        assert float(each.explanation.value[each.row]) == pytest.approx(float(alone.explanation.value[0]), abs=1e-6)
        assert each.pictures[1].size == (24, 24)
        assert [overlay.size for overlay in each.overlays()] == [(24, 24), (24, 24)]
