"""Controls look at the image at most, never at its partner."""

import torch

from lookalike.explanations.controls import centre_maps, edge_maps, random_maps


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
