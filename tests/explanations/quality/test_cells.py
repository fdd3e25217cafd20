"""Maps of every size come to one grid by area, and equal cells are ordered by the seed alone.

Rank correlations of many rows are those of SciPy, row by row.
"""

from math import lcm

import pytest
import torch
from scipy.stats import spearmanr

from draws import generator
from lookalike.explanations.quality.cells import (
    GRID,
    cell_order,
    centre_maps,
    edge_maps,
    on_pixels,
    pooled,
    random_maps,
    spearman,
)


def slowly_pooled(maps, side):
    """Every pixel cut into whole parts of a cell, which are averaged."""
    height, width = (lcm(size, side) for size in maps.shape[1:])
    fine = maps.repeat_interleave(height // maps.shape[1], dim=1).repeat_interleave(width // maps.shape[2], dim=2)
    return torch.stack(
        [
            torch.stack([block.mean(dim=(1, 2)) for block in strip.chunk(side, dim=2)], dim=1)
            for strip in fine.chunk(side, dim=1)
        ],
        dim=1,
    )


@pytest.mark.parametrize("size", [(4, 4), (7, 7), (24, 20), (28, 28), (56, 40)])
@pytest.mark.parametrize("side", [7, 14])
def test_a_pixel_counts_by_the_part_of_it_that_lies_in_a_cell(size, side):
    maps = torch.randn(2, *size, generator=generator())
    torch.testing.assert_close(pooled(maps, side), slowly_pooled(maps, side), atol=1e-6, rtol=1e-5)


def test_pooling_keeps_the_mean_and_a_map_that_fits_already():
    maps = torch.randn(3, 24, 17, generator=generator())
    torch.testing.assert_close(pooled(maps).mean(dim=(1, 2)), maps.mean(dim=(1, 2)), atol=1e-6, rtol=1e-5)
    fitting = torch.randn(3, GRID, GRID, generator=generator())
    assert torch.equal(pooled(fitting), fitting)


def test_places_of_one_coarse_location_stay_equal():
    cells = pooled(torch.randn(1, 7, 7, generator=generator()))[0]
    assert len(cells.unique()) == 49
    assert torch.equal(cells[::2, ::2], cells[1::2, 1::2])
    assert len(pooled(torch.full((1, 50, 50), 0.3)).unique()) == 1


def test_cells_are_ordered_from_high_to_low_and_all_named_once():
    maps = torch.randn(5, 3, 4, generator=generator())
    order = cell_order(maps, generator())
    assert torch.equal(order.sort(dim=1).values, torch.arange(12).expand(5, 12))
    assert (maps.flatten(1).gather(1, order).diff(dim=1) < 0).all()


def test_equal_cells_come_in_every_order():
    maps = torch.tensor([[[1.0, 0.0], [1.0, 2.0]]]).expand(2000, 2, 2)
    order = cell_order(maps, generator())
    assert (order[:, 0] == 3).all() and (order[:, 3] == 1).all()
    share = (order[:, 1] == 0).double().mean()
    assert abs(float(share) - 0.5) < 4 * 0.5 / 2000**0.5
    assert torch.equal(order, cell_order(maps, generator()))


def test_a_monotone_change_of_a_map_changes_no_order():
    maps = torch.randint(0, 5, (6, 7, 7), generator=generator()).double()
    assert torch.equal(cell_order(maps, generator()), cell_order((3 * maps).exp() - 7, generator()))


def test_pixels_belong_to_the_cell_of_their_centre():
    cells = torch.rand(2, 14, 14, generator=generator()) < 0.5
    found = on_pixels(cells, (24, 31))
    for row in range(24):
        for column in range(31):
            here = cells[:, int((row + 0.5) * 14 / 24), int((column + 0.5) * 14 / 31)]
            assert torch.equal(found[:, row, column], here)


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        (torch.zeros(7, 7), r"maps must be \(N, h, w\) float, not \(7, 7\) torch.float32"),
        (torch.zeros(2, 7, 7, dtype=torch.int64), "not .* torch.int64"),
        (torch.tensor([0.0, 0.0, 1.0, torch.nan]).view(2, 1, 2), r"maps\[1\] holds NaN or infinity"),
    ],
)
def test_what_is_no_map_is_refused(maps, said):
    with pytest.raises(ValueError, match=said):
        pooled(maps)
    with pytest.raises(ValueError, match=said):
        cell_order(maps, generator())


def test_grids_without_cells_or_with_more_cells_than_pixels_are_refused():
    with pytest.raises(ValueError, match="side=0 must be at least 1"):
        pooled(torch.zeros(1, 4, 4), 0)
    with pytest.raises(ValueError, match=r"size=\(14, 12\) is too small for \(14, 14\) cells"):
        on_pixels(torch.ones(1, 14, 14, dtype=torch.bool), (14, 12))


@pytest.mark.parametrize("levels", [3, 1000])
def test_rows_are_correlated_as_scipy_does(levels):
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randint(0, levels, (2, 20, 15), generator=generator).double()
    kept = torch.rand(20, 15, generator=generator) < 0.6
    found, of_all = spearman(first, second, kept), spearman(first, second)
    for row in range(20):
        expected = spearmanr(first[row][kept[row]], second[row][kept[row]]).statistic
        assert float(found[row]) == pytest.approx(expected, abs=1e-12)
        assert float(of_all[row]) == pytest.approx(spearmanr(first[row], second[row]).statistic, abs=1e-12)


def test_what_is_not_kept_does_not_count():
    first, second = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(1))
    kept = torch.arange(9).expand(6, 9) < 5
    other = torch.where(kept, second, 100.0)
    assert torch.equal(spearman(first, second, kept), spearman(first, other, kept))


def test_a_row_without_an_order_has_no_correlation():
    values = torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    assert spearman(values, values).isnan().tolist() == [True, False]
    assert spearman(values, values, torch.tensor([[True, False, False]] * 2)).isnan().all()


def test_rows_that_do_not_fit_or_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"all be \(N, M\), not \(2, 3\), \(2, 4\), \(2, 3\)"):
        spearman(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="finite numbers only"):
        spearman(torch.tensor([[0.0, torch.nan]]), torch.zeros(1, 2))


def images():
    return torch.randn(2, 3, 3, 24, 24, generator=torch.Generator().manual_seed(0))


def test_all_have_a_map_for_each_image():
    for maps in (random_maps(images(), 7, 0), centre_maps(images(), 7), edge_maps(images(), 7)):
        assert [tuple(each.shape) for each in maps] == [(3, 7, 7)] * 2
        assert all((each >= 0).all() for each in maps)


def test_random_maps_follow_their_seed():
    first, again, other = (random_maps(images(), 7, seed)[1] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_bell_is_highest_in_the_middle_and_alike_on_all_sides():
    bell = centre_maps(images(), 7)[0][0]
    assert bell.argmax() == 24
    torch.testing.assert_close(bell, bell.flip(0))
    torch.testing.assert_close(bell, bell.T)


def test_edges_lie_where_the_brightness_jumps():
    flat = torch.zeros(1, 1, 3, 24, 24)
    flat[..., 12:] = 1.0
    edges = edge_maps(flat, 6)[0][0]
    assert edges[:, 2:4].min() > 0
    assert edges[:, :2].max() == 0 and edges[:, 4:].max() == 0
