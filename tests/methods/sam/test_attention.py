from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lookalike.methods.sam.attention import attention_maps, similarity_weight
from lookalike.methods.sam.head import LinearHead, PoolingHead

ROLES = {"siamese_same": 2, "siamese_different": 2, "triplet": 3, "quadruplet": 4}
KINDS = list(ROLES)
READINGS = ["outer", "stop", "full"]
OPTIONS = [{}, {"score": "abs"}, {"score_on": "raw"}, {"score": "abs", "score_on": "raw"}, {"clamp": True}]


def any_head(head: LinearHead) -> PoolingHead:
    """The same head, not recognised as one with a closed form."""
    return PoolingHead(lambda maps: maps.mean(dim=(2, 3)), head.linear)


def tuples(draw, kind: str, *, count: int = 3, seed: int = 5) -> Tensor:
    return draw(ROLES[kind], count, 6, 4, 3, seed=seed).relu()


def weight_by_loops(features: list[Tensor], kind: str, clamp: bool = False) -> Tensor:
    """Section 2 of the notes, one dimension after the other."""
    values = []
    for t in range(len(features[0])):
        f = [vector[t] for vector in features]
        together = 1 - abs(f[0] - f[1])
        if clamp and together < 0:
            together = together * 0
        if kind == "siamese_same":
            values.append(together)
        elif kind == "siamese_different":
            values.append(abs(f[0] - f[1]))
        elif kind == "triplet":
            values.append(together * abs(f[0] - f[2]))
        else:
            values.append(together * abs(f[0] - f[2]) * abs(f[0] - f[3]))
    return torch.stack(values)


def maps_by_loops(feature_maps: Tensor, head: LinearHead, kind: str, reading: str, score="signed", score_on="unit"):
    """Section 3: the score of each role of each tuple by itself, its gradient by the map of that image alone."""
    roles, count, channels, height, width = feature_maps.shape
    result = torch.zeros(roles, count, height, width, dtype=feature_maps.dtype)
    for b in range(count):
        for role in range(roles):
            maps = [feature_maps[r, b].detach().requires_grad_() for r in range(roles)]
            raw = [head.weight @ A.mean(dim=(1, 2)) + (0 if head.bias is None else head.bias) for A in maps]
            features = [v / v.norm() for v in raw]
            w = weight_by_loops(features, kind)
            if reading != "full":
                w = w.detach()
            scored = (features if score_on == "unit" else raw)[role]
            s = (w * (scored if score == "signed" else scored.abs())).sum()
            (gradient,) = torch.autograd.grad(s, maps[role])
            for i in range(height):
                for j in range(width):
                    total = 0.0
                    for k in range(channels):
                        total += gradient[k].sum() / (height * width) * maps[role][k, i, j]
                    result[role, b, i, j] = max(total.item(), 0)
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clamp", [False, True])
def test_weight_is_the_product_that_the_kind_names(kind, clamp, draw):
    features = F.normalize(draw(ROLES[kind], 4, 3, seed=1), dim=-1)
    expected = torch.stack([weight_by_loops(list(features[:, b]), kind, clamp) for b in range(4)])
    torch.testing.assert_close(similarity_weight(features, kind, clamp=clamp), expected, rtol=0, atol=1e-15)


def test_weight_gives_the_example_of_the_notes_and_clamps_only_on_request():
    pair = torch.tensor([[[0.80, 1.0]], [[0.78, -0.5]]], dtype=torch.float64)
    assert similarity_weight(pair, "siamese_same")[0].tolist() == pytest.approx([0.98, -0.5])
    assert similarity_weight(pair, "siamese_same", clamp=True)[0].tolist() == pytest.approx([0.98, 0])


@pytest.mark.parametrize("kind", ["siamese_same", "siamese_different"])
def test_swapping_a_pair_leaves_the_weight_and_swaps_the_maps(kind, network, draw):
    features = F.normalize(draw(2, 3, 5, seed=2), dim=-1)
    assert torch.equal(similarity_weight(features, kind), similarity_weight(features.flip(0), kind))
    maps, (_, head) = tuples(draw, kind), network()
    swapped = attention_maps(maps.flip(0), head, kind)
    torch.testing.assert_close(swapped.flip(0), attention_maps(maps, head, kind), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("options", OPTIONS[:4])
def test_maps_of_one_call_are_those_of_one_backward_pass_per_role(kind, reading, options, network, draw):
    _, head = network(bias=kind != "siamese_same")
    maps = tuples(draw, kind, count=2)
    expected = maps_by_loops(maps, head, kind, reading, **options)
    assert (expected > 0).any()
    for form in (head, any_head(head)):
        torch.testing.assert_close(
            attention_maps(maps, form, kind, reading=reading, **options), expected, rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("options", OPTIONS)
def test_closed_form_and_its_gradient_equal_those_of_the_backward_pass(kind, reading, options, network, draw):
    _, head = network()
    upstream = draw(ROLES[kind], 3, 4, 3, seed=3)
    results = []
    for closed in (True, False):
        maps = tuples(draw, kind).requires_grad_()
        given = {"reading": reading, "create_graph": True, **options}
        attention = attention_maps(maps, head if closed else any_head(head), kind, **given)
        inputs = [maps, *head.parameters()]
        gradients = torch.autograd.grad(attention, inputs, upstream, allow_unused=True, materialize_grads=True)
        results.append([attention, *gradients])
    for closed, general in zip(*results, strict=True):
        torch.testing.assert_close(closed, general, rtol=1e-12, atol=1e-14)
    for value in results[0][:3]:  # maps, and gradients of feature maps and weight
        assert value.abs().max() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("closed", [True, False])
def test_maps_sum_to_zero_before_the_relu_unless_the_head_has_a_bias(kind, reading, closed, network, draw):
    def imbalance(bias: bool) -> Tensor:
        _, head = network(bias=bias)
        form = head if closed else any_head(head)
        positive = attention_maps(tuples(draw, kind), form, kind, reading=reading)
        head.weight.data.neg_()  # turns every feature, so it turns the sum under the ReLU
        if bias:
            head.bias.data.neg_()
        negative = attention_maps(tuples(draw, kind), form, kind, reading=reading)
        assert not ((positive > 0) & (negative > 0)).any()
        return (positive.sum(dim=(2, 3)) - negative.sum(dim=(2, 3))).abs() / positive.sum(dim=(2, 3))

    assert imbalance(bias=False).max() < 1e-12
    assert imbalance(bias=True).max() > 1e-3


@pytest.mark.parametrize("reading", READINGS)
def test_constant_feature_maps_have_no_attention(reading, network, draw):
    _, head = network(bias=False)
    constant = draw(3, 2, 6, 1, 1, seed=4).relu().expand(3, 2, 6, 4, 4)
    assert attention_maps(constant, head, "triplet", reading=reading).max() < 1e-15


@pytest.mark.parametrize("reading", READINGS)
def test_scaling_the_linear_layer_leaves_the_maps(reading, network, draw):
    _, head = network()
    maps = tuples(draw, "triplet")
    before = attention_maps(maps, head, "triplet", reading=reading)
    for parameter in head.parameters():
        parameter.data.mul_(7.3)
    torch.testing.assert_close(attention_maps(maps, head, "triplet", reading=reading), before, rtol=1e-12, atol=0)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("closed", [True, False])
def test_a_tuple_does_not_see_the_others(reading, closed, network, draw):
    _, head = network()
    form = head if closed else any_head(head)
    maps = tuples(draw, "quadruplet", count=5)
    together = attention_maps(maps, form, "quadruplet", reading=reading)
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = attention_maps(maps[:, order], form, "quadruplet", reading=reading)
    torch.testing.assert_close(shuffled, together[:, order], rtol=1e-12, atol=1e-16)
    for b in range(5):
        alone = attention_maps(maps[:, b : b + 1], form, "quadruplet", reading=reading)
        torch.testing.assert_close(alone[:, 0], together[:, b], rtol=1e-12, atol=1e-16)


def test_readings_differ_in_value_or_in_gradient(network, draw):
    _, head = network()
    maps = tuples(draw, "triplet")
    values, gradients = {}, {}
    for reading in READINGS:
        values[reading] = attention_maps(maps, head, "triplet", reading=reading, create_graph=True)
        (gradients[reading],) = torch.autograd.grad(values[reading].square().sum(), head.weight)
    assert torch.equal(values["outer"], values["stop"])
    assert F.cosine_similarity(gradients["outer"].flatten(), gradients["stop"].flatten(), dim=0) < 0.99
    assert F.cosine_similarity(values["outer"].flatten(), values["full"].flatten(), dim=0) < 0.99


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("reading", READINGS)
def test_identical_images_have_a_zero_map_and_a_finite_gradient(closed, reading, network, draw):
    _, head = network()
    maps = draw(1, 2, 6, 4, 3, seed=6).relu().expand(3, 2, 6, 4, 3).clone().requires_grad_()
    form = head if closed else any_head(head)
    attention = attention_maps(maps, form, "triplet", reading=reading, create_graph=True)
    assert attention.max() == 0
    for gradient in torch.autograd.grad(attention.sum(), [maps, *head.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("score_on", ["unit", "raw"])
def test_empty_feature_maps_give_no_nan_in_value_or_gradient(closed, reading, score_on, network):
    _, head = network(bias=False)
    maps = torch.zeros(3, 2, 6, 4, 3, dtype=torch.float64, requires_grad=True)
    form = head if closed else any_head(head)
    attention = attention_maps(maps, form, "triplet", reading=reading, score_on=score_on, create_graph=True)
    assert attention.max() == 0
    for gradient in torch.autograd.grad(attention.sum(), [maps, head.weight]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("reading", READINGS)
def test_maps_come_out_where_gradients_are_off(closed, reading, network, draw, device):
    trunk, head = (part.to(device) for part in network())
    images = draw(3, 2, 3, 8, 6, seed=7).to(device)
    form = head if closed else any_head(head)

    def maps(**options) -> Tensor:
        feature_maps = trunk(images.flatten(0, 1)).view(3, 2, 6, 4, 3)
        return attention_maps(feature_maps, form, "triplet", reading=reading, **options)

    expected = maps(create_graph=True)
    assert expected.requires_grad and expected.max() > 0
    with torch.no_grad():
        without = maps()
    with torch.inference_mode():
        inference = maps()
    for result in (maps(), without, inference):
        assert not result.requires_grad
        torch.testing.assert_close(result, expected.detach(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("closed", [True, False])
def test_a_call_without_graph_leaves_the_graph_of_the_caller(closed, network, draw):
    trunk, head = network()
    feature_maps = trunk(draw(6, 3, 8, 6, seed=8))
    features = head(feature_maps)
    attention_maps(feature_maps.view(3, 2, 6, 4, 3), head if closed else any_head(head), "triplet")
    features[:3].sum().backward()
    assert trunk[0].weight.grad.abs().max() > 0
    assert head.weight.grad.abs().max() > 0


def test_head_is_called_once_with_all_images_in_one_batch(network, draw):
    _, head = network()
    batches = []

    def recording(maps: Tensor) -> Tensor:
        batches.append(tuple(maps.shape))
        return head(maps)

    for reading in READINGS:
        attention_maps(tuples(draw, "triplet", count=2), recording, "triplet", reading=reading)
    assert batches == [(6, 6, 4, 3)] * 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("closed", [True, False])
def test_half_precision_maps_are_read_in_float32(dtype, closed, network, draw):
    _, head = network()
    head.float()
    maps = tuples(draw, "quadruplet").to(dtype)
    form = head if closed else any_head(head)
    expected = attention_maps(maps.float(), form, "quadruplet")
    assert expected.max() > 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = attention_maps(maps, form, "quadruplet")
    assert result.dtype == torch.float32
    assert torch.equal(result, expected)


@pytest.mark.parametrize("reading", READINGS)
def test_float32_agrees_with_float64(reading, network, draw):
    _, head = network()
    maps = tuples(draw, "triplet")
    precise = attention_maps(maps, head, "triplet", reading=reading)
    assert precise.dtype == torch.float64
    single = attention_maps(maps.float(), head.float(), "triplet", reading=reading)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), precise, rtol=0, atol=1e-5 * precise.max().item())


def test_maps_in_channels_last_order_are_read_alike(network, draw):
    trunk, head = network()
    images = draw(6, 3, 8, 6, seed=9)
    plain = trunk(images).view(3, 2, 6, 4, 3)
    last = trunk.to(memory_format=torch.channels_last)(images.contiguous(memory_format=torch.channels_last))
    for form in (head, any_head(head)):
        other = attention_maps(last.view(3, 2, 6, 4, 3), form, "triplet")
        torch.testing.assert_close(other, attention_maps(plain, form, "triplet"), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "pair"}, "kind: unknown 'pair', did you mean"),
        ({"reading": "inner"}, "reading: unknown 'inner', did you mean"),
        ({"score": "square"}, "score: unknown 'square', did you mean"),
        ({"score_on": "half"}, "score_on: unknown 'half', did you mean"),
        ({"kind": "quadruplet"}, r"feature_maps has shape \(3, 3, 6, 4, 3\), quadruplet needs \(4, B, C, H, W\)"),
    ],
)
def test_unknown_options_and_wrong_roles_are_refused(options, message, network, draw):
    _, head = network()
    given = {"kind": "triplet", **options}
    for form in (head, any_head(head)):
        with pytest.raises(ValueError, match=message):
            attention_maps(tuples(draw, "triplet"), form, **given)


def test_shapes_that_do_not_belong_together_are_refused(network, draw):
    _, head = network()
    maps = tuples(draw, "triplet")
    with pytest.raises(ValueError, match=r"features has shape \(2, 3, 5\), triplet needs \(3, B, D\)"):
        similarity_weight(draw(2, 3, 5, seed=0), "triplet")
    with pytest.raises(ValueError, match=r"triplet needs \(3, B, C, H, W\)"):
        attention_maps(maps.flatten(0, 1), head, "triplet")
    with pytest.raises(ValueError, match="C, H and W must be at least 1"):
        attention_maps(maps[..., :0], head, "triplet")
    with pytest.raises(ValueError, match=r"head returned shape \(9, 6, 4, 3\), it must be \(9, D\)"):
        attention_maps(maps, nn.Identity(), "triplet")
    with pytest.raises(ValueError, match="score_on='raw' needs a UnitHead"):
        attention_maps(maps, lambda value: head(value), "triplet", score_on="raw")
    with pytest.raises(ValueError, match=r"it must be \(D, 6\)"):
        attention_maps(maps, LinearHead(nn.Linear(7, 5)), "triplet")
    with pytest.raises(ValueError, match=r"bias has shape \(4,\), it must be \(5,\)"):
        head.linear.bias = nn.Parameter(torch.zeros(4))
        attention_maps(maps, head, "triplet")
