"""Maps agree on the parts that both images show, and unrelated maps do not.

Evidence between places sends a part to the other image, as far as a grid allows.
The mass of a map inside an object is its share there, and the centre's bell is what to beat.
"""

from itertools import product

import pytest
import torch
from scipy.stats import spearmanr

from draws import generator
from lookalike.explanations.quality.cells import centre_maps
from lookalike.explanations.quality.parts import (
    FEWEST,
    Parts,
    ceiling,
    mass_beyond_centre,
    mass_inside,
    part_agreement,
    point_transfer,
    same_place,
    values_of_parts,
)

SIZE = (40, 60)


def drawn(count, parts=15, share=0.8, seed=0):
    points = torch.rand(count, parts, 2, generator=generator(seed)) * torch.tensor([SIZE[1], SIZE[0]])
    return Parts(points, torch.rand(count, parts, generator=generator(seed + 1)) < share, SIZE)


def maps(count, seed):
    return torch.randn(count, 14, 14, generator=generator(seed))


def slow_value(each, x, y):
    """Between the four nearest centres of cells; beyond the outermost ones as on them."""
    across = min(max(x * 14 / SIZE[1] - 0.5, 0), 13)
    down = min(max(y * 14 / SIZE[0] - 0.5, 0), 13)
    left, top = min(int(across), 12), min(int(down), 12)
    (a, b), (c, d) = each[top : top + 2, left : left + 2].tolist()
    right, lower = across - left, down - top
    return (a * (1 - right) + b * right) * (1 - lower) + (c * (1 - right) + d * right) * lower


def test_a_parts_value_lies_between_those_of_the_cells_around_it():
    parts, values = drawn(4), maps(4, 2)
    found = values_of_parts(values, parts)
    for row in range(4):
        for part in range(15):
            x, y = parts.points[row, part].tolist()
            assert float(found[row, part]) == pytest.approx(slow_value(values[row], x, y), abs=1e-5)


def test_agreement_is_the_correlation_over_the_parts_that_both_show():
    first, second = drawn(20, share=0.6), drawn(20, share=0.6, seed=5)
    pair = maps(20, 2), maps(20, 3)
    found = part_agreement(pair, (first, second))
    undefined = 0
    for row in range(20):
        both = first.visible[row] & second.visible[row]
        if int(both.sum()) < FEWEST:
            assert found[row].isnan()
            undefined += 1
            continue
        one, other = (
            [slow_value(each[row], *place) for place in parts.points[row][both].tolist()]
            for each, parts in zip(pair, (first, second), strict=True)
        )
        assert float(found[row]) == pytest.approx(spearmanr(one, other).statistic, abs=1e-9)
    assert 0 < undefined < 20


def test_equal_maps_of_equal_poses_agree_wholly_and_lead_by_what_a_random_partner_lacks():
    parts, each, other = drawn(50), maps(50, 2), maps(50, 3)
    agreement = part_agreement((each, each), (parts, parts))
    with_random = part_agreement((each, other), (parts, parts))
    torch.testing.assert_close(agreement, torch.ones(50).double())
    torch.testing.assert_close(agreement - with_random, 1 - with_random)
    assert float((agreement - with_random).mean()) > 0.8


def test_unrelated_maps_do_not_agree_on_average():
    found = part_agreement((maps(1000, 2), maps(1000, 3)), (drawn(1000), drawn(1000, seed=5)))
    found = found[~found.isnan()]
    error = float(found.std() / len(found) ** 0.5)
    assert len(found) > 900
    assert abs(float(found.mean())) < 4 * error


def test_the_height_of_a_map_does_not_matter():
    parts, pair = (drawn(10), drawn(10, seed=5)), (maps(10, 2), maps(10, 3))
    torch.testing.assert_close(part_agreement((7 * pair[0] - 2, pair[1]), parts), part_agreement(pair, parts))


def test_a_map_that_says_the_same_of_all_parts_has_no_agreement():
    parts = drawn(3)
    assert part_agreement((torch.ones(3, 14, 14), maps(3, 2)), (parts, parts)).isnan().all()


def test_maps_of_other_images_and_too_few_parts_are_refused():
    parts = drawn(3)
    with pytest.raises(ValueError, match="3 images need a map each, not 2"):
        values_of_parts(maps(2, 0), parts)
    with pytest.raises(ValueError, match="fewest=1 must be at least 2"):
        part_agreement((maps(3, 0), maps(3, 1)), (parts, parts), fewest=1)


def drawn_transfer(count, parts=8, seed=0):
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
    first, second, cells = drawn_transfer(6), drawn_transfer(6, seed=5), grid[0] * grid[1]
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
    first, second = drawn_transfer(5, parts=6), drawn_transfer(5, parts=6, seed=5)
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
    first, second = drawn_transfer(6), drawn_transfer(6, seed=5)
    reach = torch.linspace(5, 25, 6)
    identity = torch.eye(16).expand(6, 16, 16)
    expected = point_transfer(identity, (4, 4), first, second, reach)
    torch.testing.assert_close(same_place((4, 4), first, second, reach), expected)
    assert (ceiling((4, 4), first, second, reach) >= expected).all()


def test_a_pair_without_common_parts_has_no_value():
    first, second = drawn_transfer(2), drawn_transfer(2, seed=5)
    hidden = Parts(second.points, torch.zeros_like(second.visible), SIZE)
    reach = torch.ones(2)
    for found in (
        point_transfer(torch.zeros(2, 16, 16), (4, 4), first, hidden, reach),
        same_place((4, 4), first, hidden, reach),
        ceiling((4, 4), first, hidden, reach),
    ):
        assert found.isnan().all()


def test_evidence_of_another_grid_is_refused():
    first, second = drawn_transfer(2), drawn_transfer(2, seed=5)
    with pytest.raises(ValueError, match=r"pairs must be \(2, 16, 16\) for a grid of \(4, 4\), not \(2, 16, 9\)"):
        point_transfer(torch.zeros(2, 16, 9), (4, 4), first, second, torch.ones(2))
    with pytest.raises(ValueError, match=r"reach must be .* not \(2, 8, 2\), \(2, 8, 2\) and \(3,\)"):
        ceiling((4, 4), first, second, torch.ones(3))


def objects(count=4):
    return torch.rand(count, 28, 42, generator=generator(1)) < torch.linspace(0.2, 0.8, 42)


def test_mass_is_the_sum_over_the_objects_pixels():
    maps, masks = torch.randn(4, 14, 14, generator=generator()), objects()
    for row, found in enumerate(mass_inside(maps, masks).tolist()):
        spread = maps[row].clamp_min(0).double().repeat_interleave(2, dim=0).repeat_interleave(3, dim=1)
        assert found == pytest.approx(float(spread[masks[row]].sum() / spread.sum()), abs=1e-6)


def test_an_even_map_has_the_objects_area_inside():
    masks = objects()
    torch.testing.assert_close(
        mass_inside(torch.ones(4, 14, 14), masks), masks.double().mean(dim=(1, 2)), atol=1e-6, rtol=0
    )


def test_a_map_on_the_object_alone_has_all_its_mass_inside():
    masks = torch.zeros(2, 28, 28, dtype=torch.bool)
    masks[0, 4:10, 6:12], masks[1, :, :14] = True, True
    on, off = masks[:, ::2, ::2].float(), (~masks[:, ::2, ::2]).float()
    assert mass_inside(on - 5 * off, masks).tolist() == [1, 1]  # what is below zero does not count
    assert mass_inside(off, masks).tolist() == [0, 0]


def test_the_centres_bell_is_not_beyond_itself():
    masks = objects()
    (bell,) = centre_maps(masks[None], 14)
    assert mass_beyond_centre(bell, masks).abs().max() < 1e-7
    corner = torch.zeros(1, 28, 28, dtype=torch.bool)
    corner[0, :4, :4] = True
    found = torch.zeros(1, 14, 14)
    found[0, :2, :2] = 1
    assert float(mass_beyond_centre(found, corner)) > 0.9
    assert float(mass_beyond_centre(found, ~corner)) < -0.9


def test_a_map_with_nothing_above_zero_has_no_mass():
    assert mass_inside(torch.stack([-torch.ones(14, 14), torch.zeros(14, 14)]), objects(2)).isnan().all()


def test_maps_and_objects_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match=r"not \(4, 7, 14\) and \(4, 28, 42\)"):
        mass_inside(torch.zeros(4, 7, 14), objects())
    with pytest.raises(ValueError, match=r"not \(3, 14, 14\) and \(4, 28, 42\)"):
        mass_inside(torch.zeros(3, 14, 14), objects())
