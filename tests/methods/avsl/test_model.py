"""The model on a tiny backbone: gradients, edges over time, variants and explanations."""

import copy

import pytest
import torch
import torchvision
from torch import nn

from lookalike.methods.avsl.graph import batch_edges, normalise_edges
from lookalike.methods.avsl.loss import AVSLLoss
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.methods.avsl.similarity import level_distance, overall_distance

NODES, LEVELS = 8, ("one", "two", "three")


class Tiny(nn.Module):
    """Three stages that halve the map, then a classifier."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)  # every Tiny is the same
        self.one = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.two = nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1), nn.ReLU())
        self.three = nn.Sequential(nn.Conv2d(6, 8, 3, 2, 1), nn.ReLU())
        self.classifier = nn.Linear(8, 10)

    def forward(self, images):
        return self.classifier(self.three(self.two(self.one(images))).mean((2, 3)))


class Maps(Tiny):
    """The same stages, returned as maps."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, images):
        one = self.one(images)
        two = self.two(one)
        stages = [one, two, self.three(two)]
        return stages if self.kind is list else {"stem": images, **dict(zip(LEVELS, stages, strict=True))}


def make(backbone=None, **options):
    backbone = backbone or Tiny()
    torch.manual_seed(0)
    options = {"embedding_dim": NODES, "k": 3, "image_size": 32, **options}
    return AVSL(backbone, LEVELS, **options)


@pytest.fixture
def images():
    return torch.randn(6, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def labels():
    return torch.tensor([0, 0, 1, 1, 2, 2])


def test_representation_has_one_entry_per_level(images):
    representation = make().eval()(images, with_maps=True)
    assert [tuple(level.shape) for level in representation.embeddings] == [(6, NODES)] * 3
    assert [tuple(level.shape) for level in representation.statistics] == [(6, NODES)] * 3
    assert [tuple(level.shape) for level in representation.maps] == [(6, NODES, side, side) for side in (16, 8, 4)]
    for embedding, maps in zip(representation.embeddings, representation.maps, strict=True):
        torch.testing.assert_close(maps.mean((2, 3)), embedding, atol=1e-5, rtol=0)
        assert not maps.requires_grad


def test_a_backbone_in_half_precision_still_gives_float32(images):
    model = make().eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        representation = model(images)
    assert {tensor.dtype for tensor in representation.state().values()} == {torch.float32}
    for level, expected in zip(representation.embeddings, model(images).embeddings, strict=True):
        torch.testing.assert_close(level, expected, atol=0.1, rtol=0)


def test_maps_are_left_out_unless_asked_for(images):
    assert make().eval()(images).maps == ()


def test_heads_start_with_the_stated_spread_and_no_bias():
    head = AVSL(Tiny(), LEVELS, embedding_dim=512, k=128, image_size=32).heads[2]
    assert head.weight.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.05)
    assert not head.bias.any()


def test_a_generator_repeats_the_initial_weights():
    first, second = (make(generator=torch.Generator().manual_seed(7), reliability="learned") for _ in range(2))
    for name, value in first.state_dict().items():
        if not name.startswith("backbone"):
            assert torch.equal(value, second.state_dict()[name])


def test_named_stages_mapping_and_sequence_agree(images):
    reference = make().eval()(images)
    for kind in (list, dict):
        found = make(Maps(kind)).eval()(images)
        for level, expected in zip(found.embeddings, reference.embeddings, strict=True):
            torch.testing.assert_close(level, expected, atol=1e-6, rtol=0)


def test_torchvision_classifier_serves_as_backbone():
    model = AVSL(torchvision.models.resnet18(), embedding_dim=16, k=4, image_size=32).eval()
    representation = model(torch.randn(2, 3, 64, 64))
    assert [head.weight.shape[1] for head in model.heads] == [128, 256, 512]
    assert model.distance(representation, representation).shape == (2, 2)
    assert not any("fc." in name for name, _ in model.named_parameters())


def test_building_the_model_leaves_modes_and_running_statistics_alone():
    for training in (True, False):
        backbone = Tiny().train(training)
        backbone.one[1].eval()  # frozen batch normalisation
        model = make(backbone)
        assert model.backbone.training == training
        assert not backbone.one[1].training
        assert backbone.one[1].num_batches_tracked == 0


def test_model_distance_is_the_overall_distance_of_its_parts(images, device):
    model, images = make().to(device), images.to(device)
    model(images)
    model.eval()
    with torch.no_grad():
        model.alpha.normal_(std=300)
        model.beta.normal_(std=0.3)
        query, gallery = model(images)[:2], model(images)[2:]
        expected = overall_distance(
            query.embeddings,
            query.statistics,
            gallery.embeddings,
            gallery.statistics,
            alpha=[None, *model.alpha],
            beta=[None, *model.beta],
            edges=[None, *(normalise_edges(state, 3) for state in model.edge_states)],
        )
        assert torch.equal(model.distance(query, gallery), expected)
        model.sigmoid_scale = 1.0
        assert not torch.allclose(model.distance(query, gallery), expected)


def test_untrained_model_gives_finite_symmetric_distances(images):
    model = make().eval()
    with torch.no_grad():
        representation = model(images)
        distance = model.distance(representation, representation)
    assert not model.edges_initialised
    assert distance.isfinite().all()
    assert torch.equal(distance, distance.T)
    assert not distance.diagonal().any()


def test_constant_images_give_no_nan(labels):
    for kind in ("proxy_anchor", "margin"):
        model, loss = make(), AVSLLoss(kind, 3, embedding_dim=NODES)
        value = loss(model(torch.zeros(6, 3, 32, 32)), labels, model.distance)
        value.backward()
        assert value.isfinite()
        assert all(p.grad.isfinite().all() for p in (*model.parameters(), *loss.parameters()) if p.grad is not None)


def test_edges_copy_the_first_batch_then_follow_with_momentum(images):
    model = make(momentum=0.75)
    first = model(images[:3], with_maps=True).maps
    expected = torch.stack([batch_edges(first[level], first[level - 1]) for level in (1, 2)])
    assert torch.equal(model.edge_states, expected)
    second = model(images[3:], with_maps=True).maps
    batch = torch.stack([batch_edges(second[level], second[level - 1]) for level in (1, 2)])
    torch.testing.assert_close(model.edge_states, 0.75 * expected + 0.25 * batch, atol=1e-7, rtol=0)


def test_without_momentum_the_edges_are_those_of_the_last_batch(images):
    model, fresh = make(momentum=0.0), make(momentum=0.0)
    model(images[:3])
    model(images[3:])
    fresh(images[3:])
    torch.testing.assert_close(model.edge_states, fresh.edge_states, atol=1e-6, rtol=0)


def test_edges_rest_in_evaluation(images):
    model = make()
    model(images)
    before = model.edge_states.clone()
    model.eval()(images[:2])
    assert torch.equal(model.edge_states, before)


def test_a_batch_is_compared_with_the_edges_that_have_learned_from_it(images):
    model = make()
    representation = model(images, with_maps=True)
    maps = representation.maps
    with torch.no_grad():
        expected = overall_distance(
            *(representation.embeddings, representation.statistics) * 2,
            alpha=[None, *model.alpha],
            beta=[None, *model.beta],
            edges=[None, *(normalise_edges(batch_edges(maps[level], maps[level - 1]), 3) for level in (1, 2))],
        )
        assert torch.equal(model.distance(representation, representation), expected)


def test_a_resumed_model_keeps_its_edges(images):
    model = make()
    model(images[:3])
    resumed = make()
    resumed.load_state_dict(copy.deepcopy(model.state_dict()))
    assert torch.equal(resumed.edge_states, model.edge_states)
    for each in (model, resumed):
        each(images[3:])
    assert torch.equal(resumed.edge_states, model.edge_states)
    fresh = make()
    fresh(images[3:])
    assert not torch.allclose(resumed.edge_states, fresh.edge_states)


@pytest.mark.parametrize("kind", ["proxy_anchor", "margin"])
def test_final_loss_reaches_alpha_and_beta_only(images, labels, kind, device):
    model = make().to(device)
    loss = AVSLLoss(kind, 3, embedding_dim=NODES, level_weights=(0.0, 0.0, 0.0)).to(device)
    loss(model(images.to(device)), labels.to(device), model.distance).backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached == {"alpha", "beta"}
    assert all(row.any() for row in (*model.alpha.grad, *model.beta.grad))
    others = {name for name, p in loss.named_parameters() if p.grad is not None and p.grad.any()}
    assert others == (set() if kind == "proxy_anchor" else {"terms.boundaries.0"})


@pytest.mark.parametrize("level", [0, 1, 2])
def test_level_loss_reaches_its_head_its_proxies_and_the_stages_below(images, labels, level):
    model = make()
    weights = [float(level == other) for other in range(3)]
    loss = AVSLLoss("proxy_anchor", 3, embedding_dim=NODES, level_weights=weights, final_weight=0.0)
    loss(model(images), labels, model.distance).backward()
    reached = {name.rpartition(".")[0] for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    stages = {"one.0", "one.1", "two.0", "three.0"}
    expected = {f"heads.{level}"} | {f"backbone.{name}" for name in stages if name.split(".")[0] in LEVELS[: level + 1]}
    assert reached == expected
    others = {name for name, p in loss.named_parameters() if p.grad is not None and p.grad.any()}
    assert others == {f"terms.proxies.{level}"}


def test_one_step_of_training_lowers_the_loss(images, labels):
    model, loss = make(), AVSLLoss("proxy_anchor", 3, embedding_dim=NODES)
    optimiser = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=1e-3)
    values = []
    for _ in range(5):
        optimiser.zero_grad()
        value = loss(model(images), labels, model.distance)
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < values[0]


def test_variants_measure_what_they_say(images):
    models = {variant: make(variant=variant).eval() for variant in ("graph", "reliable_nodes", "top", "concat")}
    for model in models.values():
        model.edge_states.copy_(torch.rand(2, NODES, NODES))
    with torch.no_grad():
        representation = models["graph"](images)
        distances = {name: model.distance(representation, representation) for name, model in models.items()}
    levels = [level_distance(level, level) for level in representation.embeddings]
    torch.testing.assert_close(distances["top"], levels[2], atol=0, rtol=0)
    torch.testing.assert_close(distances["concat"], sum(levels), atol=1e-6, rtol=0)
    # with beta = 0 and alpha eta near 0 every reliability is near one half
    torch.testing.assert_close(distances["reliable_nodes"], levels[2] / 2, atol=0.02, rtol=0)
    assert not torch.allclose(distances["graph"], distances["reliable_nodes"], atol=0.02)


@pytest.mark.parametrize("variant", ["graph", "reliable_nodes", "top", "concat"])
def test_explanation_adds_up_to_the_distance(images, variant):
    model = make(variant=variant)
    model(images)
    model.eval()
    query, gallery = model(images[:2], with_maps=True), model(images[2:], with_maps=True)
    found = model.explain(query, gallery)
    total = sum(level.sum(-1) for level in found.contributions)
    torch.testing.assert_close(total, model.distance(query, gallery).detach(), atol=1e-5, rtol=0)
    for map_, expected in zip(found.attention((16, 16)), (total, total), strict=True):
        assert map_.shape == (2, 4, 16, 16)
        torch.testing.assert_close(map_.sum((2, 3)), expected, atol=1e-4, rtol=0)
    assert (found.reliability[0] == 1).all()
    assert all(level.min() >= 0 and level.max() <= 1 for level in found.reliability)


def test_attention_of_both_sides_swaps_with_the_sides(images):
    model = make()
    model(images)
    model.eval()
    query, gallery = model(images[:2], with_maps=True), model(images[2:], with_maps=True)
    forward, backward = model.explain(query, gallery), model.explain(gallery, query)
    left, right = forward.attention((8, 8))
    other_right, other_left = backward.attention((8, 8))
    torch.testing.assert_close(left, other_left.transpose(0, 1), atol=1e-6, rtol=0)
    torch.testing.assert_close(right, other_right.transpose(0, 1), atol=1e-6, rtol=0)


def test_learned_reliability_is_trained_by_the_final_loss_alone(images, labels):
    model = make(reliability="learned")
    loss = AVSLLoss("proxy_anchor", 3, embedding_dim=NODES, level_weights=(0.0, 0.0, 0.0))
    loss(model(images), labels, model.distance).backward()
    reached = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    learned = {f"learned_statistics.{step}.{part}" for step in (0, 1) for part in ("weight", "bias")}
    assert reached == {"alpha", "beta"} | learned


def test_learned_reliability_refuses_images_of_another_size(images):
    model = make(reliability="learned").eval()
    with pytest.raises(ValueError, match="image_size"):
        model(images[:, :, :16, :16])


def test_one_level_is_its_level_distance(images):
    model = AVSL(Tiny(), ("three",), embedding_dim=NODES, k=3, image_size=32).eval()
    representation = model(images)
    (embedding,) = representation.embeddings
    torch.testing.assert_close(
        model.distance(representation, representation), level_distance(embedding, embedding), atol=1e-6, rtol=0
    )


def test_proxies_get_the_mean_statistic_of_the_batch(images, labels):
    representation = make()(images)
    proxies, proxy_labels = AVSLLoss("proxy_anchor", 5, embedding_dim=NODES).terms.reference(representation, labels)
    assert proxy_labels.tolist() == [0, 1, 2, 3, 4]
    assert isinstance(proxies, Representation)
    for statistic, batch in zip(proxies.statistics, representation.statistics, strict=True):
        assert statistic.shape == (5, NODES)
        assert (statistic == batch.mean()).all()


def test_many_classes_compare_with_those_of_the_batch_only(images, device):
    labels = torch.tensor([7, 7, 2, 2, 5, 9], device=device)
    loss = AVSLLoss("proxy_anchor", 10, embedding_dim=NODES, all_proxies_up_to=9).to(device)
    proxies, proxy_labels = loss.terms.reference(make().to(device)(images.to(device)), labels)
    assert proxy_labels.tolist() == [2, 5, 7, 9]
    assert torch.equal(proxies.embeddings[1], loss.terms.proxies[1][[2, 5, 7, 9]])


def test_proxies_start_with_the_stated_spread():
    table = AVSLLoss("proxy_anchor", 200, embedding_dim=512).terms.proxies[0]
    assert table.std().item() == pytest.approx(0.0255, rel=0.02)


@pytest.mark.parametrize("kind", ["proxy_anchor", "margin"])
def test_objective_is_the_weighted_sum_of_its_terms(images, labels, kind):
    model, loss = make(), AVSLLoss(kind, 3, embedding_dim=NODES, final_weight=2.0, level_weights=(0.5, 1.0, 4.0))
    representation = model(images)

    def evaluate():
        return loss(representation, labels, model.distance, generator=torch.Generator().manual_seed(3)).item()

    weights = loss.weights
    total, parts = evaluate(), []
    for term in range(4):
        loss.weights = tuple(weight * (other == term) for other, weight in enumerate(weights))
        parts.append(evaluate())
    assert total == pytest.approx(sum(parts), rel=1e-5)
    assert min(parts) > 0


def test_level_losses_may_have_their_own_negative_margin():
    terms = AVSLLoss("proxy_anchor", 3, embedding_dim=NODES, level_negative_margin=2.4).terms
    assert terms.negative_margins == [2.2, 2.4, 2.4, 2.4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k=0 is outside"),
        ({"k": NODES + 1}, "k=9 is outside"),
        ({"momentum": 1.1}, "momentum=1.1"),
        ({"variant": "full"}, "variant: unknown 'full'"),
        ({"reliability": "none"}, "reliability: unknown 'none'"),
        ({"min_over": "image"}, "min_over: unknown 'image'"),
        ({"statistic": "large"}, "statistic: unknown 'large'"),
        ({"ties": "last"}, "ties: unknown 'last'"),
        ({"backbone": Maps(dict), "levels": ("one", "four")}, r"levels \['four'\]"),
        ({"backbone": Maps(list), "levels": ("one", "two")}, "returns 3 maps"),
        ({"levels": ()}, "levels is empty"),
        ({"levels": ("one", "four")}, "four"),
        ({"levels": ("one", "classifier")}, "classifier gives shape"),
    ],
)
def test_wrong_options_of_the_model_are_refused(options, message):
    arguments = {"backbone": Tiny(), "levels": LEVELS, "embedding_dim": NODES, "k": 3, "image_size": 32, **options}
    with pytest.raises(ValueError, match=message):
        AVSL(**arguments)


def test_wrong_arguments_of_the_objective_are_refused(images, labels):
    model = make()
    representation = model(images)
    loss = AVSLLoss("margin", 3, embedding_dim=NODES)
    with pytest.raises(ValueError, match="kind: unknown 'triplet'"):
        AVSLLoss("triplet", 3)
    with pytest.raises(ValueError, match="classes=0"):
        AVSLLoss("margin", 0)
    with pytest.raises(ValueError, match="sampling: unknown 'semi'"):
        AVSLLoss("margin", 3, sampling="semi")
    with pytest.raises(TypeError, match="boundary"):
        AVSLLoss("proxy_anchor", 3, boundary=1.2)
    with pytest.raises(ValueError, match="labels has shape"):
        loss(representation, labels[:4], model.distance)
    with pytest.raises(ValueError, match="labels holds 1 to 3"):
        loss(representation, labels + 1, model.distance)
    with pytest.raises(ValueError, match="3 levels"):
        AVSLLoss("margin", 3, level_weights=(1.0, 1.0))(representation, labels, model.distance)


def test_relative_statistics_are_the_deviations_times_the_entries_of_a_map(images):
    absolute, relative = (make(statistic=name).eval() for name in ("absolute", "relative"))
    with torch.no_grad():
        one, other = absolute(images), relative(images)
    assert all(torch.equal(*pair) for pair in zip(one.embeddings, other.embeddings, strict=True))
    for level, entries in ((1, 8 * 8), (2, 4 * 4)):
        torch.testing.assert_close(other.statistics[level], entries * one.statistics[level])
    assert not torch.equal(absolute.distance(one, one), relative.distance(other, other))
