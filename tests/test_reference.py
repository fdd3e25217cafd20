"""The reference is that of today's code, and names all that recipes can name; so do the targets."""

import re

import reference

from lookalike.losses import LOSSES
from lookalike.methods import METHODS
from lookalike.workflow.plan.checks import SUPPLIED, losses_of
from lookalike.workflow.plan.recipes import read_recipes
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.layers import laid
from lookalike.workflow.settings.scales import Scale
from lookalike.workflow.settings.sources.code import constructor_arguments
from projects import ROOT
from snakemake_logger_plugin_lookalike.command_line import targets_of


def test_the_committed_reference_is_that_of_todays_code():
    committed = (ROOT / "docs" / "reference.md").read_text()
    assert committed == reference.page(), "python docs/reference.py writes it anew"


def test_every_command_key_loss_and_method_has_a_line():
    page = reference.page()
    keys = (*Dataset.model_fields, *Configuration.model_fields, *Scale.model_fields)
    for name in (*LOSSES, *METHODS, *keys):
        assert f"| `{name}` |" in page
    for command in ("search", "data status", "track sync", "new"):
        assert f"### lookalike {command}\n" in page


def test_every_key_of_a_file_has_words_of_its_own():
    section = reference.page().partition("\n## Keys of files\n")[2].partition("\n## Losses\n")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_loss_states_its_formula_its_source_and_a_recipe_that_trains_it():
    recipes = read_recipes()
    for method in METHODS:
        page = reference.losses(method)
        for name in losses_of(method):
            source, recipe = re.search(rf"^\| `{name}` \| (.+) \| \[`(\w+)`\]\(.*\) \|$", page, re.MULTILINE).groups()
            assert re.search(r"\b(Eq\.|Tables?|Section|section) \d|et al\. \d{4}", source), name
            train = laid(recipes[recipe].layers)["train"]
            assert train["loss"]["name"] == name
            assert METHODS[train["method"]["name"]].losses == METHODS[method].losses
            section = re.search(rf"^#### Loss `{name}`.*?(?=^#### |\Z)", page, re.MULTILINE | re.DOTALL)[0]
            formula, _, options = section.partition("\n- Options: `")
            assert re.search("`[^`]*[-+(][^`]*`", formula), name
            assert options


def test_every_method_states_its_source_its_options_and_a_recipe_that_trains_it():
    page = reference.methods()
    for name, method in METHODS.items():
        recipe = re.search(rf"^\| `{name}` \|.*\[`(\w+)`\]", page, re.MULTILINE)[1]
        assert laid(read_recipes()[recipe].layers)["train"]["method"]["name"] == name
        section = page.partition(f"### Method `{name}`\n")[2].partition("\n### ")[0]
        assert re.search(r"^Source: \S", section, re.MULTILINE)
        stated = re.findall(
            r"^\| `(\w+)` \| `[^`]+` \| \S", section.partition("| `train.loss.name` |")[0], re.MULTILINE
        )
        assert set(stated) == {key for path in method.options for key in constructor_arguments(path)} - SUPPLIED


def test_a_value_is_told_in_words():
    assert (
        reference.words({"type": "array", "items": {"type": "integer", "minimum": 1}}) == "list of whole number, from 1"
    )
    assert reference.words({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}) == "`a`, `b` or `null`"
    assert reference.words({"$ref": "#/$defs/Counts"}) == "`Counts`"


def test_the_page_of_targets_names_those_that_can_be_asked_for_and_no_others():
    page = (ROOT / "docs" / "targets.md").read_text()
    rows = re.search(r"^\| target \|.*?(?=^$)", page, re.MULTILINE | re.DOTALL)[0].splitlines()[2:]
    # A cell names targets in code, one each, with what else the line of a call needs.
    named = [name for row in rows for name in re.findall(r"`(\w+)[^`]*`", row.split("|")[1])]
    assert sorted(named) == sorted(targets_of(ROOT))
