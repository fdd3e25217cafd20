"""The gate of regression closes on each mistake that is planted in a copy of the package, and on no harmless edit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lookalike.base.files import read_json
from lookalike.base.paths import PACKAGE
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.regression import trace_difference, trace_name, traced
from lookalike.workflow.settings.call import configuration
from projects import ROOT

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
SOME = "margin_sign"
HELD = sorted(path.parent.name for path in (ROOT / "results" / "reference").glob("*/traces.json"))  # scales
# What a process of its own does with the copy that PYTHONPATH names: it says whose traces these are, and makes them.
PROGRAM = """
import json, sys, torch
from lookalike.base.paths import PACKAGE
from lookalike.workflow.settings.model import typed
from lookalike.workflow.stages.trace import trace
torch.set_num_threads(1)
print(PACKAGE, flush=True)
for request in json.load(open(sys.argv[1])):
    trace(**typed(trace, request))
"""


@pytest.fixture(scope="module", params=HELD)
def scale(request):
    """Scale at whose recipes mistakes must show."""
    return request.param


@pytest.fixture(scope="module")
def committed(scale):
    return read_json(ROOT / "results" / "reference" / scale / "traces.json")


@pytest.fixture(scope="module")
def requests(scale):
    """Arguments of a trace but for its output, by name of the trace."""
    plan = Plan(configuration(scale, []))
    return {
        trace_name(*run): {"settings": plan.deciding(*run), "specification": plan.datasets[run[1]].about.dump()}
        for run in traced(plan)
    }


def places(find):
    """Modules of the package with a text, once for each time that it stands there."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) for _ in range(path.read_text(encoding="utf-8").count(find))]


def planted(folder, find, replace, requests):
    """Traces of a copy of the package with a text of it replaced."""
    [place] = places(find)
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    module = copy / place.relative_to(PACKAGE)
    module.write_text(module.read_text(encoding="utf-8").replace(find, replace), encoding="utf-8")
    outputs = {name: str(folder / f"{number}.json") for number, name in enumerate(requests)}
    asked = folder / "requests"
    asked.write_text(json.dumps([{**request, "output": outputs[name]} for name, request in requests.items()]))
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(asked)],
        env={**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr  # what does not run is no mistake that traces found
    assert ran.stdout.partition("\n")[0] == str(copy)
    return {name: read_json(output) for name, output in outputs.items()}


def test_a_mistake_in_each_method_is_planted_at_each_scale_with_numbers():
    for scale in ("ci", "mini"):
        planted = " ".join(name for name, mistake in MISTAKES.items() if scale in mistake["recipes"])
        assert all(method in planted for method in ("avsl", "diml", "contextual", "sam")), scale


def test_every_recipe_of_the_tables_has_a_committed_trace(committed, requests):
    assert set(committed) == set(requests)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_fits_the_code_and_the_tables_as_they_are(name, scale, requests):
    assert len(places(MISTAKES[name]["find"])) == 1
    assert {*MISTAKES[name]["recipes"].get(scale, ())} <= {*requests}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MISTAKES)
def test_the_gate_closes_on_a_planted_mistake(name, scale, committed, requests, tmp_path):
    mistake = MISTAKES[name]
    if scale not in mistake["recipes"]:
        pytest.skip(f"{scale} holds one mistake of each method, not this one")
    shown = {trace: requests[trace] for trace in mistake["recipes"][scale]}
    found = planted(tmp_path, mistake["find"], mistake["replace"], shown)
    passed = [trace for trace in shown if not trace_difference(found[trace], committed[trace])]
    assert not passed, f"{mistake['what']}: these traces are the committed ones"


@pytest.mark.nightly
def test_the_gate_stays_open_on_a_copy_without_a_mistake(scale, committed, requests, tmp_path):
    [trace, *_], find = MISTAKES[SOME]["recipes"].get(scale, [*requests][:1]), MISTAKES[SOME]["find"]
    found = planted(tmp_path, find, find, {trace: requests[trace]})
    assert trace_difference(found[trace], committed[trace]) == ""
