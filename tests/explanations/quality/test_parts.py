"""Maps agree on the parts that both images show, and unrelated maps do not."""

import pytest
import torch
from scipy.stats import spearmanr

from draws import generator
from lookalike.explanations.quality.annotations import Parts
from lookalike.explanations.quality.parts import FEWEST, part_agreement, values_of_parts

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
