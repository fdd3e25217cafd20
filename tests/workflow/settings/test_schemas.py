"""Editors check the files of ``params/`` by the schemas that today's models give."""

import json

import jsonschema
import pytest
from referencing import Registry, Resource

from lookalike.workflow.settings.files import read_yaml
from lookalike.workflow.settings.schemas import schemas
from projects import ROOT

FILES = sorted({*(ROOT / "params").glob("*.yaml"), *(ROOT / "params").glob("*/*.yaml")} - {ROOT / "params/stages.yaml"})


def checking(schema):
    """What an editor does by a schema, whose references lead to others beside it."""
    beside = [(f"{name}.json", Resource.from_contents(each)) for name, each in schemas().items()]
    return jsonschema.Draft202012Validator(schema, registry=Registry().with_resources(beside))


def test_the_committed_schemas_are_those_of_the_models():
    committed = {path.stem: json.loads(path.read_text()) for path in (ROOT / "params/schemas").glob("*.json")}
    assert committed == schemas(), "python -m lookalike.workflow.settings.schemas writes them anew"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_names_its_schema_in_its_first_line_and_follows_it(path):
    marker, _, schema = path.read_text().splitlines()[0].partition("$schema=")
    assert marker == "# yaml-language-server: "
    schema = json.loads((path.parent / schema).read_text())
    checking(schema).validate(json.loads(json.dumps(read_yaml(path))))


def test_a_schema_lets_a_recipe_state_a_part_of_a_section_and_no_key_that_there_is_not():
    check = checking(schemas()["recipes"])
    assert check.is_valid({"recipes": {"mine": {"like": "margin", "train": {"loss": {"margin": 0.3}}}}})
    (error,) = check.iter_errors({"recipes": {"mine": {"train": {"batch_sise": 8}}}})
    assert "batch_sise" in error.message
