from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lookalike.segmentation import binary_iou, iou_counts, mean_iou


def counts_by_loops(prediction: Tensor, target: Tensor, ignore: int) -> tuple[int, int, int, int]:
    tp = fp = fn = tn = 0
    for predicted, true in zip(prediction.flatten().tolist(), target.flatten().tolist(), strict=True):
        if true == ignore:
            continue
        if predicted and true:
            tp += 1
        elif predicted:
            fp += 1
        elif true:
            fn += 1
        else:
            tn += 1
    return tp, fp, fn, tn


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("ignore", [255, 7])
def test_counts_follow_the_definition_pixel_by_pixel(dtype, ignore):
    generator = torch.Generator().manual_seed(0)
    prediction = torch.randint(0, 2, (2, 9, 7), generator=generator)
    target = torch.randint(0, 3, (2, 9, 7), generator=generator)
    target[target == 2] = ignore
    expected = counts_by_loops(prediction, target, ignore)
    assert all(count > 0 for count in expected)
    assert iou_counts(prediction.to(dtype), target, ignore) == expected
    assert sum(expected) == int((target != ignore).sum())


def test_void_is_left_out_whatever_was_predicted_there():
    target = torch.tensor([1, 0, 255, 255], dtype=torch.uint8)
    assert iou_counts(torch.tensor([1, 0, 1, 0]), target) == (1, 0, 0, 1)
    assert iou_counts(torch.tensor([1, 0, 0, 255]), target) == (1, 0, 0, 1)
    assert iou_counts(torch.tensor([1, 1]), torch.tensor([255, 255])) == (0, 0, 0, 0)


def test_counts_of_parts_add_up_to_those_of_the_whole():
    generator = torch.Generator().manual_seed(1)
    prediction, target = (torch.randint(0, 2, (6, 5, 5), generator=generator) for _ in range(2))
    parts = torch.tensor([iou_counts(p, t) for p, t in zip(prediction, target, strict=True)])
    assert tuple(parts.sum(dim=0).tolist()) == iou_counts(prediction, target)


def test_mean_iou_averages_the_ratios_of_the_classes():
    counts = [(3, 1, 2, 94), (10, 0, 10, 0), (0, 5, 5, 90)]
    expected = (3 / 6 + 10 / 20 + 0 / 10) / 3
    assert mean_iou(counts) == pytest.approx(expected, abs=1e-15)
    assert mean_iou(torch.tensor(counts)) == pytest.approx(expected, abs=1e-15)
    assert mean_iou(torch.tensor(counts).flip(0)) == pytest.approx(expected, abs=1e-15)


def test_mean_iou_ignores_how_much_background_there_is():
    assert mean_iou([(3, 1, 2, 0)]) == mean_iou([(3, 1, 2, 10**9)])


def test_a_class_that_neither_occurs_nor_is_predicted_is_left_out():
    assert mean_iou([(1, 1, 0, 8), (0, 0, 0, 10)]) == 0.5
    assert mean_iou([(1, 1, 0, 8), (0, 1, 0, 9)]) == 0.25


def test_binary_iou_is_the_mean_of_both_sides():
    assert binary_iou((3, 1, 2, 94)) == pytest.approx((3 / 6 + 94 / 97) / 2, abs=1e-15)
    assert binary_iou(torch.tensor([3, 1, 2, 94])) == binary_iou((3, 1, 2, 94))
    assert binary_iou((94, 2, 1, 3)) == binary_iou((3, 1, 2, 94))


def test_binary_iou_is_that_of_one_side_where_the_other_is_empty():
    assert binary_iou((0, 0, 0, 10)) == 1
    assert binary_iou((7, 0, 0, 0)) == 1
    assert binary_iou((0, 2, 0, 8)) == pytest.approx(0.8 / 2)


def test_a_perfect_and_a_wrong_prediction_are_at_the_ends():
    target = torch.tensor([[1, 0], [0, 1]])
    perfect, wrong = iou_counts(target, target), iou_counts(1 - target, target)
    assert (mean_iou([perfect]), binary_iou(perfect)) == (1, 1)
    assert (mean_iou([wrong]), binary_iou(wrong)) == (0, 0)


def test_large_counts_stay_exact():
    assert mean_iou([(2**40, 2**40, 0, 0)]) == 0.5


def test_input_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match=r"\(4,\), target \(5,\)"):
        iou_counts(torch.zeros(4), torch.zeros(5))
    with pytest.raises(ValueError, match="prediction holds 2, 0 and 1 are allowed"):
        iou_counts(torch.tensor([2, 0]), torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="target holds 15"):
        iou_counts(torch.tensor([1, 0]), torch.tensor([15, 0]))
    with pytest.raises(ValueError, match="ignore=1 must be neither 0 nor 1"):
        iou_counts(torch.tensor([1]), torch.tensor([0]), ignore=1)
    with pytest.raises(ValueError, match=r"\(classes, 4\)"):
        mean_iou(torch.zeros(3, 3))
    with pytest.raises(ValueError, match="smallest value -1"):
        mean_iou([(1, -1, 0, 0)])
    with pytest.raises(ValueError, match="none of the 2 classes occurs"):
        mean_iou([(0, 0, 0, 5), (0, 0, 0, 3)])
    with pytest.raises(ValueError, match="none of the 0 classes"):
        mean_iou(torch.zeros(0, 4))
    with pytest.raises(ValueError, match=r"\(tp, fp, fn, tn\)"):
        binary_iou((1, 2, 3))
    with pytest.raises(ValueError, match="no ratio"):
        binary_iou((0, 0, 0, 0))
