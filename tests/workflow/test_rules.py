"""Rules of the workflow name the arguments of their stages."""

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
    call = ConfigSettings(config={"scale": "ci", "tracking": False})
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
