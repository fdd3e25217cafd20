"""Files are explained as a search compares them."""

import numpy as np
import pytest
from PIL import Image

import lookalike
from lookalike.app.own.explanation import explain_files, explain_hits
from lookalike.app.own.picture_files import read_image
from lookalike.app.own.search import open_gallery
from own_pictures import opened, write_pictures


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
    monkeypatch.setattr("lookalike.app.own.explanation.TOGETHER", 2)
    together = explain_hits(model, paths[0], paths[1:])
    assert len(together) == 5
    for path, each in zip(paths[1:], together, strict=True):
        alone = explain_files(model, [paths[0], path])
        assert float(each.explanation.value[each.row]) == pytest.approx(float(alone.explanation.value[0]), abs=1e-6)
        assert each.pictures[1].size == Image.open(path).size
        assert [overlay.size for overlay in each.overlays()] == [Image.open(paths[0]).size, Image.open(path).size]


def test_a_large_picture_is_shown_whole_and_smaller_with_the_part_that_the_model_sees(tmp_path):
    for name in ("one", "other"):
        Image.effect_noise((1600, 800), 80).convert("RGB").save(tmp_path / f"{name}.png")
    model = opened()
    found = explain_files(model, [tmp_path / "one.png", tmp_path / "other.png"])
    assert [picture.size for picture in found.pictures] == [(640, 320)] * 2
    share = model.view.crop_px / model.view.resize_px
    assert found.parts[0] == pytest.approx(((1 - share / 2) / 2, (1 - share) / 2, share / 2, share), abs=0.01)
    assert found.legend[1:] == ["The frame holds what the model sees."]
    shown = np.asarray(found.overlays()[0]).astype(int)
    assert (shown[5, 5] == shown[5, 5, 0]).all()  # grey, outside of the frame
