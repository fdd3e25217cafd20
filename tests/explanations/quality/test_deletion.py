"""Deletion finds what a margin hangs on: nothing for random maps, the optimum for exact ones of a linear model."""

from itertools import permutations

import pytest
import torch

from draws import generator
from lookalike.explanations.quality.cells import cell_order, pooled
from lookalike.explanations.quality.deletion import (
    Deletion,
    blurred,
    cosines,
    margin_between,
    margin_deletion,
    normalised,
    plain,
)

SIZE = 28


def linear(count=6, seed=0):
    """Anchors, a margin that is linear in their pixels, and a substitute."""
    images = torch.randn(count, 3, SIZE, SIZE, generator=generator(seed))
    weight = torch.randn(3, SIZE, SIZE, generator=generator(seed + 1)).double()
    return images, lambda anchors: (anchors.double() * weight).sum(dim=(1, 2, 3)), weight


def of_patches(weight, images, substitute, side):
    """What each patch adds to a linear margin, ``(N, side, side)``."""
    added = (weight * (images - substitute).double()).sum(dim=1)
    return (added.unflatten(2, (side, -1)).unflatten(1, (side, -1))).sum(dim=(2, 4))


def slow_curve(margin, image, substitute, order, counts, side):
    """Margins of one image, patch by patch."""
    patch = SIZE // side
    curve = []
    for count in counts:
        damaged = image.clone()
        for cell in order[:count]:
            top, left = patch * (int(cell) // side), patch * (int(cell) % side)
            here = (slice(None), slice(top, top + patch), slice(left, left + patch))
            damaged[here] = substitute[here]
        curve.append(float(margin(damaged[None])))
    return curve


def slow_area(curve, shares):
    return sum((shares[k + 1] - shares[k]) * (curve[k] + curve[k + 1]) / 2 for k in range(len(shares) - 1))


def test_curves_are_those_of_replacing_patch_by_patch():
    images, margin, _ = linear(3)
    substitute = blurred(images)
    maps = torch.randn(3, 14, 14, generator=generator(5))
    found = margin_deletion(lambda some: margin(some).tanh(), images, substitute, maps, generator=generator(7))
    counts = [round(12.25 * step) for step in range(17)]
    torch.testing.assert_close(found.shares, torch.tensor(counts).double() / 196)
    for row, order in enumerate(cell_order(pooled(maps), generator(7))):
        most, least = (
            slow_curve(lambda some: margin(some).tanh(), images[row], substitute[row], each, counts, 14)
            for each in (order, order.flip(0))
        )
        assert found.most[row].tolist() == pytest.approx(most, abs=1e-9)
        assert found.least[row].tolist() == pytest.approx(least, abs=1e-9)
        shares = [count / 196 for count in counts]
        assert float(found.area[row]) == pytest.approx(slow_area(least, shares) - slow_area(most, shares), abs=1e-9)
        assert float(found.whole[row]) == pytest.approx(most[0] - most[-1], abs=1e-9)


def test_no_order_of_four_patches_beats_that_of_exact_attributions():
    images, margin, weight = linear(4)
    substitute = plain(images, torch.tensor([0.1, -0.2, 0.3]))
    exact = of_patches(weight, images, substitute, 2)
    options = {"generator": generator(), "side": 2, "steps": 4}
    reached = margin_deletion(margin, images, substitute, exact.float(), **options).area
    areas = []
    for order in permutations(range(4)):
        maps = torch.empty(4).index_put_((torch.tensor(order),), torch.arange(4, 0, -1).float())
        areas.append(margin_deletion(margin, images, substitute, maps.view(1, 2, 2).expand(4, 2, 2), **options).area)
    torch.testing.assert_close(reached, torch.stack(areas).amax(dim=0))
    assert (torch.stack(areas).amin(dim=0) < 0).all()


@pytest.mark.parametrize("substituted", ["blur", "mean"])
def test_exact_attributions_of_a_linear_model_reach_the_optimal_area(substituted):
    images, margin, weight = linear()
    substitute = blurred(images) if substituted == "blur" else plain(images, torch.zeros(3))
    exact = of_patches(weight, images, substitute, 14)
    found = margin_deletion(margin, images, substitute, exact.float(), generator=generator(), steps=196)
    # The c-th largest contribution is missing from c / 196 on in one curve and from 1 - c / 196 on in the other.
    ordered = exact.flatten(1).sort(dim=1, descending=True).values
    lead = 1 - (2 * torch.arange(196) + 1) / 196
    torch.testing.assert_close(found.area, (ordered * lead).sum(dim=1), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(found.whole, exact.sum(dim=(1, 2)), atol=1e-6, rtol=1e-6)
    other = margin_deletion(margin, images, substitute, (-exact).float(), generator=generator(), steps=196)
    torch.testing.assert_close(other.area, -found.area)


def test_random_maps_have_no_area_on_average():
    images, margin, _ = linear(400)
    maps = torch.rand(400, 14, 14, generator=generator(2))
    found = margin_deletion(
        lambda some: margin(some).tanh(), images, plain(images, torch.ones(3)), maps, generator=generator(), steps=4
    )
    error = float(found.area.std() / 400**0.5)
    assert error > 0
    assert abs(float(found.area.mean())) < 4 * error


def test_a_map_that_says_nothing_has_no_area_on_average_either():
    images, margin, _ = linear(400)
    found = margin_deletion(margin, images, -images, torch.zeros(400, 7, 7), generator=generator(), steps=4)
    assert abs(float(found.area.mean())) < 4 * float(found.area.std() / 400**0.5)


def test_a_monotone_change_of_a_map_changes_nothing():
    images, margin, _ = linear()
    maps = torch.randn(6, 14, 14, generator=generator(3))
    one, other = (
        margin_deletion(margin, images, blurred(images), each, generator=generator()) for each in (maps, maps.exp())
    )
    assert torch.equal(one.most, other.most) and torch.equal(one.least, other.least)


def test_signs_of_a_map_count():
    images, margin, weight = linear()
    substitute = plain(images, torch.zeros(3))
    exact = of_patches(weight, images, substitute, 14).float()
    signed, clipped = (
        margin_deletion(margin, images, substitute, maps, generator=generator()).area
        for maps in (exact, exact.clamp_min(0))
    )
    assert (signed > clipped).all()


def test_a_margin_is_that_of_cosines_or_of_distances_with_their_sign_changed():
    anchor, positive, negative = torch.randn(3, 5, 3, 4, 4, generator=generator())
    embedded = []

    def embed(images):
        embedded.append(len(images))
        return images.flatten(1)

    margin = margin_between(embed, cosines, positive, negative)
    expected = torch.cosine_similarity(anchor.flatten(1), positive.flatten(1)) - torch.cosine_similarity(
        anchor.flatten(1), negative.flatten(1)
    )
    torch.testing.assert_close(margin(anchor).float(), expected)
    margin(anchor)
    assert len(embedded) == 4  # positives and negatives once
    farther = margin_between(embed, lambda one, other: -(one - other).norm(dim=1), positive, negative)
    nearer = (anchor - positive).flatten(1).norm(dim=1) < (anchor - negative).flatten(1).norm(dim=1)
    assert torch.equal(farther(anchor) > 0, nearer)


def test_normalised_areas_do_not_depend_on_the_scale_of_the_margin():
    images, margin, _ = linear()
    maps = torch.randn(6, 14, 14, generator=generator(3))
    one, other = (
        margin_deletion(each, images, blurred(images), maps, generator=generator())
        for each in (margin, lambda some: 10 * margin(some) + 3)
    )
    torch.testing.assert_close(normalised(one.area, one.whole), normalised(other.area, other.whole))
    expected = one.area / (sum(abs(float(each)) for each in one.whole) / 6)
    torch.testing.assert_close(normalised(one.area, one.whole), expected)


def test_an_area_of_straight_curves_is_known():
    shares = torch.tensor([0.0, 0.25, 1.0]).double()
    found = Deletion(shares, torch.tensor([[4.0, 0.0, 0.0]]).double(), torch.tensor([[4.0, 4.0, 0.0]]).double())
    assert float(found.area) == pytest.approx(0.25 * (4 - 2) + 0.75 * 2)
    assert float(found.whole) == 4


def test_substitutes_are_flat_or_smooth():
    images = torch.randn(2, 3, SIZE, SIZE, generator=generator())
    flat = plain(images, torch.tensor([1.0, 2.0, 3.0]))
    assert torch.equal(flat.amin(dim=(2, 3)), flat.amax(dim=(2, 3)))
    assert flat[1, :, 0, 0].tolist() == [1, 2, 3]
    smooth = blurred(images)
    assert float(smooth.diff(dim=3).abs().mean()) < 0.5 * float(images.diff(dim=3).abs().mean())


@pytest.mark.parametrize(("side", "variance"), [(224, 50), (112, 12.5)])
def test_a_blur_is_as_wide_in_proportion_to_the_image(side, variance):
    point = torch.zeros(1, 1, side, side)
    point[..., side // 2, side // 2] = 1.0
    found = (blurred(point)[0, 0].sum(dim=0) * (torch.arange(side) - side // 2).square()).sum()
    assert float(found) == pytest.approx(variance, rel=0.02)  # less what lies beyond the kernel


def test_bad_shapes_and_steps_are_refused():
    images, margin, _ = linear(2)
    maps = torch.zeros(2, 7, 7)
    options = {"generator": generator()}
    with pytest.raises(ValueError, match=r"anchors \(2, 3, 28, 28\) need a substitute .* not \(2, 3, 27, 28\)"):
        margin_deletion(margin, images, images[:, :, 1:], maps, **options)
    with pytest.raises(ValueError, match=r"steps=5 is outside \[1, 4\], the number of patches"):
        margin_deletion(margin, images, images, maps, side=2, steps=5, **options)
    with pytest.raises(ValueError, match=r"margin must return \(2,\).* not \(\)"):
        margin_deletion(lambda some: some.sum(), images, images, maps, **options)
    with pytest.raises(ValueError, match=r"margins change by 0.0 .* must be above 0"):
        normalised(torch.ones(2), torch.zeros(2))
    with pytest.raises(ValueError, match=r"colour has shape \(1,\), it must be \(3,\)"):
        plain(images, torch.zeros(1))
