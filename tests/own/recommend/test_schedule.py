"""Which trainings fit is told by seconds alone: rather few methods than one seed, in an order that no result moves."""

import pytest

from lookalike.own.recommend.schedule import BUDGETS, RESERVE, Candidate, Schedule, after_first, fitting, in_order

THREE = [Candidate("a", 0.1, 5.0), Candidate("b", 0.1, 5.0), Candidate("c", 0.3, 5.0)]


def test_much_time_gives_every_method_all_batches_and_trials_of_rates():
    schedule = fitting(THREE, 36000)
    assert schedule.budget == BUDGETS[0]
    assert schedule.chosen == ("a", "b", "c")
    assert schedule.left_out == {}


def test_less_time_gives_fewer_methods_and_then_fewer_batches_but_never_one_seed():
    reached = [fitting(THREE, seconds).budget for seconds in range(20, 3000, 10)]
    known = [each for each in reached if each is not None]
    assert {each.seeds for each in known} == {2, 3}
    batches = [each.batches for each in known]
    assert batches == sorted(batches)
    assert reached[0] is None
    assert set(known) > {BUDGETS[0], BUDGETS[-1]}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_what_is_chosen_fits(workers):
    for seconds in range(20, 3000, 10):
        schedule = fitting(THREE, seconds, workers=workers)
        assert schedule.seconds <= seconds
        if schedule.budget is not None:
            chosen = [each for each in THREE if each.label in schedule.chosen]
            shared = sum(each.seconds(schedule.budget) for each in chosen) / workers
            longest = max(schedule.budget.batches * each.step_s + each.fixed_s for each in chosen)  # of one seed
            assert schedule.seconds == pytest.approx(RESERVE * max(shared, longest))


def test_a_long_method_makes_way_for_a_later_one_and_is_named_with_its_time():
    schedule = fitting([Candidate("long", 10.0, 5.0), Candidate("short", 0.1, 5.0)], 600)
    assert schedule.chosen == ("short",)
    assert schedule.left_out == {"long": "takes 2.6 h for 3 seeds of 250 batches"}


def test_nothing_fits_into_no_time_and_what_was_left_is_told():
    schedule = fitting(THREE, 12)
    assert (schedule.budget, schedule.chosen) == (None, ())
    assert schedule.left_out["a"] == "takes 38 s for 2 seeds of 100 batches; 12 s were left"
    assert fitting(THREE, -5).left_out["a"].endswith("; 0 s were left")


def test_what_cannot_run_takes_no_time_and_keeps_its_reason():
    schedule = fitting([Candidate("refused", 0.0, 0.0, "reads three stages"), THREE[0]], 36000)
    assert schedule.chosen == ("a",)
    assert schedule.left_out == {"refused": "reads three stages"}
    assert fitting([Candidate("refused", 0.0, 0.0, "reads three stages")], 36000).budget is None


def test_few_classes_leave_out_trials_of_rates():
    schedule = fitting(THREE, 36000, may_try_rates=False)
    assert schedule.budget is not None and not schedule.budget.trials


def test_methods_that_no_longer_fit_after_a_slow_first_one_are_dropped_and_say_so():
    schedule = fitting(THREE, 36000)
    assert schedule.budget is not None
    alone = RESERVE * THREE[0].seconds(schedule.budget)
    assert after_first(schedule, THREE, 36000, alone / 2, 1) == schedule
    slow = after_first(schedule, THREE, 5 * alone, 4 * alone, 1)
    assert slow.chosen == ("a", "b")
    assert slow.left_out["c"].startswith("takes 1.5 h for 3 seeds of 1000 batches, as the first method took; 41 min")
    assert after_first(schedule, THREE, -1, 4 * alone, 1).chosen == ("a",)
    assert after_first(fitting(THREE, 1), THREE, 1, 1, 1) == fitting(THREE, 1)


def test_rows_of_the_users_own_come_last_and_the_order_is_fixed():
    assert in_order(["Pull", "Margin", "ProxyAnchor"]) == ["ProxyAnchor", "Margin", "Pull"]


def test_a_schedule_is_the_same_after_it_was_written():
    for seconds in (1, 300, 36000):
        schedule = fitting(THREE, seconds)
        assert Schedule.from_data(schedule.as_data()) == schedule
