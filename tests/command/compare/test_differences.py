"""Two lists of runs beside each other."""

from statistics import mean, stdev

import pytest

from lookalike.command.compare.differences import differing, metric_differences, metrics_of_one, pairs
from lookalike.command.compare.runs import Run


def run(seed=0, dataset="birds", score=0.5, **more):
    return Run("margin", dataset, seed, {"train.loss.name": "margin"}, {}, {"best": {"R@1": score, **more}, "last": {}})


def test_runs_are_paired_by_data_set_and_seed_and_the_others_are_named():
    first = [run(0), run(2), run(1), run(0, "shop"), run(0, "wild")]
    second = [run(1), run(3), run(2), run(0, "shop")]
    birds, shop = pairs(first, second)
    assert [each.seed for each in birds.first] == [each.seed for each in birds.second] == [1, 2]
    assert birds.alone == [0, 3]
    assert [each.dataset for each in (*shop.first, *shop.second)] == ["shop", "shop"]


def test_two_single_runs_are_a_pair_whatever_their_data_set_and_seed():
    (found,) = pairs([run(0)], [run(1, "shop")])
    assert (found.first[0].dataset, found.second[0].dataset, found.alone) == ("birds", "shop", [])


@pytest.mark.parametrize(
    ("second", "message"),
    [([run(0, "shop"), run(0, "wild")], "no data set in common"), ([run(1), run(2)], "no seed in common: 0 and 1, 2")],
)
def test_runs_that_do_not_belong_together_are_refused(second, message):
    with pytest.raises(ValueError, match=message):
        list(pairs([run(0)], second))


def test_differences_are_the_second_minus_the_first_with_students_interval():
    one, other = [0.5, 0.7, 0.6], [0.8, 0.75, 0.9]
    (found,) = pairs([run(s, score=v) for s, v in enumerate(one)], [run(s, score=v) for s, v in enumerate(other)])
    (name, (first, second, difference)) = next(iter(metric_differences(found, "best").items()))
    each = [b - a for a, b in zip(one, other, strict=True)]
    half = 4.302652729911275 * stdev(each) / 3**0.5  # Student, 2 degrees of freedom, 97.5 %
    assert (name, difference.n) == ("R@1", 3)
    assert (first, second) == pytest.approx((mean(one), mean(other)), abs=1e-12)
    assert (difference.mean, difference.low, difference.high) == pytest.approx(
        (mean(each), mean(each) - half, mean(each) + half), abs=1e-9
    )


def test_metrics_that_one_side_lacks_are_named_and_cut_offs_stand_in_order():
    (found,) = pairs([run(**{"R@10": 0.9, "R@2": 0.6, "mAP": 0.3})], [run(**{"R@10": 0.9, "R@2": 0.6, "RP": 0.4})])
    assert list(metric_differences(found, "best")) == ["R@1", "R@2", "R@10"]
    assert metrics_of_one(found, "best") == (["mAP"], ["RP"])


def test_values_of_several_seeds_are_all_shown_and_a_missing_one_too():
    first = [{"code": "a", "seed": "0"}, {"code": "b", "seed": "1"}]
    second = [{"code": "a", "epochs": "4", "seed": "0"}, {"code": "a", "epochs": "4", "seed": "1"}]
    assert differing(first, second) == {"code": ("a | b", "a"), "epochs": ("-", "4")}
