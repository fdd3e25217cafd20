"""Two recipes that are compared differ in what is under test and in nothing else, at every scale."""

from functools import cache

import pytest

from lookalike.workflow.plan.claims import FILE, read_claims
from lookalike.workflow.plan.pairs import OF_EACH, Compared, apart, outside, pair_notes, untested
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.files import read_entries
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.pages import Claim
from lookalike.workflow.settings.tables import PlannedTable
from projects import ROOT

STUDIES = {"birds_long": ["birds", "birds_long"], **{name: [name] for name in ("birds", "parts", "photographs")}}
SCALES = [*sorted(path.stem for path in (ROOT / "params" / "scales").glob("*.yaml")), *STUDIES]
CLAIMS = read_entries(FILE, Claim)


@cache
def pairs_at(scale):
    """All pairs of claims and tables on each data set, with the plan, and what states them."""
    overlays = [ROOT / "params" / "overlays" / f"{name}.yaml" for name in STUDIES.get(scale, ())]
    plan = Plan(configuration(None if overlays else scale, overlays))
    of_claims = [
        (name, Compared(pair.changed, pair.baseline, dataset.name, claim.under_test, pair.as_in_paper))
        for name, claim in read_claims(plan).items()
        for dataset in plan.datasets.values()
        if dataset.stands_for in claim.datasets
        for pair in claim.pairs
    ]
    return plan, of_claims + [(name, pair) for name in plan.known_tables for pair in plan.pairs_of(name)]


@pytest.mark.parametrize("scale", SCALES)
def test_sides_of_a_pair_differ_in_what_is_under_test_and_in_rates(scale):
    plan, pairs = pairs_at(scale)
    beside = {(name, pair): outside(untested(plan, pair), pair.as_in_paper) for name, pair in map(_hashable, pairs)}
    assert {(name, *pair[:3]): keys for (name, pair), keys in beside.items() if keys} == {}
    assert len(beside) > 40


def test_whatever_is_named_differs_somewhere():
    named, differing = set(), set()
    for plan, pairs in map(pairs_at, SCALES):
        for name, pair in pairs:
            keys = apart(*(plan.deciding(recipe, pair.dataset) for recipe in (pair.changed, pair.baseline)))
            for key in (*pair.under_test, *pair.as_in_paper):
                named.add((name, key))
                differing |= {(name, key)} if outside(keys, [key]) != keys else set()
    assert named - differing == set()


def test_every_pair_names_what_is_under_test_and_never_what_each_recipe_has_of_its_own():
    named = [pair.under_test for scale in SCALES for _, pair in pairs_at(scale)[1]]
    assert all(named)
    assert OF_EACH == ("train.optimiser.lr", "train.budget.metrics")
    assert not {key for keys in named for key in keys if outside(OF_EACH, [key]) != [*OF_EACH]}


def test_a_clean_pair_stands_beside_those_as_in_the_paper():
    marked = {name: [pair for pair in claim.pairs if pair.as_in_paper] for name, claim in CLAIMS.items()}
    assert {name for name, pairs in marked.items() if pairs} >= {"avsl_recall", "contextual_test", "contextual_train"}
    assert not [name for name, pairs in marked.items() if pairs == CLAIMS[name].pairs]


def test_a_table_says_where_a_baseline_of_the_paper_differs_in_more():
    plan, _ = pairs_at("mini")
    said = [note for note in plan.table("avsl_1").remarks if note.startswith("As in the paper")]
    assert said == [
        "As in the paper, Margin-AVSL differs from Margin in train.loss besides what is tested.",
        "As in the paper, ProxyAnchor-AVSL differs from ProxyAnchor in train.loss besides what is tested.",
    ]
    kept = {row.recipe: row.as_in_paper for row in plan.table("avsl_1").rows}
    assert kept["avsl_proxy_anchor"] == ["train.loss"]  # its schedule is the papers' at their own scale alone
    plan, _ = pairs_at("paper")
    assert any("in train.loss and train.schedule" in note for note in plan.table("avsl_1").remarks)


def test_a_table_says_in_what_a_row_differs_that_it_does_not_name():
    plan, _ = pairs_at("mini")
    [pair] = [each for each in plan.pairs_of("comparison") if each.labels[0] == "Triplet + SAM"][:1]
    assert pair_notes(plan, [pair]) == []
    assert pair_notes(plan, [pair._replace(under_test=())]) == [
        "Triplet + SAM differs from Triplet in train.method, which its under_test does not name."
    ]


@pytest.mark.parametrize("scale", ["ci", "mini", "paper"])
def test_every_table_reaches_its_stage_as_it_was_planned(scale):
    plan, _ = pairs_at(scale)
    for name in plan.table_names:
        table = plan.table(name)
        assert checked(PlannedTable, table.dump(), name) == table


def test_a_key_stands_below_what_holds_it_and_not_below_what_begins_alike():
    assert outside(["train.loss.lam", "train.loss", "train.losses"], ["train.loss"]) == ["train.losses"]
    assert apart({"train": {"loss": {"lam": 1}, "a": 1}}, {"train": {"loss": None, "a": 1}}) == [
        "train.loss.lam",
        "train.loss",
    ]


def _hashable(stated):
    name, pair = stated
    return name, pair._replace(under_test=tuple(pair.under_test), as_in_paper=tuple(pair.as_in_paper))
