"""What the papers say of figures is decided for all of them together, by a number per seed."""

import pandas as pd

from lookalike.workflow.report.figures.parts.caption import findings
from lookalike.workflow.report.figures.parts.form import Check
from lookalike.workflow.report.figures.parts.trends import always, best_within, flat, mostly


def of_seeds(values, **given):
    return Check("x", cases=((values,),), **given)


def test_all_figures_are_decided_together():
    def verdicts(*each_per_seed):
        return [finding.verdict for finding in findings([of_seeds(each) for each in each_per_seed])]

    clear, unclear = (5.0, 5.1, 4.9), (1.0, 1.2, 0.4)
    assert verdicts(clear, unclear) == ["yes", "undecided"]
    # with more that are decided each interval may miss as often, and the fainter one is decided, too
    assert verdicts((1.0, 1.12, 0.88)) == ["yes"]
    assert verdicts((1.0, 1.12, 0.88), *[(0.0, 9.0, -9.0)] * 30) == ["undecided"] * 31
    assert verdicts(*[(1.0, 1.12, 0.88)] * 30, (0.0, 9.0, -9.0)) == ["yes"] * 30 + ["undecided"]
    assert verdicts((-5.0, -5.1, -4.9), (0.1, -0.1, 0.05), (0.0, 0.0, 0.0)) == ["no", "small", "no"]
    assert verdicts((5.0,)) == ["undecided"]


def test_a_check_without_a_margin_is_never_small():
    [finding] = findings([of_seeds((0.01, -0.01, 0.0), margin=0, unit="below 2")])
    assert finding.verdict == "undecided"
    assert finding.words.startswith("+0 below 2 (")
    assert finding.words.endswith("3 seeds, no margin)")
    [finding] = findings([of_seeds((0.01, -0.01, 0.0), margin=1)])
    assert finding.words.endswith("3 seeds, margin 1)")
    [finding] = findings([of_seeds((0.01, -0.01, 0.0))])
    assert finding.words.endswith("3 seeds)")


def test_what_three_of_ten_seeds_have_decided_stays_and_says_what_all_of_them_come_to():
    first = (5.0, 5.1, 4.9)
    few = findings([of_seeds(first)])[0]
    later = findings([of_seeds((*first, *[1.0] * 7))])[0]
    assert (few.verdict, later.verdict) == ("yes", "yes")
    assert later.words == few.words.replace("3 seeds", "the first 3 of 10 seeds; over all +2.2")


def test_a_claim_of_several_cases_is_decided_where_all_of_them_are():
    cases = [pd.Series([5.0, 5.1, 4.9]), pd.Series([3.0, 3.1, 2.9]), pd.Series([4.0, 4.1, 3.9])]
    [finding] = findings([always(cases, "x")])
    assert finding.verdict == "yes"
    [finding] = findings([always([*cases, pd.Series([0.0, 9.0, -3.0])], "x")])
    assert finding.verdict == "undecided"
    [finding] = findings([always([*cases, pd.Series([-5.0, -5.1, -4.9])], "x")])
    assert finding.verdict == "no"
    [finding] = findings([mostly([*cases, pd.Series([0.0, 9.0, -3.0])], "x")])
    assert finding.verdict == "undecided"  # of four, with an error that the others leave to each
    [finding] = findings([mostly([*cases, *cases, pd.Series([3.0, 4.0, 2.0])], "x")])
    assert finding.verdict == "yes"


def test_a_check_without_anything_to_compare_with_is_undecided_and_says_so():
    values = pd.DataFrame({0: [1.0, 2.0], 1: [1.1, 2.1]}, index=[0.5, 0.9])
    for check in (best_within(values, [0.5, 0.9], "x"), best_within(values, [], "x"), flat(values.iloc[:1], 2, "x")):
        assert check.says.endswith("(undecided, as there is nothing to compare with)")
        assert [finding.verdict for finding in findings([check])] == ["undecided"]
