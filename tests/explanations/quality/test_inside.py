"""The mass of a map inside an object is its share there, and the centre's bell is what to beat."""

import pytest
import torch

from draws import generator
from lookalike.explanations.controls import centre_maps
from lookalike.explanations.quality.inside import mass_beyond_centre, mass_inside


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
