"""The first items of a search are kept as every scoring ranks them."""

import pytest
import torch

from lookalike.learners.scorings import NEED_ALL, SCORINGS
from lookalike.metrics.matches import FirstMatches

LABELS = torch.arange(12) % 3


@pytest.fixture(params=["whole", "blocks"])
def handled(request, monkeypatch):
    """Searches handle all scores at once, or five queries at a time and at last two."""
    if request.param == "blocks":
        monkeypatch.setattr("lookalike.metrics.order.WORKING_SET", 60)


def vectors(seed=0):
    drawn = torch.randn(12, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn / drawn.norm(dim=1, keepdim=True)


@pytest.mark.usefixtures("handled")
def test_cosine_keeps_the_nearest_with_their_scores_and_itself_only_where_it_may():
    units = vectors()
    similarity = units @ units.T
    search = FirstMatches(LABELS, LABELS, (), self_match=False, count=3)
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    places, scores = search.found[0]
    assert places.tolist() == similarity.topk(3, dim=1).indices.tolist()
    torch.testing.assert_close(scores, similarity.topk(3, dim=1).values, atol=1e-6, rtol=0)
    assert places[:, 0].tolist() == list(range(12))
    search = FirstMatches(LABELS, LABELS, (), self_match=True, count=3)
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    assert search.found[0][0].tolist() == similarity.fill_diagonal_(-2).topk(3, dim=1).indices.tolist()


@pytest.mark.usefixtures("handled")
def test_what_the_querys_camera_saw_of_its_class_comes_last():
    units, cameras = vectors(), torch.arange(12) % 2
    search = FirstMatches(
        LABELS, LABELS, (), self_match=False, query_cameras=cameras, gallery_cameras=cameras, count=12
    )
    SCORINGS["cosine"](None, {"embedding": units}, {"embedding": units}, search)
    places, scores = search.found[0]
    junk = (LABELS[places] == LABELS[:, None]) & (cameras[places] == cameras[:, None])
    assert torch.equal(scores.isinf(), junk)
    assert int(junk.sum()) == 24
    assert not bool(junk[:, :10].any())


def test_a_ranking_has_no_scores():
    units = vectors()
    kept = {"embedding": units, "regions": torch.stack([units, units.flip(1)], dim=1)}
    search = FirstMatches(LABELS[:4], LABELS, (), self_match=False, count=3)
    SCORINGS["structural_matching"](None, {name: each[:4] for name, each in kept.items()}, kept, search)
    places, scores = search.found[0]
    assert places.shape == (4, 3)
    assert bool(scores.isnan().all())


@pytest.mark.parametrize("name", sorted(NEED_ALL))
def test_what_compares_by_neighbours_ranks_all_at_once(name):
    units = vectors()
    search = FirstMatches(LABELS, LABELS, (), self_match=True, count=2)
    SCORINGS[name](None, {"embedding": units}, {"embedding": units}, search, k=3)
    places = search.found[0][0]
    assert not bool((places == torch.arange(12)[:, None]).any())
