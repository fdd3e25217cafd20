"""The sentence of a recommendation in each honest case."""

import re

import pytest

from lookalike.app.own.recommend.verdict import Case, recommend
from recommended_rows import mapped, matched, row, untrained


def test_a_trained_row_that_is_decidedly_better_is_recommended_with_its_interval():
    found = recommend([untrained(), matched(), row("ProxyAnchor", 60.0), row("Margin", 55.0)])
    assert found.case == Case.TRAINED
    assert re.fullmatch(
        r"Take ProxyAnchor \(net\): R@1 60\.0 % on 20 classes held out, \+10\.0 points \(\+\d\.\d to \+1\d\.\d\) "
        r"against the best untrained row, untrained \(net\)\.",
        found.sentence,
    )
    assert [each.row.label for each in found.compared][:2] == ["ProxyAnchor", "Margin"]
    assert "10.0 ms a query (10.0 untrained) and 2.0 minutes of training" in found.notes[-1]


def test_a_cheaper_row_that_is_not_decidedly_worse_is_named():
    slow = row("ProxyAnchor-AVSL", 60.0, query_ms=50.0)
    found = recommend([untrained(), matched(), slow, row("ProxyAnchor", 59.9), row("Margin", 52.0)])
    assert found.row is slow
    assert "Not decidedly worse: ProxyAnchor." in found.notes
    assert "Of these cheaper at query time than its 50.0 ms: ProxyAnchor (10.0 ms)." in found.notes


def test_where_training_gains_nothing_the_untrained_features_are_the_answer():
    found = recommend([untrained(), matched(), row("ProxyAnchor", 40.0), row("Margin", 50.1, spread=0.1)])
    assert found.case == Case.NO_GAIN
    assert found.sentence.startswith(
        "Take the untrained features of net: R@1 50.0 % on 20 classes held out; training gained nothing: the best of "
        "2 trained rows, Margin (net), +0.1 points ("
    )


def test_structural_matching_is_recommended_only_where_it_is_decidedly_better():
    better = recommend([untrained(), matched(60.0), row("ProxyAnchor", 50.0)])
    assert (better.case, better.row.structural) == (Case.NO_GAIN, True)
    assert better.sentence.startswith("Take the untrained features of net with structural matching: R@1 60.0 %")
    open_ = recommend([untrained(spread=8), matched(51.0, spread=8), row("ProxyAnchor", 30.0)])
    assert not open_.row.structural and open_.reference.structural
    assert open_.notes[0].startswith(
        "Structural matching adds 1.0 points of R@1 to untrained (net), which is not decided"
    )


def test_no_interval_is_wider_than_percentages_allow_and_two_unlike_seeds_tell_nothing():
    apart = row("ProxyAnchor", 50.0, seeds=2)
    apart.of_classes["R@1"][:] += [[10.0], [-10.0]]
    found = recommend([untrained(), apart])
    assert found.case == Case.UNDECIDED
    assert found.sentence.endswith(
        "ProxyAnchor (net), +0.0 points (-100.0 to +100.0): with 20 classes and 2 seeds no difference can be told."
    )


@pytest.mark.parametrize(("spread", "known"), [(0.5, "decidedly so"), (8, "not decidedly so")])
def test_a_linear_map_costs_nothing_at_query_time_and_is_taken_where_it_is_best(spread, known):
    rows = [untrained(spread=spread), mapped(spread=spread), matched(52.0, spread=spread)]
    found = recommend([*rows, row("ProxyAnchor", 50.0)])
    assert found.row is found.reference is rows[1]
    assert found.sentence.startswith(
        "Take the untrained features of net after relevant component analysis (RCA): R@1 53.0 %"
    )
    assert found.notes[0] == f"RCA adds 3.0 points of R@1 to untrained (net), {known}."
    slower = recommend([rows[0], rows[1], matched(53.05, spread=spread), row("ProxyAnchor", 50.0)])
    assert (slower.row.map, slower.reference.structural) == ("rca", True)


def test_too_few_classes_to_decide_say_which_difference_could_be_told():
    rows = [untrained(classes=5), matched(40.0, classes=5), row("ProxyAnchor", 56.0, classes=5, spread=12)]
    found = recommend(rows)
    assert found.case == Case.UNDECIDED
    assert re.search(
        r"^Take the untrained features of net: .* Whether training gains is not decided: ProxyAnchor \(net\), \+6\.0 "
        r"points \(-\d+\.\d to \+\d+\.\d\): with 5 classes and 3 seeds a difference below about \d+ points cannot be "
        r"told\.$",
        found.sentence,
    )


def test_nothing_trained_says_so():
    found = recommend([untrained(), matched(30.0)])
    assert found.case == Case.NOT_TRAINED
    assert found.sentence.endswith("nothing was trained, so nothing says whether training would gain.")


def test_trained_rows_are_held_against_the_best_of_all_networks():
    rows = [untrained(network="small"), matched(network="small"), untrained(70.0, network="large"), row("Margin", 60.0)]
    found = recommend(rows)
    assert found.reference.network == "large"
    assert found.sentence.startswith("Take the untrained features of large: R@1 70.0 %")


def test_without_an_untrained_row_there_is_no_answer():
    with pytest.raises(ValueError, match="no row is untrained"):
        recommend([row("Margin", 50.0)])


def test_a_gain_of_structural_matching_that_is_decidedly_small_is_called_so():
    rows = [untrained(classes=100, spread=3), matched(50.2, classes=100, spread=3)]
    found = recommend([*rows, row("ProxyAnchor", 30.0, classes=100)])
    assert not found.row.structural
    assert "which is decidedly small" in found.notes[0]
