from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lookalike.methods.sam.erasing import Erasing, erase, frozen_batch_norm, read_maps


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


def test_masked_images_leave_the_running_statistics_unless_asked_to_enter_them(network, draw):
    trunk, head = network(batch_norm=True)
    images = draw(3, 4, 3, 8, 6, seed=3)
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
