import json

import pytest

from lookalike.workflow.report.statistics.verdict import OF_CLAIMS, OF_FIGURES, OF_NUMBERS, Verdict, counted


def test_every_possible_verdict_is_counted_in_its_order_whatever_was_reached():
    counts = counted(["undecided", "holds", "undecided"], OF_CLAIMS)
    expected = [("holds", 1), ("does not hold", 0), ("small", 0), ("undecided", 2), ("not tested", 0), ("not run", 0)]
    assert list(counts.items()) == expected
    assert set(counted([], OF_NUMBERS).values()) == {0}


def test_a_word_that_no_count_would_show_is_refused():
    with pytest.raises(ValueError, match="verdict 'holds' is none of yes, no, small, undecided, without seeds: yes"):
        counted(["yes", Verdict.HOLDS], OF_FIGURES)


def test_a_verdict_reads_the_same_in_data_and_in_text():
    assert json.dumps([Verdict.FIXED_YES, Verdict.FAILS]) == '["without seeds: yes", "does not hold"]'
    assert f"{Verdict.FAILS}" == str(Verdict.FAILS) == "does not hold"
