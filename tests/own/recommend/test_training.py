"""Which trainings fit is told by seconds alone; rows of one training stand together, by an overlay of the folder's."""

import pandas as pd
import pytest

from lookalike.own.recommend.classes import Classes, split_classes
from lookalike.own.recommend.networks import Network
from lookalike.own.recommend.training import (
    BUDGETS,
    DATASET,
    ORDER,
    RESERVE,
    UNTRAINED,
    Budget,
    Candidate,
    fitting,
    works_of,
)

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


@pytest.fixture
def work(tmp_path):
    """On a folder of twelve classes, from the project's own network."""
    rows = [(f"class{place:02}/{number}.png", f"class{place:02}") for place in range(12) for number in range(4)]
    frame = pd.DataFrame(rows, columns=["path", "class_name"])
    frame["role"] = frame["class_name"].map(split_classes(frame["class_name"].unique().tolist()))
    for path in frame["path"]:
        (tmp_path / "own" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / path).touch()
    view = {"resize_px": 32, "crop_px": 24}
    network = Network("tiny", {"name": "tiny", "weights": None, "batch_norm": "frozen"}, view)
    (found,) = works_of(Classes(tmp_path / "own", frame, False, (), (), None), [network], size_px=24)
    return found


def test_rows_that_share_a_training_stand_together_and_all_are_known_to_the_order(work):
    methods = work.methods(work.plan())
    assert [way.label for way in methods["ProxyAnchor"]] == ["ProxyAnchor", "ProxyAnchor + DIML"]
    assert [way.label for way in methods["ProxyAnchor-AVSL"]] == ["ProxyAnchor-AVSL"]
    assert tuple(methods) == ORDER


def test_the_untrained_rows_are_recipes_of_one_training_that_differ_in_matching(work):
    plan = work.plan()
    assert len({plan.shared("train", way.recipe, DATASET) for way in UNTRAINED}) == 1
    settings = [plan.settings(way.recipe, DATASET) for way in UNTRAINED]
    assert [each["train"]["loss"] for each in settings] == [None, None]
    assert [each["evaluate"]["scoring"]["name"] for each in settings] == ["cosine", "structural_matching"]


def test_the_overlay_gives_every_row_the_same_budget_and_a_batch_that_the_classes_fill(work):
    plan = work.plan(Budget(250, 3, 1))
    trains = [plan.settings(ways[0].recipe, DATASET)["train"] for ways in work.methods(plan).values()]
    assert {train["batch_size"] for train in trains} == {work.batch} == {20}
    budgets = [{key: train["budget"][key] for key in ("epochs", "batches_per_epoch")} for train in trains]
    assert budgets == [{"epochs": 5, "batches_per_epoch": 50}] * len(trains)
    assert plan.seeds == [0, 1, 2]
