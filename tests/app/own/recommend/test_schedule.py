"""Which methods fit is told by seconds alone: rather few methods than one seed, in an order that no result moves."""

from lookalike.app.own.recommend.schedule import BUDGETS, RESERVE, Candidate, fitting

THREE = [Candidate("a", 0.1, 5.0), Candidate("b", 0.1, 5.0), Candidate("c", 0.3, 5.0)]


def test_much_time_gives_every_method_all_batches():
    assert fitting(THREE, 36000) == (BUDGETS[0], ["a", "b", "c"], {})


def test_less_time_gives_fewer_methods_and_then_fewer_batches_but_never_one_seed():
    reached = [fitting(THREE, seconds).budget for seconds in range(20, 3000, 10)]
    budgets = [BUDGETS.index(each) for each in reached if each is not None]
    assert budgets == sorted(budgets, reverse=True)
    assert set(budgets) >= {0, len(BUDGETS) - 1}
    assert reached[0] is None
    assert min(budget.seeds for budget in BUDGETS) == 2


def test_a_method_that_is_too_long_makes_way_for_later_ones_and_says_what_it_takes():
    slow = [Candidate("slow", 9.0, 5.0), *THREE]
    schedule = fitting(slow, 3600)
    assert schedule.chosen == ["a", "b", "c"]
    assert schedule.left_out == {"slow": "takes 5.6 h for 3 seeds of 500 batches"}


def test_trainings_side_by_side_take_no_less_than_the_longest():
    (one,) = [Candidate("a", 1.0, 0.0)]
    assert fitting([one], RESERVE * 1000 - 1, workers=64).budget != BUDGETS[0]
    assert fitting([one], RESERVE * 1000, workers=64).budget == BUDGETS[0]


def test_what_cannot_run_is_told_and_what_does_not_fit_too():
    candidates = [Candidate("no", 0.0, 0.0, "needs more pictures"), Candidate("a", 100.0, 5.0)]
    schedule = fitting(candidates, 60)
    assert schedule.budget is None
    assert schedule.left_out["no"] == "needs more pictures"
    assert schedule.left_out["a"].endswith("for 2 seeds of 100 batches")
