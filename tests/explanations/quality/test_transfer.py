"""Evidence between places sends a part to the other image, as far as a grid allows."""

from itertools import product

import pytest
import torch

from draws import generator
from lookalike.explanations.quality.annotations import Parts
from lookalike.explanations.quality.transfer import ceiling, point_transfer, same_place

SIZE = (40, 60)


def drawn(count, parts=8, seed=0):
    points = torch.rand(count, parts, 2, generator=generator(seed)) * torch.tensor([SIZE[1], SIZE[0]])
    return Parts(points, torch.rand(count, parts, generator=generator(seed + 1)) < 0.8, SIZE)


def centre(cell, grid):
    return (cell % grid[1] + 0.5) * SIZE[1] / grid[1], (cell // grid[1] + 0.5) * SIZE[0] / grid[0]


def cell_of(place, grid):
    return int(place[1] * grid[0] / SIZE[0]) * grid[1] + int(place[0] * grid[1] / SIZE[1])


def slow_transfer(aims, grid, first, second, reach):
    """Share of the parts right where every cell of the first images is sent to ``aims[n][cell]``, pair by pair."""
    shares = []
    for row, aim in enumerate(aims):
        hits = []
        for part in range(first.points.shape[1]):
            if first.visible[row, part] and second.visible[row, part]:
                x, y = centre(aim[cell_of(first.points[row, part].tolist(), grid)], grid)
                true = second.points[row, part].tolist()
                hits.append(((x - true[0]) ** 2 + (y - true[1]) ** 2) ** 0.5 <= float(reach[row]))
        shares.append(sum(hits) / len(hits))
    return shares


@pytest.mark.parametrize("grid", [(4, 4), (3, 5)])
def test_parts_go_to_the_cell_with_the_most_evidence(grid):
    first, second, cells = drawn(6), drawn(6, seed=5), grid[0] * grid[1]
    pairs = torch.randn(6, cells, cells, generator=generator(9))
    reach = torch.linspace(5, 25, 6)
    aims = [[max(range(cells), key=lambda j, c=c, row=row: float(row[c, j])) for c in range(cells)] for row in pairs]
    expected = slow_transfer(aims, grid, first, second, reach)
    assert point_transfer(pairs, grid, first, second, reach).tolist() == pytest.approx(expected)
    assert 0 < sum(expected) < 6
    assert point_transfer(pairs.mul(3).exp(), grid, first, second, reach).tolist() == pytest.approx(expected)


def test_equal_evidence_counts_by_its_share():
    grid = (2, 2)
    parts = Parts(torch.tensor([[[10.0, 10.0]]]), torch.ones(1, 1, dtype=torch.bool), SIZE)
    reach = torch.tensor([8.0])  # the upper left centre alone, (15, 10)
    pairs = torch.zeros(1, 4, 4)
    assert float(point_transfer(pairs, grid, parts, parts, reach)) == 0.25
    pairs[0, 0, :2] = 1
    assert float(point_transfer(pairs, grid, parts, parts, reach)) == 0.5


def test_the_ceiling_is_that_of_the_best_of_all_aims():
    grid = (2, 2)
    first, second = drawn(5, parts=6), drawn(5, parts=6, seed=5)
    reach = torch.full((5,), 16.0)
    every = torch.tensor([slow_transfer([aim] * 5, grid, first, second, reach) for aim in product(range(4), repeat=4)])
    best = ceiling(grid, first, second, reach)
    torch.testing.assert_close(best.float(), every.amax(dim=0))
    assert 0 < float(best.min()) < 1
    assert (best.float() > every.mean(dim=0)).all()


def test_a_perfect_correspondence_reaches_the_ceiling():
    grid, count, parts = (14, 14), 20, 6
    rows = torch.arange(count)
    # Each part in a cell of its own.
    places = torch.stack([torch.randperm(196, generator=generator(seed))[:parts] for seed in range(2 * count)])
    corner = torch.stack([places % 14 * SIZE[1] / 14, places // 14 * SIZE[0] / 14], dim=2)
    points = corner + torch.rand(2 * count, parts, 2, generator=generator(3)) * torch.tensor([SIZE[1], SIZE[0]]) / 14
    seen = torch.ones(count, parts, dtype=torch.bool)
    first, second = Parts(points[:count], seen, SIZE), Parts(points[count:], seen, SIZE)
    pairs = torch.zeros(count, 196, 196)
    for part in range(parts):
        pairs[rows, first.cells(grid)[:, part], second.cells(grid)[:, part]] = 1
    for reach in (torch.full((count,), 1.5), torch.full((count,), 4.0)):
        found, best = point_transfer(pairs, grid, first, second, reach), ceiling(grid, first, second, reach)
        torch.testing.assert_close(found, best)
    assert (best == 1).all()
    assert float(ceiling(grid, first, second, torch.full((count,), 1.5)).mean()) < 1


def test_parts_in_one_cell_cannot_part():
    seen = torch.ones(1, 2, dtype=torch.bool)
    first = Parts(torch.tensor([[[1.0, 1.0], [2.0, 2.0]]]), seen, SIZE)
    second = Parts(torch.tensor([[[1.0, 1.0], [59.0, 39.0]]]), seen, SIZE)
    assert float(ceiling((4, 4), first, second, torch.tensor([10.0]))) == 0.5


def test_staying_in_place_is_the_evidence_of_equal_cells():
    first, second = drawn(6), drawn(6, seed=5)
    reach = torch.linspace(5, 25, 6)
    identity = torch.eye(16).expand(6, 16, 16)
    expected = point_transfer(identity, (4, 4), first, second, reach)
    torch.testing.assert_close(same_place((4, 4), first, second, reach), expected)
    assert (ceiling((4, 4), first, second, reach) >= expected).all()


def test_a_pair_without_common_parts_has_no_value():
    first, second = drawn(2), drawn(2, seed=5)
    hidden = Parts(second.points, torch.zeros_like(second.visible), SIZE)
    reach = torch.ones(2)
    for found in (
        point_transfer(torch.zeros(2, 16, 16), (4, 4), first, hidden, reach),
        same_place((4, 4), first, hidden, reach),
        ceiling((4, 4), first, hidden, reach),
    ):
        assert found.isnan().all()


def test_evidence_of_another_grid_is_refused():
    first, second = drawn(2), drawn(2, seed=5)
    with pytest.raises(ValueError, match=r"pairs must be \(2, 16, 16\) for a grid of \(4, 4\), not \(2, 16, 9\)"):
        point_transfer(torch.zeros(2, 16, 9), (4, 4), first, second, torch.ones(2))
    with pytest.raises(ValueError, match=r"reach must be .* not \(2, 8, 2\), \(2, 8, 2\) and \(3,\)"):
        ceiling((4, 4), first, second, torch.ones(3))
