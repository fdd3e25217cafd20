"""A number says how its run departs from the paper, and how to make it again."""

import pytest

from lookalike.parameters import read
from lookalike.plan import Plan
from lookalike.tables.origin import DEPARTURES, origin


def plan(**values):
    return Plan({**read("params/config.yaml", "config"), **values})


def of(plan, recipe, dataset, trivial=False):
    return origin(plan, {"recipe": recipe, "dataset": dataset, "trivial": trivial}, "results/x/metrics/a/b/seed0.json")


@pytest.fixture(scope="module")
def mini():
    return plan(scale="mini")


@pytest.fixture(scope="module")
def paper():
    return plan(scale="paper")


def test_a_run_as_the_paper_made_it_has_no_marks(paper):
    for recipe in ("margin_diml", "avsl_proxy_anchor", "contextual", "sam_triplet"):
        assert of(paper, recipe, "cub")["departs"] == ""


def test_a_small_run_on_drawn_pictures_departs_in_all(mini):
    assert of(mini, "margin", "figurines_birds")["departs"] == "DBS"
    assert set("DOBSC1") == set(DEPARTURES)


def test_a_row_that_no_paper_has_departs_from_none(mini):
    assert of(mini, "chance", "figurines_birds", trivial=True)["departs"] == ""


def test_each_departure_has_its_own_mark():
    datasets = {"birds": {"layout": "folder", "folder": "birds", "stands_for": "cub"}}
    own = {"name": "own", "datasets": datasets, "tables": ["comparison"]}
    for recipe, marks in (
        ({}, ""),
        ({"train": {"backbone": {"name": "resnet18"}}}, "B"),
        ({"train": {"batch_size": 8}}, "S"),
        ({"evaluate": {"count_query_in_r": False}}, "S"),
    ):
        assert of(plan(**own, recipe=recipe), "margin", "birds")["departs"] == f"D{marks}"


def test_equal_settings_have_equal_digests_and_others_do_not(mini):
    digest = {recipe: of(mini, recipe, "figurines_birds")["settings"] for recipe in ("margin", "compared_margin")}
    assert mini.shared("evaluate", "compared_margin", "figurines_birds") == "compared_margin"
    assert digest["margin"] != digest["compared_margin"]
    assert all(len(each) == 12 for each in digest.values())
    assert of(mini, "margin", "figurines_birds")["settings"] == digest["margin"]


def test_how_r_counts_is_that_of_the_recipe(mini):
    assert of(mini, "margin", "figurines_birds")["query_in_r"] is True
    assert of(mini, "contextual", "figurines_birds")["query_in_r"] is False


def test_a_rebuilding_call_names_its_scale_unless_that_is_the_default(mini, paper):
    assert of(mini, "margin", "figurines_birds")["options"] == ""
    assert of(paper, "margin", "cub")["options"] == " --config scale=paper"
    overlay = plan(name="own", datasets={"birds": {"layout": "folder", "folder": "birds"}}, tables=["comparison"])
    assert of(overlay, "margin", "birds")["options"] == " --configfile <your overlay>"
    assert of(overlay, "margin", "birds")["departs"] == ""
