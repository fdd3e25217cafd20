from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lookalike.methods.sam.head import PoolingHead, trunk_and_head
from lookalike.methods.sam.mining import Erasing, erase, frozen_batch_norm, mining_loss, read_maps, similarity_mining
from lookalike.models.embedder import Embedder

ROLES = {"siamese_same": 2, "siamese_different": 2, "triplet": 3, "quadruplet": 4}
KINDS = list(ROLES)
READINGS = ["outer", "stop", "full"]
FORMS = ["absolute", "squared", "smooth", "hinge", "reverse"]


def distance(first: Tensor, second: Tensor, form: str) -> float:
    square = sum(((a - b) ** 2).item() for a, b in zip(first, second, strict=True))
    return square if form == "squared" else math.sqrt(square + 1e-12)


def mining_by_loops(features: Tensor, kind: str, form: str) -> Tensor:
    """Section 5 of the notes, tuple by tuple."""
    values = []
    for b in range(features.shape[1]):
        near = distance(features[0, b], features[1, b], form)
        if kind.startswith("siamese"):
            values.append(-near)
            continue
        total = 0.0
        for negative in range(2, ROLES[kind]):
            gap = near - distance(features[0, b], features[negative, b], form)
            total += {
                "absolute": abs(gap),
                "squared": abs(gap),
                "smooth": math.sqrt(gap * gap + 1e-6),
                "hinge": max(-gap, 0),
                "reverse": -gap,
            }[form]
        values.append(total)
    return torch.tensor(values, dtype=features.dtype)


def features_of(draw, kind: str, count: int = 6, seed: int = 0) -> Tensor:
    return F.normalize(draw(ROLES[kind], count, 4, seed=seed), dim=-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_mining_loss_follows_the_formula_tuple_by_tuple(kind, form, draw):
    features = features_of(draw, kind)
    expected = mining_by_loops(features, kind, form)
    torch.testing.assert_close(mining_loss(features, kind, form=form), expected, rtol=1e-12, atol=1e-14)


def test_absolute_difference_is_the_default_and_a_quadruplet_is_two_triplets(draw):
    features = features_of(draw, "quadruplet")
    first, second = (mining_loss(features[[0, 1, negative]], "triplet", form="absolute") for negative in (2, 3))
    torch.testing.assert_close(mining_loss(features, "quadruplet"), first + second, rtol=1e-14, atol=0)


def test_triplet_loss_is_zero_only_where_the_triplet_cannot_be_ordered():
    anchor = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    left, right = torch.tensor([0.0, 1.0, 0.0]).double(), torch.tensor([0.0, 0.0, 1.0]).double()
    near = F.normalize(anchor + 0.1 * left, dim=0)
    triplets = torch.stack(
        [torch.stack(t) for t in [(anchor, left, right), (anchor, near, left), (anchor, left, near)]]
    )
    values = mining_loss(triplets.transpose(0, 1), "triplet")
    assert values[0] == 0
    assert values[1] > 1 and values[2] > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_identical_masked_features_have_a_finite_gradient(kind, form, dtype):
    features = torch.full((ROLES[kind], 2, 3), 3**-0.5, dtype=dtype, requires_grad=True)
    loss = mining_loss(features, kind, form=form)
    (gradient,) = torch.autograd.grad(loss.sum(), features)
    assert loss.abs().max() < 3e-3
    assert gradient.isfinite().all()


def test_mining_loss_of_half_precision_features_is_float32(draw):
    assert mining_loss(features_of(draw, "triplet").half(), "triplet").dtype == torch.float32


def any_head(head) -> PoolingHead:
    return PoolingHead(lambda maps: maps.mean(dim=(2, 3)), head.linear)


def mining_by_the_notes(trunk, head, images: Tensor, kind: str, reading: str, *, detach_mask: bool = False) -> Tensor:
    """The pseudo-code of section 6, one tuple and one role at a time; general autograd throughout."""
    height, width = images.shape[-2:]
    values = []
    for b in range(images.shape[1]):
        maps = [trunk(image[None])[0] for image in images[:, b]]
        features = [head(A[None])[0] for A in maps]
        w = 1 - (features[0] - features[1]).abs()
        if kind == "siamese_different":
            w = (features[0] - features[1]).abs()
        for negative in features[2:]:
            w = w * (features[0] - negative).abs()
        masked = []
        for role, (A, f) in enumerate(zip(maps, features, strict=True)):
            if reading == "full":
                (G,) = torch.autograd.grad(w @ f, A, create_graph=True)
            else:
                (G,) = torch.autograd.grad(f, A, grad_outputs=w.detach() if reading == "stop" else w, create_graph=True)
            M = (G.mean((1, 2))[:, None, None] * A).sum(0).relu()
            U = F.interpolate(M[None, None], size=(height, width), mode="bilinear", align_corners=False)[0, 0]
            mask = torch.sigmoid(10 * ((U - U.min()) / (U.max() - U.min() + 1e-8) - 0.5))
            masked.append(images[role, b] * (1 - (mask.detach() if detach_mask else mask)))
        seen = [head(trunk(image[None]))[0] for image in masked]

        def far(other, seen=seen):
            return ((seen[0] - other).square().sum() + 1e-12).sqrt()

        if kind.startswith("siamese"):
            values.append(-far(seen[1]))
        else:
            values.append(sum((far(seen[1]) - far(negative)).abs() for negative in seen[2:]))
    return torch.stack(values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reading", "detach_mask"), [("outer", False), ("outer", True), ("stop", False), ("full", False)]
)
@pytest.mark.parametrize("closed", [True, False])
def test_similarity_mining_and_its_gradient_are_those_of_the_pseudo_code(
    kind, reading, closed, detach_mask, network, draw, gradients, device
):
    trunk, head = (part.to(device) for part in network())
    images = draw(ROLES[kind], 2, 3, 8, 6, seed=1).to(device)
    form = head if closed else any_head(head)
    value = similarity_mining(trunk, form, images, kind, reading=reading, detach_mask=detach_mask)
    expected = mining_by_the_notes(trunk, head, images, kind, reading, detach_mask=detach_mask)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(
        gradients(value.sum(), trunk, head), gradients(expected.sum(), trunk, head), rtol=1e-9, atol=1e-13
    )


def directional(trunk, head, function, direction: Tensor, step: float = 1e-6) -> float:
    """Central difference of a function of the parameters along a direction."""
    parameters = [parameter for module in (trunk, head) for parameter in module.parameters()]
    pieces = direction.split([parameter.numel() for parameter in parameters])
    values = []
    for sign in (1, -1):
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.data += sign * step * piece.view_as(parameter)
        values.append(function().item())
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.data -= sign * step * piece.view_as(parameter)
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", ["outer", "full"])
@pytest.mark.parametrize("closed", [True, False])
def test_gradient_through_the_mask_is_the_finite_difference_of_the_loss(
    kind, reading, closed, network, draw, gradients
):
    trunk, head = network()
    images = draw(ROLES[kind], 3, 3, 8, 6, seed=2)
    form = head if closed else any_head(head)

    def loss(**options) -> Tensor:
        return similarity_mining(trunk, form, images, kind, reading=reading, **options).mean()

    gradient = gradients(loss(), trunk, head)
    first_order = gradients(loss(detach_mask=True), trunk, head)
    for seed in range(4):
        direction = F.normalize(draw(len(gradient), seed=seed) + 5 * gradient / gradient.norm(), dim=0)
        expected = directional(trunk, head, loss, direction)
        assert (gradient @ direction).item() == pytest.approx(expected, rel=1e-6)
        assert (first_order @ direction).item() != pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("reading", ["outer", "full"])
def test_gradient_through_the_head_of_stripes_is_the_finite_difference_of_the_loss(reading, draw, gradients):
    torch.manual_seed(0)
    backbone = {"name": "tiny", "weights": None, "batch_norm": "trained", "last_stride": 1}
    embedder = Embedder(backbone, pooling="stripes", dim=12, parts=3).double().eval()
    for number, part in enumerate(embedder.head.parts):
        part[1].running_var.fill_(0.01)  # what random layers give, so that the ReLUs cut some
        part[1].bias.data = draw(4, seed=30 + number)
    trunk, head = trunk_and_head(embedder)
    images = draw(3, 2, 3, 24, 8, seed=4)

    def loss(**options) -> Tensor:
        return similarity_mining(trunk, head, images, "triplet", reading=reading, **options).mean()

    gradient = gradients(loss(), trunk, head.projection)
    first_order = gradients(loss(detach_mask=True), trunk, head.projection)
    direction = gradient / gradient.norm()
    expected = directional(trunk, head.projection, loss, direction, step=1e-7)  # a longer one crosses kinks of ReLUs
    assert gradient.norm() > 1e-3
    assert gradient.norm().item() == pytest.approx(expected, rel=1e-6)
    assert (first_order @ direction).item() != pytest.approx(gradient.norm().item(), rel=1e-2)


@pytest.mark.parametrize("closed", [True, False])
def test_gradient_can_be_differentiated_again(closed, network, draw, gradients):
    trunk, head = network()
    images = draw(3, 2, 3, 8, 6, seed=4)
    form = head if closed else any_head(head)
    parameters = [*trunk.parameters(), *head.parameters()]

    def squared_gradient() -> Tensor:
        value = similarity_mining(trunk, form, images, "triplet").mean()
        return sum(g.square().sum() for g in torch.autograd.grad(value, parameters, create_graph=True))

    second = gradients(squared_gradient(), trunk, head)
    expected = directional(trunk, head, squared_gradient, second / second.norm())
    assert second.norm().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_of_a_tuple_does_not_depend_on_the_others(kind, network, draw):
    trunk, head = network(batch_norm=True)
    trunk.eval()
    images = draw(ROLES[kind], 4, 3, 8, 6, seed=6)
    together = similarity_mining(trunk, head, images, kind)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        similarity_mining(trunk, head, images[:, order], kind), together[order], rtol=1e-11, atol=1e-13
    )
    alone = torch.cat([similarity_mining(trunk, head, images[:, b : b + 1], kind) for b in range(4)])
    torch.testing.assert_close(alone, together, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("value", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_identical_and_plain_images_give_a_finite_loss_and_gradient(dtype, closed, value, kind, network, gradients):
    for bias in (True, False):
        trunk, head = network(bias=bias)
        if not bias:
            trunk[0].bias.data.zero_()  # feature maps of zeros where the image is zero
        trunk, head = trunk.to(dtype), head.to(dtype)
        images = torch.full((ROLES[kind], 2, 3, 8, 6), value, dtype=dtype)
        loss = similarity_mining(trunk, head if closed else any_head(head), images, kind)
        assert loss.isfinite().all()
        assert gradients(loss.sum(), trunk, head).isfinite().all()


def test_float32_mining_agrees_with_float64(network, draw):
    trunk, head = network()
    images = draw(3, 4, 3, 8, 6, seed=7)
    precise = similarity_mining(trunk, head, images, "triplet")
    single = similarity_mining(trunk.float(), head.float(), images.float(), "triplet")
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), precise, rtol=0, atol=1e-4)


def test_mining_without_gradients_gives_the_same_values(network, draw):
    trunk, head = network()
    images = draw(3, 2, 3, 8, 6, seed=8)
    expected = similarity_mining(trunk, head, images, "triplet")
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            value = similarity_mining(trunk, head, images, "triplet")
        assert not value.requires_grad
        torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)


def test_wrong_tuples_and_unknown_options_are_refused(network, draw):
    trunk, head = network()
    images = draw(3, 2, 3, 8, 6, seed=9)
    with pytest.raises(ValueError, match="form: unknown 'huber', did you mean"):
        mining_loss(draw(3, 2, 4, seed=0), "triplet", form="huber")
    with pytest.raises(ValueError, match=r"masked_features has shape \(3, 2, 4\), quadruplet needs \(4, B, D\)"):
        mining_loss(draw(3, 2, 4, seed=0), "quadruplet")
    with pytest.raises(ValueError, match="kind: unknown 'pair'"):
        similarity_mining(trunk, head, images, "pair")
    with pytest.raises(ValueError, match=r"siamese_same needs \(2, B, 3, H, W\)"):
        similarity_mining(trunk, head, images, "siamese_same")
    with pytest.raises(ValueError, match="reading: unknown 'inner'"):
        similarity_mining(trunk, head, images, "triplet", reading="inner")
    with pytest.raises(ValueError, match="form: unknown 'huber'"):
        similarity_mining(trunk, head, images, "triplet", form="huber")


def test_erased_pixels_become_the_mean_colour_as_far_as_the_mask_says(network, draw):
    trunk, head = network()
    images = draw(3, 2, 3, 8, 6, seed=0)
    seen = []

    def recording(batch: Tensor) -> Tensor:
        seen.append(batch)
        return trunk(batch)

    erased = erase(recording, head, images, read_maps(recording, images), "triplet", Erasing())
    assert erased.maps.shape == (3, 2, 4, 3)
    assert erased.masks.shape == (3, 2, 8, 6)
    for r in range(3):
        for b in range(2):
            masked = images[r, b] * (1 - erased.masks[r, b])
            torch.testing.assert_close(seen[1][2 * r + b], masked, rtol=1e-14, atol=0)
            torch.testing.assert_close(erased.features[r, b], head(trunk(masked[None]))[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("detach_mask", [True, False])
def test_masks_are_on_the_graph_unless_detached(detach_mask, network, draw):
    trunk, head = network()
    images = draw(2, 2, 3, 8, 6, seed=1)
    settings = Erasing(detach_mask=detach_mask)
    erased = erase(trunk, head, images, read_maps(trunk, images), "siamese_same", settings)
    assert erased.masks.requires_grad is not detach_mask
    with torch.no_grad():
        assert not erase(trunk, head, images, read_maps(trunk, images), "siamese_same", settings).masks.requires_grad


def test_half_precision_images_reach_the_trunk_as_they_are(network, draw):
    trunk, head = network()
    trunk, head = trunk.bfloat16(), head.float()
    images = draw(3, 2, 3, 8, 6, seed=2, dtype=torch.bfloat16)
    erased = erase(trunk, head, images, read_maps(trunk, images), "triplet", Erasing())
    assert {tensor.dtype for tensor in (erased.maps, erased.masks, erased.features)} == {torch.float32}


def statistics(trunk: nn.Module) -> list[Tensor]:
    return [buffer.clone() for buffer in trunk.buffers()]


def test_masked_images_leave_the_running_statistics_unless_asked_to_enter_them(network, draw, device):
    trunk, head = (part.to(device) for part in network(batch_norm=True))
    images = draw(3, 4, 3, 8, 6, seed=3).to(device)
    feature_maps = read_maps(trunk.train(), images)
    before = statistics(trunk)
    frozen = erase(trunk, head, images, feature_maps, "triplet", Erasing())
    assert all(torch.equal(old, new) for old, new in zip(before, statistics(trunk), strict=True))
    assert trunk[1].training
    batch = erase(trunk, head, images, feature_maps, "triplet", Erasing(masked_batch_norm="batch"))
    assert not any(torch.equal(old, new) for old, new in zip(before, statistics(trunk), strict=True))
    assert torch.equal(frozen.masks, batch.masks)
    assert (frozen.features - batch.features).abs().max() > 1e-3


def test_scale_and_shift_of_a_frozen_batch_norm_still_learn(network, draw):
    trunk, head = network(batch_norm=True)
    images = draw(3, 4, 3, 8, 6, seed=4)
    with torch.no_grad():
        feature_maps = read_maps(trunk, images)
    erased = erase(trunk, head, images, feature_maps, "triplet", Erasing())
    erased.features[0].sum().backward()
    assert trunk[1].weight.grad.abs().max() > 0


def test_modes_of_batch_norms_come_back_also_after_an_error():
    norms = nn.Sequential(nn.BatchNorm2d(2), nn.BatchNorm1d(2), nn.Dropout())
    norms[1].eval()
    with pytest.raises(KeyError), frozen_batch_norm(norms, lambda value: value):
        assert [module.training for module in norms] == [False, False, True]
        raise KeyError
    assert [module.training for module in norms] == [True, False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reading": "inner"}, "Known: full, outer, stop"),
        ({"score": "square"}, "Known: abs, signed"),
        ({"score_on": "half"}, "Known: raw, unit"),
        ({"normalise": "mean"}, "Known: max, minmax, none"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"masked_batch_norm": "none"}, "masked_batch_norm: unknown 'none', did you mean"),
    ],
)
def test_unknown_settings_are_refused_when_they_are_made(options, message):
    with pytest.raises(ValueError, match=message):
        Erasing(**options)


def test_a_trunk_that_does_not_give_one_map_per_image_is_refused(network, draw):
    images = draw(3, 2, 3, 8, 6, seed=5)
    with pytest.raises(ValueError, match="trunk returned a list"):
        read_maps(lambda batch: [batch], images)
    with pytest.raises(ValueError, match=r"trunk returned shape \(6, 144\), it must be \(6, C, h, w\)"):
        read_maps(lambda batch: batch.flatten(1), images)
    trunk, head = network()
    with pytest.raises(ValueError, match=r"images has shape \(3, 2, 3, 8, 6\), quadruplet needs \(4, B, 3, H, W\)"):
        erase(trunk, head, images, read_maps(trunk, images), "quadruplet", Erasing())
