"""Scores against loops over episodes."""

import pytest
import torch

from lookalike.segmentation import binary_iou, iou_counts, mean_iou
from lookalike.segmentation.counts import region_counts
from lookalike.segmentation.episodes import Episode
from lookalike.segmentation.scores import best_threshold, fold_scores


def test_many_masks_are_counted_as_one_by_one():
    generator = torch.Generator().manual_seed(0)
    regions = torch.rand(4, 3, 6, 5, generator=generator) > 0.5
    targets = torch.randint(0, 3, (3, 6, 5), generator=generator).to(torch.uint8)
    targets[targets == 2] = 255
    found = region_counts(regions, targets)
    expected = [[iou_counts(region, true) for region, true in zip(row, targets, strict=True)] for row in regions]
    assert found.tolist() == [[list(counts) for counts in row] for row in expected]


def drawn(ways):
    """Two folds of three classes, two draws, six episodes each."""
    pairs = [(1, 2), (1, 3), (2, 3)] * 2
    return [
        Episode(draw, fold, "q", tuple(3 * fold + label for label in labels[:ways]), (("s",),) * ways)
        for draw in range(2)
        for fold in range(2)
        for labels in pairs
    ]


@pytest.mark.parametrize("ways", [1, 2])
def test_scores_are_those_of_slow_sums(ways):
    episodes = drawn(ways)
    counts = torch.randint(1, 50, (len(episodes), ways + 1, 4), generator=torch.Generator().manual_seed(ways))
    found = fold_scores(counts, episodes)
    means = {}
    for fold in range(2):
        ratios, binaries = [], []
        for draw in range(2):
            sums, union = {}, [0] * 4
            for episode, of_episode in zip(episodes, counts.tolist(), strict=True):
                if (episode.fold, episode.draw) != (fold, draw):
                    continue
                for label, values in zip(episode.labels, of_episode, strict=False):
                    sums[label] = [a + b for a, b in zip(sums.get(label, [0] * 4), values, strict=True)]
                union = [a + b for a, b in zip(union, of_episode[-1], strict=True)]
            ratios.append(sum(tp / (tp + fp + fn) for tp, fp, fn, _ in sums.values()) / len(sums))
            tp, fp, fn, tn = union
            binaries.append((tp / (tp + fp + fn) + tn / (tn + fp + fn)) / 2)
        for name, values in (("mean_iou", ratios), ("binary_iou", binaries)):
            means[name, fold] = values
            assert found[f"{name}_fold{fold}"] == pytest.approx(sum(values) / 2, abs=1e-12)
            assert found[f"{name}_fold{fold}_std"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5, abs=1e-12)
    for name in ("mean_iou", "binary_iou"):
        of_draws = [(means[name, 0][draw] + means[name, 1][draw]) / 2 for draw in range(2)]
        assert found[f"{name}_mean"] == pytest.approx(sum(of_draws) / 2, abs=1e-12)
        assert found[f"{name}_mean_std"] == pytest.approx(abs(of_draws[0] - of_draws[1]) / 2**0.5, abs=1e-12)
    assert len(found) == 2 * 3 * 2


def test_one_draw_has_no_deviation():
    episodes = [each for each in drawn(1) if each.draw == 0]
    counts = torch.ones(len(episodes), 2, 4, dtype=torch.int64)
    found = fold_scores(counts, episodes)
    assert found["mean_iou_mean"] == pytest.approx(mean_iou([(1, 1, 1, 1)]), abs=1e-12)
    assert found["binary_iou_mean"] == pytest.approx(binary_iou((1, 1, 1, 1)), abs=1e-12)
    assert not [name for name in found if name.endswith("_std")]


def test_false_positives_where_a_class_is_absent_count():
    episode = Episode(0, 0, "q", (1,), (("s",),))
    shown, absent = torch.tensor([[4, 0, 0, 6]] * 2), torch.tensor([[0, 4, 0, 6]] * 2)
    assert fold_scores(torch.stack([shown]), [episode])["mean_iou_fold0"] == 1
    assert fold_scores(torch.stack([shown, absent]), [episode] * 2)["mean_iou_fold0"] == 0.5


def test_a_threshold_is_chosen_without_a_look_at_the_fold_itself():
    episodes = [Episode(0, fold, "q", (fold + 1,), (("s",),)) for fold in range(3)]
    good, bad = [9, 1, 0, 0], [1, 9, 0, 0]
    best_for = [0, 2, 2]  # of three heights, for the folds 0, 1 and 2
    counts = torch.tensor([[[good if place == best else bad] * 2 for place in range(3)] for best in best_for])
    assert best_threshold(counts, episodes, 0) == 2
    assert best_threshold(counts, episodes, 1) == 0  # as good as 2 on the folds 0 and 2, and lower
    with pytest.raises(ValueError, match="chosen on other folds, and there is none"):
        best_threshold(counts[:1], episodes[:1], 0)
