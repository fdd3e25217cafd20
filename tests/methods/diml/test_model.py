"""DIML around small embedders: what it keeps of images."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.similarity import grid_pool
from lookalike.models.embedder import Embedder


class Small(nn.Module):
    """Maps of 7 x 7, mean, linear layer."""

    def __init__(self, heads=1):
        super().__init__()
        torch.manual_seed(5)
        self.before = nn.Linear(3, 3)  # comes before the feature layer and is no candidate
        self.trunk = nn.Sequential(nn.Conv2d(3, 5, 3, 4, 1), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(5, 6) for _ in range(heads))
        self.unused = nn.Conv2d(5, 5, 1)

    def forward(self, images):
        maps = self.trunk(images)
        return self.heads[0](maps.mean((2, 3)))


class Listed(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.layer = nn.Conv2d(3, 5, 3, 4, 1)

    def forward(self, images):
        maps = [images, self.layer(images)]
        return maps if self.kind is list else {"early": maps[0], "late": maps[1]}


@pytest.fixture
def images():
    return torch.randn(9, 3, 28, 28, generator=torch.Generator().manual_seed(1))


def make(embedder=None, **options):
    return DIML(embedder or Small(), "trunk", **{"side": 4, **options}).eval()


@pytest.mark.parametrize("mode", ["resample", "roi_align"])
def test_representation_follows_the_notes(images, mode):
    embedder = Small()
    with torch.no_grad():
        found = make(embedder, pooling=mode).represent(images)
        maps = embedder.trunk(images)
        z = torch.einsum("dc,nchw->ndhw", embedder.heads[0].weight, maps) + embedder.heads[0].bias[:, None, None]
        regions = F.normalize(grid_pool(z, 4, mode).flatten(2).transpose(1, 2), dim=2)
        torch.testing.assert_close(found.regions, regions, atol=1e-5, rtol=0)
        torch.testing.assert_close(found.global_vector, F.normalize(embedder(images)), atol=1e-6, rtol=0)


def test_trained_mode_takes_the_mean_of_the_locations(images):
    with torch.no_grad():
        model = make(global_vector="locations")
        found, regions = model.represent(images), model.regions(images)
    torch.testing.assert_close(found.global_vector, F.normalize(regions.mean(1)), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.regions, F.normalize(regions, dim=2), atol=1e-6, rtol=0)
    assert not torch.allclose(found.global_vector, make().represent(images).global_vector, atol=1e-3)
    assert regions.shape == (9, 16, 6)


def test_one_location_is_the_embedding_and_gives_its_order(images):
    with torch.no_grad():
        found = make(side=1)(images)
        torch.testing.assert_close(found.regions[:, 0], found.global_vector, atol=1e-6, rtol=0)
        matched, baseline = (StructuralMatcher(k).rank(found, found, self_match=True) for k in (5, 0))
        assert torch.equal(matched, baseline)


def test_the_projects_own_embedder_can_be_wrapped():
    torch.manual_seed(0)
    embedder = Embedder({"name": "tiny", "weights": None, "batch_norm": "trained"}, pooling="average", dim=8).eval()
    images = torch.randn(2, 3, 56, 56, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = DIML(embedder, "trunk").represent(images)
        assert found.regions.shape == (2, 16, 8)
        torch.testing.assert_close(found.global_vector, F.normalize(embedder(images)), atol=1e-6, rtol=0)
        mean = DIML(embedder, "trunk", side=7, global_vector="locations").represent(images).global_vector
        torch.testing.assert_close(mean, found.global_vector, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [list, dict])
def test_a_layer_may_return_several_maps(images, kind):
    class Embedding(Small):
        def __init__(self):
            super().__init__()
            self.trunk = Listed(kind)

        def forward(self, pictures):
            maps = self.trunk(pictures)
            return self.heads[0]((maps[-1] if kind is list else maps["late"]).mean((2, 3)))

    embedder = Embedding()
    torch.testing.assert_close(
        DIML(embedder, "trunk").regions(images), DIML(embedder, "trunk.layer").regions(images), atol=0, rtol=0
    )


def test_weights_are_saved_once_and_no_hook_stays(images):
    embedder = Small()
    model = make(embedder)
    model.represent(images)
    assert not embedder.trunk._forward_hooks
    assert set(model.state_dict()) == {f"embedder.{name}" for name in embedder.state_dict()}
    other = nn.Linear(5, 6)
    given = make(Small(heads=2), projection=other)
    assert given.projection is other
    assert "own_projection.weight" in given.state_dict()
    inside = Small(heads=2)
    named = DIML(inside, "trunk", projection=inside.heads[1])
    assert named.projection is inside.heads[1]
    assert set(named.state_dict()) == {f"embedder.{name}" for name in inside.state_dict()}


def test_without_a_head_the_features_themselves_are_the_locations(images):
    torch.manual_seed(3)
    embedder = Embedder({"name": "tiny", "weights": None, "batch_norm": "frozen"}, pooling="average", dim=None).eval()
    images = F.interpolate(images, size=64)  # maps of even side
    found = DIML(embedder, "trunk", 2, pooling="adaptive").represent(images)
    with torch.no_grad():
        maps = embedder.trunk(images)[-1]
        halves = maps.shape[-1] // 2
        regions = [
            maps[:, :, rows, columns].mean((2, 3))
            for rows in (slice(halves), slice(halves, None))
            for columns in (slice(halves), slice(halves, None))
        ]
    torch.testing.assert_close(found.regions, F.normalize(torch.stack(regions, 1), dim=-1))
    torch.testing.assert_close(found.global_vector, F.normalize(maps.mean((2, 3)), dim=-1))


def test_a_replaced_head_of_a_known_network_is_found_and_half_precision_features_are_raised(images):
    network = nn.Sequential(OrderedDict(trunk=nn.Conv2d(3, 5, 3), mean=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten()))
    network.add_module("fc", nn.Identity())
    model = DIML(network.to(torch.bfloat16), "trunk")
    assert isinstance(model.projection, nn.Identity)
    assert model.represent(images.to(torch.bfloat16)).regions.dtype == torch.float32
    assert model.double().represent(images.double()).regions.dtype == torch.float64


def test_gradients_reach_trunk_and_projection(images):
    model = make()
    model.regions(images).square().sum().backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None}
    assert reached == {
        f"embedder.{name}" for name in ("trunk.0.weight", "trunk.0.bias", "heads.0.weight", "heads.0.bias")
    }


def test_it_compares_as_its_matcher_does(images):
    options = {"score": "structural", "marginal": "uniform", "reg": 0.1, "tolerance": 1e-4, "solver": "exact"}
    model, matcher = make(truncation=3, **options), StructuralMatcher(3, **options)
    assert model.matcher == matcher
    with torch.no_grad():
        query, gallery = model(images[:4]), model(images[4:])
    assert torch.equal(model.similarity(query, gallery), matcher.similarity(query, gallery))
    assert torch.equal(model.rank(query, gallery, depth=2), matcher.rank(query, gallery, depth=2))
    assert torch.equal(model.rank(query, query, self_match=True), matcher.rank(query, query, self_match=True))
    assert torch.equal(model.explain(query, gallery).contributions, matcher.explain(query, gallery).contributions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": 0}, "side=0"),
        ({"truncation": -1}, "truncation=-1"),
        ({"score": "product"}, "score: unknown 'product'"),
        ({"global_vector": "mean"}, "global_vector: unknown 'mean'.*locations"),
        ({"pooling": "max"}, "pooling: unknown 'max'"),
        ({"embedder": Small(heads=2)}, "not one: give it as projection"),
        ({"embedder": Small(heads=0)}, r"are \[\], not one"),
        ({"feature_layer": "layer9"}, "feature_layer: unknown 'layer9'.*trunk"),
        ({"feature_layer": ""}, "feature_layer: unknown ''"),
    ],
)
def test_wrong_options_are_refused(options, message):
    arguments = {"embedder": Small(), "feature_layer": "trunk", **options}
    with pytest.raises(ValueError, match=message):
        DIML(**arguments)


def test_wrong_layers_and_images_are_refused(images):
    with pytest.raises(ValueError, match="was not called"):
        DIML(Small(), "unused", projection=nn.Linear(5, 6)).represent(images)
    with pytest.raises(ValueError, match="not maps"):
        DIML(Small(), "heads.0", projection=nn.Linear(5, 6)).represent(images)
    with pytest.raises(ValueError, match="weight"):
        make(projection=nn.Linear(4, 6)).represent(images)
    with pytest.raises(ValueError, match="global_vector"):
        make(projection=nn.Linear(5, 7)).represent(images)


def test_representations_keep_the_precision_of_the_projection_under_autocast():
    torch.manual_seed(0)
    model = DIML(nn.Sequential(OrderedDict(
        maps=nn.Conv2d(3, 6, 3, padding=1), pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), head=nn.Linear(6, 4)
    )), "maps", side=2)  # fmt: skip
    images = torch.randn(3, 3, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lower = model.represent(images)
    assert lower.regions.dtype == lower.global_vector.dtype == torch.float32
    exact = model.represent(images)
    torch.testing.assert_close(lower.regions, exact.regions, rtol=0, atol=2e-2)
