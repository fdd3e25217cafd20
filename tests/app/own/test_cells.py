"""Of more pictures than a query looks at, lists of codes propose candidates, and cosines order these."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lookalike.app.own import hits, search
from lookalike.app.own.cells import _cells
from lookalike.app.own.index import Index, read_parts, write_part
from lookalike.app.own.picture_files import Stamp

COUNT, TOGETHER = 600, 256


def stamps(numbers):
    return [Stamp(f"{number:04}.png", 10, 1, 1) for number in numbers]


@pytest.fixture
def index(tmp_path):
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(30, 64, generator=generator)[torch.arange(COUNT) % 30]
    vectors = F.normalize(centres + 0.5 * torch.randn(COUNT, 64, generator=generator), dim=1)
    for start in range(0, COUNT, TOGETHER):
        rows = slice(start, start + TOGETHER)
        write_part(tmp_path, "m", stamps(range(COUNT))[rows], {"embedding": vectors[rows]})
    return Index(stamps(range(COUNT)), read_parts(tmp_path, "m"))


def found(index, place, count=10):
    return search.WAYS["cosine"].first(nn.Identity(), index.rows(torch.tensor([place])), index, count)


def test_candidates_hold_what_a_flat_search_finds_and_scores_are_cosines(index, monkeypatch):
    flat = [found(index, place) for place in range(20)]
    monkeypatch.setattr(search, "FLAT", COUNT - 1)
    listed = [found(index, place) for place in range(20)]
    assert list(index.folder.glob("*.faiss"))
    shared = [len(set(one[0].tolist()) & set(other[0].tolist())) for one, other in zip(flat, listed, strict=True)]
    assert sum(shared) >= 0.9 * 10 * len(flat)
    for place, (places, scores) in enumerate(listed):
        assert places[0] == place
        cosines = index.rows(places)["embedding"] @ index.rows(torch.tensor([place]))["embedding"][0]
        torch.testing.assert_close(scores, cosines)
        assert (scores.diff() <= 0).all()


def test_lists_are_made_once_and_anew_for_other_pictures(index, monkeypatch):
    monkeypatch.setattr(search, "FLAT", 300)
    found(index, 0)
    (first,) = index.folder.glob("*.faiss")
    written = first.stat().st_mtime_ns
    _cells.cache_clear()
    found(Index(index.stamps, read_parts(index.folder, "m")), 0)
    assert first.stat().st_mtime_ns == written
    fewer = Index(index.stamps[:-1], read_parts(index.folder, "m"))
    places, _ = found(fewer, 0, 500)
    assert int(places.max()) < COUNT - 1
    (second,) = index.folder.glob("*.faiss")
    assert second != first


def test_a_broken_file_of_lists_is_made_anew(index, monkeypatch):
    monkeypatch.setattr(search, "FLAT", 300)
    found(index, 0)
    (path,) = index.folder.glob("*.faiss")
    path.write_bytes(b"broken")
    _cells.cache_clear()
    assert found(index, 5)[0][0] == 5
    assert path.stat().st_size > 100


def test_a_gallery_says_whether_every_picture_is_compared(index, monkeypatch, tmp_path):
    galleries = [search.Gallery(tmp_path, None, way, index) for way in search.WAYS]
    assert [each.is_exact for each in galleries] == [True, True, True]
    monkeypatch.setattr(search, "FLAT", COUNT - 1)
    assert {each.way: each.is_exact for each in galleries} == {"cosine": False, "structure": False, "graph": True}
    model = SimpleNamespace(name="m", network=None)
    said = hits._as_text(replace(galleries[0], model=model), {})
    assert said.endswith("by cosine, of 1,000 candidates or more by IVF-PQ: one may be missed")
    assert not hits._as_data(replace(galleries[0], model=model), {})["exact"]
