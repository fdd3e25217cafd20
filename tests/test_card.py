"""What is written for a card runs on one, seen without one: in a process that pretends it.

How often the program waits for the card in a step of training, and how many kernels it gives it, is counted: a wait
leaves it idle, and keeps a step from being recorded once and replayed.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from projects import ROOT

# What a machine that is lent with a card may lack, and no test on a card needs.
LACKING = ("dvc", "faiss", "mlflow", "ot", "snakemake", "snakemake_interface_logger_plugins")
LEAST = 500  # cases on a card: with fewer, some would no longer be found
KEPT = Path(__file__).with_name("card_steps.json")


@pytest.fixture(scope="module")
def pretended(tmp_path_factory):
    """Variables of a process that pretends a card, and can import nothing of `LACKING`."""
    import pretended_card

    if reason := pretended_card.reason_against():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("card")
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({LACKING}))\n")
    variables = pretended_card.environment(folder)
    return {**variables, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}


@pytest.mark.slow
def test_all_that_is_written_for_a_card_passes_on_a_pretended_one_where_packages_are_missing(pretended):
    line = [sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", "tests"]
    variables = {**pretended, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    told = done.stdout[-6000:] + done.stderr[-2000:]
    assert done.returncode == 0, told
    assert "skipped" not in told, told
    passed = re.search(r"(\d+) passed", told)
    assert passed and int(passed[1]) >= LEAST, told


@pytest.mark.long
@pytest.mark.nightly
def test_a_step_of_no_kind_of_training_waits_for_the_card_more_often_than_it_did(pretended):
    line = [sys.executable, str(ROOT / "tests/helpers/card_steps.py")]
    done = subprocess.run(line, cwd=ROOT, env=pretended, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    steps, kept = [json.loads(line) for line in done.stdout.splitlines()], json.loads(KEPT.read_text())
    assert {step["kind"] for step in steps} == kept["launches"].keys()
    more = []
    for step in steps:
        most = {"own": kept["own_above_two"].get(step["kind"], 2)}
        most |= {name: kept[name].get(step["kind"], 0) for name in ("of_libraries", "launches")}
        more += [(name, step["kind"], step[name], most[name]) for name in most if step[name] > most[name]]
        if any(step[name] > most[name] for name in ("own", "of_libraries")):
            print(step["kind"], step["waits"])
        assert step["uploads"] <= 1  # of one library, of one number
    assert more == []  # what falls is kept by `python tests/helpers/card_steps.py tests/card_steps.json`


@pytest.mark.gpu
def test_tensors_of_two_devices_do_not_meet():
    import torch

    with pytest.raises(RuntimeError, match="cuda:0"):
        torch.ones(3, device="cuda") + torch.ones(3)
    with pytest.raises(RuntimeError, match=r"cpu|processor"):
        torch.ones(3).index_select(0, torch.zeros(1, dtype=torch.int64, device="cuda"))
    with pytest.raises((RuntimeError, TypeError)):
        torch.ones(3, device="cuda").numpy()


@pytest.mark.gpu
def test_a_draw_on_a_card_takes_no_generator_of_the_processor():
    import torch

    with pytest.raises(RuntimeError, match=r"generator"):
        torch.randn(3, device="cuda", generator=torch.Generator())
