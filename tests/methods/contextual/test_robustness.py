from __future__ import annotations

import pytest
import torch

from draws import generator
from lookalike.methods.contextual.robustness import images_to_replace, noisy_labels, of_first_classes


def test_only_a_share_of_the_labels_is_drawn_anew():
    labels = torch.arange(10).repeat(200) * 3  # labels with gaps
    before = labels.clone()
    noisy = noisy_labels(labels, 0.2, generator())
    assert torch.equal(labels, before)
    assert noisy.dtype == labels.dtype
    assert set(noisy.tolist()) <= set(labels.tolist())
    # 400 drawn, a tenth of which is the true label again: 360 expected, standard deviation 6
    assert 330 <= (noisy != labels).sum() <= 390


def test_new_labels_are_uniform_over_the_classes():
    noisy = noisy_labels(torch.zeros(5000, dtype=torch.int64), 1.0, generator(), classes=torch.tensor([4, 7, 9, 30]))
    counts = [int((noisy == label).sum()) for label in (4, 7, 9, 30)]
    assert sum(counts) == 5000
    assert all(abs(count - 1250) < 6 * 31 for count in counts)


def test_no_noise_changes_nothing_and_a_seed_fixes_the_noise():
    labels = torch.arange(50) // 5
    assert torch.equal(noisy_labels(labels, 0.0, generator()), labels)
    assert torch.equal(noisy_labels(labels, 0.3, generator(1)), noisy_labels(labels, 0.3, generator(1)))
    assert not torch.equal(noisy_labels(labels, 0.3, generator(1)), noisy_labels(labels, 0.3, generator(2)))


@pytest.mark.parametrize(("images", "share", "expected"), [(100, 0.05, 5), (5864, 0.2, 1173), (7, 1.0, 7), (0, 0.5, 0)])
def test_images_to_replace_are_distinct_and_ascending(images, share, expected):
    chosen = images_to_replace(images, share, generator())
    assert len(chosen) == expected
    assert torch.equal(chosen, chosen.unique())
    assert torch.equal(chosen, images_to_replace(images, share, generator()))
    assert ((chosen >= 0) & (chosen < images)).all()


def test_the_first_classes_are_those_of_the_lowest_labels():
    labels = torch.tensor([9, 2, 5, 2, 11, 9])
    assert of_first_classes(labels, 2).tolist() == [False, True, True, True, False, False]
    assert of_first_classes(labels, 4).all()


def test_values_outside_their_range_are_rejected():
    labels = torch.arange(6) // 2
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"share={share}"):
            noisy_labels(labels, share, generator())
        with pytest.raises(ValueError, match=f"share={share}"):
            images_to_replace(6, share, generator())
    for count in (0, 4):
        with pytest.raises(ValueError, match=rf"count={count} is outside \[1, 3\]"):
            of_first_classes(labels, count)
    with pytest.raises(ValueError, match="images=-1"):
        images_to_replace(-1, 0.5, generator())
    for function in (lambda x: noisy_labels(x, 0.1, generator()), lambda x: of_first_classes(x, 1)):
        with pytest.raises(ValueError, match=r"\(3, 2\)"):
            function(labels.view(3, 2))
