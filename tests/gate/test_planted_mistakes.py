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
SCALE = "ci"
# What a process does which has imported all that the package builds on, and nothing of the package: for each folder it
# forks one that finds the package there, says whose traces these are, and makes them.
PROGRAM = """
import importlib, json, os, sys, traceback
for name in ("faiss", "pandas", "pydantic", "pytorch_metric_learning.losses", "safetensors.torch", "scipy.sparse",
             "sklearn.cluster", "torch", "torchvision", "yaml"):
    importlib.import_module(name)
assert "lookalike" not in sys.modules
for line in sys.stdin:
    folder = line.rstrip("\\n")
    if os.fork():
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        continue
    try:
        sys.stdout = sys.stderr = open(f"{folder}/said", "w")
        sys.path.insert(0, folder)
        from lookalike.base.paths import PACKAGE
        from lookalike.workflow.settings.model import typed
        from lookalike.workflow.stages.trace import trace
        importlib.import_module("torch").set_num_threads(1)
        print(PACKAGE)
        for request in json.load(open(f"{folder}/requests")):
            trace(**typed(trace, request))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.fixture(scope="module")
def tracing():
    """The process that makes traces: takes folders, and answers with exit statuses."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command, pipe = [sys.executable, "-P", "-c", PROGRAM], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="module")
def committed():
    return read_json(ROOT / "results" / "reference" / SCALE / "traces.json")


@pytest.fixture(scope="module")
def requests():
    """Arguments of a trace but for its output, by name of the trace."""
    plan = Plan(configuration(SCALE, []))
    return {
        trace_name(*run): {"settings": plan.deciding(*run), "specification": plan.datasets[run[1]].about.dump()}
        for run in traced(plan)
    }


def places(find):
    """Modules of the package with a text, once for each time that it stands there."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) for _ in range(path.read_text(encoding="utf-8").count(find))]


def planted(tracing, folder, find, replace, requests):
    """Traces of a copy of the package with a text of it replaced."""
    [place] = places(find)
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy)  # with what is compiled of it: of what is changed here that counts no more
    module = copy / place.relative_to(PACKAGE)
    module.write_text(module.read_text(encoding="utf-8").replace(find, replace), encoding="utf-8")
    outputs = {name: str(folder / f"{number}.json") for number, name in enumerate(requests)}
    asked = [{**request, "output": outputs[name]} for name, request in requests.items()]
    (folder / "requests").write_text(json.dumps(asked))
    tracing.stdin.write(f"{folder}\n")
    tracing.stdin.flush()
    code, said = tracing.stdout.readline(), (folder / "said").read_text()
    assert code == "0\n", said  # what does not run is no mistake that traces found
    assert said.partition("\n")[0] == str(copy)
    return {name: read_json(output) for name, output in outputs.items()}


def test_a_mistake_in_each_method_is_planted():
    assert {"avsl", "diml", "contextual", "sam"} <= {name.partition("_")[0] for name in MISTAKES}


def test_every_recipe_of_the_tables_has_a_committed_trace(committed, requests):
    assert set(committed) == set(requests)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_fits_the_code_and_the_tables_as_they_are(name, requests):
    assert len(places(MISTAKES[name]["find"])) == 1
    assert {*MISTAKES[name]["traces"]} <= {*requests}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MISTAKES)
def test_the_gate_closes_on_a_planted_mistake(name, committed, requests, tracing, tmp_path):
    mistake = MISTAKES[name]
    shown = {trace: requests[trace] for trace in mistake["traces"]}
    found = planted(tracing, tmp_path, mistake["find"], mistake["replace"], shown)
    passed = [trace for trace in shown if not trace_difference(found[trace], committed[trace])]
    assert not passed, f"{mistake['what']}: these traces are the committed ones"


@pytest.mark.nightly
def test_the_gate_stays_open_on_a_copy_without_a_mistake(committed, requests, tracing, tmp_path):
    trace, find = MISTAKES[SOME]["traces"][0], MISTAKES[SOME]["find"]
    found = planted(tracing, tmp_path, find, find, {trace: requests[trace]})
    assert trace_difference(found[trace], committed[trace]) == ""
