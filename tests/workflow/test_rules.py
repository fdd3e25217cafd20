"""Rules of the workflow name the arguments of their stages."""

import inspect
from pathlib import Path

import pytest
from snakemake.api import SnakemakeApi
from snakemake.settings.enums import Quietness
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

from lookalike.workflow.running.jobs import OF_CALL, chosen, stage_of
from projects import ROOT


@pytest.fixture(scope="module")
def rules():
    """The rules that hand a job to a stage."""
    copies = {"shorter_side_px": 48, "encoding": "png", "broken": "skip"}  # which a rule makes
    call = ConfigSettings(config={"scale": "ci", "tracking": False, "picture_cache": copies})
    with pytest.MonkeyPatch.context() as patch, SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        patch.chdir(ROOT)
        workflow = api.workflow(ResourceSettings(cores=1), call, snakefile=Path("Snakefile"))._workflow
        return [rule for rule in workflow.rules if rule.script]


def test_each_argument_of_a_stage_is_named_once(rules):
    assert len(rules) > 30
    for rule in rules:
        params = dict(rule.params.items())
        offered = {
            "output": {"output": "", **dict(rule.output.items())},
            "input": dict(rule.input.items()),
            "params": params,
            "wildcards": dict.fromkeys(rule.wildcard_names),
            "call": dict.fromkeys([*OF_CALL, "config", "threads", "workers"]),
        }
        chosen(stage_of(params.get("stage", rule.name)), offered, f"rule {rule.name}")


def test_each_job_carries_the_code_of_its_stage_as_a_param_that_is_compared(rules):
    for rule in rules:
        params = dict(rule.params.items())
        assert "code" in params, f"rule {rule.name}: an edit of its stage would run nothing again"
        if not isinstance(params["code"], str):
            named = inspect.signature(params["code"]).parameters
            assert [*named] == ["wildcards"], f"rule {rule.name}: Snakemake compares no param of its inputs"
            entries = inspect.getclosurevars(params["code"]).nonlocals.get("entry_points", ())
            stage = stage_of(params.get("stage", rule.name)).__module__
            assert not entries or stage in {entry.partition(":")[0] for entry in entries}, f"rule {rule.name}"
