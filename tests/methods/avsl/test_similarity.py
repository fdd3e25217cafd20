"""Distance over the graph against a loop over pairs, levels and nodes."""

import inspect
import math

import pytest
import torch

from lookalike.methods.avsl import similarity
from lookalike.methods.avsl.similarity import (
    level_distance,
    normalise_edges,
    overall_distance,
    reliability,
    sensitivities,
)

LEVELS, NODES = 3, 6


def unit(vector):
    length = max(math.sqrt(sum(value * value for value in vector)), 1e-12)
    return [value / length for value in vector]


def looped_distance(query, gallery, weights):
    """Overall distance of one pair; each image is a list over levels of (embedding, statistics) lists."""
    below = None
    for level in range(len(query)):
        (left, left_spread), (right, right_spread) = query[level], gallery[level]
        delta = [(a - b) ** 2 for a, b in zip(unit(left), unit(right), strict=True)]
        if below is None:
            below = delta
            continue
        alpha, beta, edges = (weights[name][level].tolist() for name in ("alpha", "beta", "edges"))
        now = []
        for i, own in enumerate(delta):
            eta = left_spread[i] * right_spread[i]
            p = 1 / (1 + math.exp(-weights["scale"] * (alpha[i] * eta + beta[i])))
            now.append(p * own + (1 - p) * sum(edges[i][j] * below[j] for j in range(len(below))))
        below = now
    return sum(below)


def as_lists(embeddings, statistics):
    """Per image a list over levels of (embedding, statistics)."""
    return [
        [(level[n].tolist(), spread[n].tolist()) for level, spread in zip(embeddings, statistics, strict=True)]
        for n in range(len(embeddings[0]))
    ]


def looped_matrix(query, gallery, weights):
    rows = [[looped_distance(a, b, weights) for b in as_lists(*gallery)] for a in as_lists(*query)]
    return torch.tensor(rows, dtype=torch.float64)


def images(count, seed, nodes=NODES, levels=LEVELS):
    generator = torch.Generator().manual_seed(seed)
    embeddings = [torch.randn(count, nodes, generator=generator, dtype=torch.float64) for _ in range(levels)]
    statistics = [0.2 * torch.rand(count, nodes, generator=generator, dtype=torch.float64) for _ in range(levels)]
    return embeddings, statistics


def graph(seed=0, nodes=NODES, levels=LEVELS, scale=10.0, k=3):
    """Weights strong enough that the reliability differs from pair to pair."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"generator": generator, "dtype": torch.float64}
    return {
        "alpha": [20 * torch.randn(nodes, **shape) for _ in range(levels)],
        "beta": [0.2 * torch.randn(nodes, **shape) for _ in range(levels)],
        "edges": [None, *(normalise_edges(torch.randn(nodes, nodes, **shape), k) for _ in range(levels - 1))],
        "scale": scale,
    }


def convert(values, dtype):
    return [value if value is None else value.to(dtype) for value in values]


def test_reliability_equals_the_loops():
    (_, left), (_, right), weights = images(3, 1), images(4, 2), graph()
    for scale in (1.0, 10.0):
        p = reliability(left[1], right[1], weights["alpha"][1], weights["beta"][1], scale)
        for q in range(3):
            for g in range(4):
                for i in range(NODES):
                    eta = float(left[1][q, i]) * float(right[1][g, i])
                    argument = scale * (float(weights["alpha"][1][i]) * eta + float(weights["beta"][1][i]))
                    assert float(p[q, g, i]) == pytest.approx(1 / (1 + math.exp(-argument)), abs=1e-12)


def test_reliability_stays_finite_for_huge_arguments():
    p = reliability(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([1e30, -1e30]), torch.zeros(2))
    assert p.flatten().tolist() == [1, 0]


def test_level_distance_is_the_squared_distance_of_unit_vectors():
    query, gallery = images(3, 1)[0][0], images(4, 2)[0][0]
    expected = [
        [sum((a - b) ** 2 for a, b in zip(unit(left), unit(right), strict=True)) for right in gallery.tolist()]
        for left in query.tolist()
    ]
    torch.testing.assert_close(
        level_distance(query, gallery), torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=0
    )


def test_level_distance_of_duplicates_is_never_negative():
    query = torch.randn(50, 64, generator=torch.Generator().manual_seed(1))
    distance = level_distance(query, 3 * query)
    assert distance.min() >= 0
    assert distance.diagonal().max() < 1e-6


def test_level_distance_of_a_zero_vector_has_a_value_and_a_gradient():
    query = torch.zeros(1, 4, requires_grad=True)
    distance = level_distance(query, torch.eye(4)[:2])
    distance.sum().backward()
    assert distance.tolist() == [[1, 1]]
    assert query.grad.isfinite().all()


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_overall_distance_equals_the_loops(levels, scale):
    query, gallery = images(3, 1, levels=levels), images(4, 2, levels=levels)
    weights = graph(levels=levels, scale=scale)
    expected = looped_matrix(query, gallery, weights)
    torch.testing.assert_close(overall_distance(*query, *gallery, **weights), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("block", [1, 2, 5, 12, 10**6, None])
def test_blocks_do_not_change_the_distance(block):
    query, gallery, weights = images(5, 1), images(7, 2), graph()
    torch.testing.assert_close(
        overall_distance(*query, *gallery, **weights, block=block),
        looped_matrix(query, gallery, weights),
        atol=1e-9,
        rtol=0,
    )
    torch.testing.assert_close(
        overall_distance(*query, *query, **weights, block=block),
        looped_matrix(query, query, weights),
        atol=1e-9,
        rtol=0,
    )


def test_a_set_against_itself_equals_a_set_against_its_copy():
    query, weights = images(9, 1), graph()
    copy = [[level.clone() for level in part] for part in query]
    itself = overall_distance(*query, *query, **weights, block=4)
    torch.testing.assert_close(itself, overall_distance(*query, *copy, **weights), atol=1e-12, rtol=0)
    assert torch.equal(itself, itself.T)


def test_distance_is_symmetric_non_negative_and_zero_to_itself():
    query, gallery, weights = images(5, 1), images(6, 2), graph()
    distance = overall_distance(*query, *gallery, **weights)
    torch.testing.assert_close(overall_distance(*gallery, *query, **weights).T, distance, atol=1e-12, rtol=0)
    assert distance.min() >= 0
    assert not overall_distance(*query, *query, **weights).diagonal().any()


def test_distance_follows_a_permutation_of_the_images():
    query, gallery, weights = images(5, 1), images(6, 2), graph()
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = [[level[order] for level in part] for part in query]
    torch.testing.assert_close(
        overall_distance(*permuted, *gallery, **weights),
        overall_distance(*query, *gallery, **weights)[order],
        atol=1e-12,
        rtol=0,
    )


def test_distance_ignores_the_length_of_the_embeddings():
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    longer = [[5 * level for level in query[0]], query[1]]
    torch.testing.assert_close(
        overall_distance(*longer, *gallery, **weights),
        overall_distance(*query, *gallery, **weights),
        atol=1e-12,
        rtol=0,
    )


def test_sensitivities_are_the_derivative_by_the_nodes():
    """Derivative by finite differences of the looped recursion, whose nodes are shifted one at a time."""
    (embeddings, statistics), (others, spreads), weights = images(1, 1), images(1, 2), graph()
    found = sensitivities(embeddings, statistics, others, spreads, **weights)
    units = [
        [(a - b) ** 2 for a, b in zip(unit(left[0].tolist()), unit(right[0].tolist()), strict=True)]
        for left, right in zip(embeddings, others, strict=True)
    ]

    def recursion(delta):
        below = delta[0]
        for level in range(1, LEVELS):
            p = [
                1 / (1 + math.exp(-10 * float(alpha * s * t + beta)))
                for alpha, beta, s, t in zip(
                    weights["alpha"][level],
                    weights["beta"][level],
                    statistics[level][0],
                    spreads[level][0],
                    strict=True,
                )
            ]
            edges = weights["edges"][level].tolist()
            below = [
                p[i] * delta[level][i] + (1 - p[i]) * sum(edges[i][j] * below[j] for j in range(NODES))
                for i in range(NODES)
            ]
        return sum(below)

    for level in range(LEVELS):
        for i in range(NODES):
            shifted = [list(row) for row in units]
            shifted[level][i] += 1.0  # the recursion is linear in the nodes
            slope = recursion(shifted) - recursion(units)
            assert float(found[level][0, 0, i]) == pytest.approx(slope, abs=1e-9)


def test_sensitivities_sum_to_the_number_of_nodes_and_explain_the_distance():
    query, gallery, weights = images(4, 1), images(5, 2), graph()
    random = torch.Generator().manual_seed(3)
    states = [torch.rand(NODES, NODES, generator=random, dtype=torch.float64) for _ in range(2)]
    weights["edges"][1:] = [normalise_edges(state, 3) for state in states]
    found = sensitivities(*query, *gallery, **weights)
    total = sum(level.sum(-1) for level in found)
    torch.testing.assert_close(total, torch.full_like(total, NODES), atol=1e-6, rtol=0)
    nodes = [
        (torch.nn.functional.normalize(left)[:, None] - torch.nn.functional.normalize(right)).square()
        for left, right in zip(query[0], gallery[0], strict=True)
    ]
    explained = sum((weight * node).sum(-1) for weight, node in zip(found, nodes, strict=True))
    torch.testing.assert_close(explained, overall_distance(*query, *gallery, **weights), atol=1e-12, rtol=0)


def test_an_empty_row_of_edges_lowers_the_sum_of_sensitivities():
    query, weights = images(2, 1), graph()
    full = [torch.full((NODES, NODES), 1 / NODES, dtype=torch.float64) for _ in range(2)]
    full[1][2] = 0
    weights["edges"] = [None, *full]
    p = reliability(query[1][2], query[1][2], weights["alpha"][2], weights["beta"][2])
    total = sum(level.sum(-1) for level in sensitivities(*query, *query, **weights))
    torch.testing.assert_close(total, NODES - (1 - p[..., 2]), atol=1e-12, rtol=0)
    assert overall_distance(*query, *query, **weights).isfinite().all()


def test_float32_stays_near_float64_at_full_size():
    query, gallery = images(12, 1, nodes=512), images(9, 2, nodes=512)
    weights = graph(nodes=512, k=128)
    exact = overall_distance(*query, *gallery, **weights)
    single = [convert(part, torch.float32) for part in (*query, *gallery)]
    rounded = overall_distance(
        *single,
        alpha=convert(weights["alpha"], torch.float32),
        beta=convert(weights["beta"], torch.float32),
        edges=convert(weights["edges"], torch.float32),
    )
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.double(), exact, atol=2e-6, rtol=0)


def test_gradients_equal_finite_differences_with_and_without_blocks():
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    weighting = torch.randn(3, 4, generator=torch.Generator().manual_seed(9), dtype=torch.float64)

    def total(alpha, beta, block=None):
        found = overall_distance(
            *query,
            *gallery,
            alpha=[None, *alpha],
            beta=[None, *beta],
            edges=weights["edges"],
            block=block,
        )
        return (weighting * found).sum()

    alpha, beta = (torch.stack(weights[name][1:]).requires_grad_() for name in ("alpha", "beta"))
    for block in (None, 5):
        slopes = torch.autograd.grad(total(alpha, beta, block), (alpha, beta))
        for tensor, slope in zip((alpha, beta), slopes, strict=True):
            for index in range(tensor.numel()):
                shift = torch.zeros(tensor.numel(), dtype=torch.float64)
                shift[index] = 1e-5
                shift = shift.view_as(tensor)
                up, down = (
                    total(*(value.detach() + (sign * shift if value is tensor else 0) for value in (alpha, beta)))
                    for sign in (1, -1)
                )
                numeric = float(up - down) / 2e-5
                assert float(slope.flatten()[index]) == pytest.approx(numeric, abs=1e-7)
        assert all((slope.abs().amax(dim=1) > 1e-6).all() for slope in slopes)  # both upper levels are reached


def test_gradients_of_a_set_against_itself_count_every_ordered_pair():
    query, weights = images(5, 1), graph()
    copy = [[level.clone() for level in part] for part in query]
    weighting = torch.randn(5, 5, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    slopes = []
    for gallery in (query, copy):
        alpha = torch.stack(weights["alpha"]).requires_grad_()
        found = overall_distance(
            *query, *gallery, alpha=list(alpha), beta=weights["beta"], edges=weights["edges"], block=4
        )
        slopes.append(torch.autograd.grad((weighting * found).sum(), alpha)[0])
    torch.testing.assert_close(*slopes, atol=1e-12, rtol=0)
    assert not slopes[0][0].any()  # the lowest level has no alpha


def test_values_with_gradient_are_those_without():
    query, gallery, weights = images(5, 1), images(7, 2), graph()
    plain = overall_distance(*query, *gallery, **weights, block=6)
    weights["alpha"] = [level.clone().requires_grad_() for level in weights["alpha"]]
    assert torch.equal(overall_distance(*query, *gallery, **weights, block=6).detach(), plain)


def test_float32_values_and_gradients_stay_near_float64():
    (query, gallery), weights = (images(7, seed, nodes=64) for seed in (1, 2)), graph(nodes=64, k=16)
    plain, slopes = [], []
    for dtype in (torch.float64, torch.float32):
        alpha, beta = (torch.stack(weights[name]).to(dtype).requires_grad_() for name in ("alpha", "beta"))
        sides = [convert(part, dtype) for part in (*query, *gallery)]
        edges = convert(weights["edges"], dtype)
        found = overall_distance(*sides, alpha=list(alpha), beta=list(beta), edges=edges, block=20)
        slopes.append(torch.cat(torch.autograd.grad(found.sum(), (alpha, beta))))
        with torch.no_grad():
            plain.append(overall_distance(*sides, alpha=list(alpha), beta=list(beta), edges=edges, block=20))
        torch.testing.assert_close(found.detach(), plain[-1], atol=1e-6, rtol=0)
    torch.testing.assert_close(plain[1].double(), plain[0], atol=2e-6, rtol=0)
    torch.testing.assert_close(slopes[1].double(), slopes[0], atol=2e-5, rtol=0)


@pytest.mark.gpu
def test_a_device_gives_the_values_of_the_processor():
    (query, gallery), weights = (images(5, seed) for seed in (1, 2)), graph()
    moved = [[level.cuda() for level in part] for part in (*query, *gallery)]
    settings = {
        name: [value if value is None else value.cuda() for value in weights[name]]
        for name in ("alpha", "beta", "edges")
    }
    torch.testing.assert_close(
        overall_distance(*moved, **settings).cpu(), overall_distance(*query, *gallery, **weights), atol=1e-9, rtol=0
    )


def test_only_alpha_and_beta_get_gradients():
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    constants = [*query[0], *query[1], *gallery[0], *gallery[1], *weights["edges"][1:]]
    trained = [*weights["alpha"][1:], *weights["beta"][1:]]
    for tensor in (*constants, *trained, weights["alpha"][0], weights["beta"][0]):
        tensor.requires_grad_()
    overall_distance(*query, *gallery, **weights).sum().backward()
    assert all(tensor.grad is None for tensor in (*constants, weights["alpha"][0], weights["beta"][0]))
    assert all(tensor.grad.abs().max() > 0 for tensor in trained)


def test_learned_statistics_get_gradients():
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    for level in query[1]:
        level.requires_grad_()
    overall_distance(*query, *gallery, **weights, learned_statistics=True).sum().backward()
    assert query[1][0].grad is None
    assert all(level.grad.abs().max() > 0 for level in query[1][1:])


def test_zero_embeddings_and_statistics_give_no_nan():
    query, weights = images(3, 1), graph()
    nothing = [[torch.zeros_like(level) for level in part] for part in query]
    assert overall_distance(*nothing, *query, **weights).isfinite().all()
    assert not overall_distance(*nothing, *nothing, **weights).any()


def test_the_lowest_entries_are_never_read():
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    expected = overall_distance(*query, *gallery, **weights)
    for name in ("alpha", "beta"):
        weights[name][0] = None
    query[1][0].fill_(torch.nan)
    assert torch.equal(overall_distance(*query, *gallery, **weights), expected)


def test_an_empty_gallery_gives_an_empty_matrix():
    assert overall_distance(*images(3, 1), *images(0, 2), **graph()).shape == (3, 0)


def test_every_step_is_offered_by_one_module():
    names = {
        "linearise", "class_activation_maps", "node_statistics", "batch_edges", "update_edges", "normalise_edges",
        "reliability", "level_distance", "overall_distance", "sensitivities",
    }  # fmt: skip
    assert set(similarity.__all__) == names
    assert all(inspect.isfunction(getattr(similarity, name)) for name in names)


def broken(**changes):
    query, gallery, weights = images(3, 1), images(4, 2), graph()
    arguments = {
        "query_embeddings": query[0],
        "query_statistics": query[1],
        "gallery_embeddings": gallery[0],
        "gallery_statistics": gallery[1],
        **weights,
        **changes,
    }
    return overall_distance(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_embeddings": []}, "levels of embeddings"),
        ({"query_statistics": images(3, 1)[1][:2]}, "levels of embeddings"),
        ({"query_statistics": images(2, 1)[1]}, r"query_statistics\[0\]"),
        ({"query_embeddings": [torch.zeros(3)] * 3}, r"query_embeddings\[0\]"),
        ({"gallery_embeddings": images(4, 1, nodes=5)[0]}, "gallery_statistics"),
        (dict(zip(("gallery_embeddings", "gallery_statistics"), images(4, 1, nodes=5), strict=True)), "as the query"),
        (dict(zip(("gallery_embeddings", "gallery_statistics"), images(4, 1, levels=2), strict=True)), "as the query"),
        ({"alpha": graph()["alpha"][:2]}, "alpha has 2 entries"),
        ({"beta": [None] * 3}, r"beta\[1\]"),
        ({"edges": [None, None, None]}, r"edges\[1\]"),
        ({"edges": [None, torch.zeros(6, 5), torch.zeros(6, 6)]}, r"edges\[1\]"),
        ({"alpha": [torch.ones(NODES)] * 3}, "float32"),
        ({"block": 0}, "block=0"),
    ],
)
def test_wrong_arguments_of_the_distance_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        broken(**changes)


def test_wrong_shapes_of_single_steps_are_refused():
    with pytest.raises(ValueError, match="must be"):
        level_distance(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="beta"):
        reliability(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3), torch.zeros(2))
    with pytest.raises(ValueError, match="gallery_statistics"):
        reliability(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match="alpha"):
        reliability(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(()), torch.zeros(3))
