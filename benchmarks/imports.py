"""Share of imports in the processor time of one short training, as the project runs it.

Run ``python benchmarks/imports.py``. One parent per call of Snakemake imports everything and forks a child per job (see
`lookalike.workflow.running.jobs`). A training then pays: the job's script, with what Snakemake puts in front of it;
the imports
that its child still makes; and a part of the parent's imports, which all trainings of a call on `mini` share. The plain
path is a process of its own that imports everything. The child's imports are told by the modules it has and its parent
had not: a second child imports those and does nothing else. Data and MLflow's database are made in a temporary folder.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from measure import Finding, conclude, parser, seconds_of_command

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.running.jobs import ADDRESS, PRELOADED, call
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.stages.download import obtain
from lookalike.workflow.stages.split import assign

LIMIT = 30  # per cent
PACKAGES = ("torch", "torchvision", "pytorch_metric_learning.losses", "mlflow")
RECIPE, DATASET = "proxy_anchor", "figurines_birds"
SCRIPT = """
import time
from lookalike.workflow.running.jobs import run
with open(snakemake.output[0], "w") as stream:
    stream.write(str(time.process_time()))
"""


def seconds_in_child(action: Callable[[], object]) -> tuple[float, list[str]]:
    """Processor seconds of a forked child, and the modules it has imported, in that order."""
    before = set(sys.modules)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            action()
            with os.fdopen(writer, "w") as stream:
                json.dump([name for name in sys.modules if name not in before], stream, allow_nan=False)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as stream:
        modules = stream.read()
    _, status, usage = os.wait4(child, 0)
    if status:
        raise ValueError(f"a child ended with status {status}")
    return usage.ru_utime + usage.ru_stime, json.loads(modules)


def seconds_of_script(folder: Path) -> float:
    """Processor seconds of a job's script up to its call of a stage."""
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "Snakefile").write_text("rule job:\n    output: 'seconds'\n    script: 'script.py'\n", encoding="utf-8")
    seconds_of_command([str(Path(sys.executable).with_name("snakemake")), "--cores", "1"], folder)
    return float((folder / "seconds").read_text(encoding="utf-8"))


def seconds_of_import(*names: str) -> float:
    """Processor seconds of importing modules in a fresh process, the interpreter's own start left out."""
    bare, _ = seconds_of_command([sys.executable, "-c", "pass"])
    return seconds_of_command([sys.executable, "-c", f"import {', '.join(names)}"])[0] - bare


def import_all(names: list[str]) -> None:
    for name in names:
        with suppress(ImportError):  # a few are made at run time by those that use them
            importlib.import_module(name)


def train(arguments: dict[str, Any]) -> None:
    """Run the stage as its job does, with MLflow."""
    outputs = [arguments["model"], arguments["history"]]
    job = {"stage": "train", "outputs": outputs, "inputs": [], "code": "", "settings": ""}
    log = f"{arguments['model']}.log"
    call({"stage": "train", "offered": {"benchmark": arguments}, "log": log, "job": job, "tracked": True})


def make_training(plan: Plan, folder: Path) -> dict[str, Any]:
    """Arguments of the stage, with freshly drawn pictures."""
    dataset = plan.datasets[DATASET]
    root, manifest = folder / DATASET, folder / "manifest.csv"
    obtain(dataset.about, root, folder, folder / "record.json")
    assign(dataset.about, root, manifest)
    names = {"model": "model.safetensors", "history": "history.csv", "resume": "unfinished"}
    files = {key: str(folder / name) for key, name in names.items()}
    return {
        **files,
        "settings": plan.deciding(RECIPE, DATASET)["train"],
        "seed": 0,
        "code": "",
        "manifest": str(manifest),
        "root": str(root),
    }


def main() -> None:
    arguments = parser(__doc__).parse_args()
    os.environ.pop(ADDRESS, None)  # a stage called in a child runs there
    plan = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "mini"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder}/mlflow.db"
        alone = {package: seconds_of_import(package) for package in PACKAGES}
        everything = seconds_of_import(*PRELOADED)
        script = seconds_of_script(folder)
        training = make_training(plan, folder)
        start = time.process_time()
        import_all(list(PRELOADED))
        parent = time.process_time() - start
        one_batch = merge(training["settings"], {"budget": {"epochs": 1, "batches_per_epoch": 1}})
        seconds_in_child(lambda: train({**training, "settings": one_batch}))  # MLflow makes its tables
        whole, modules = seconds_in_child(lambda: train(training))
        left, _ = seconds_in_child(lambda: import_all(modules))

    cells = plan.runs[["recipe", "dataset"]].drop_duplicates().to_numpy()
    trainings = len({(plan.shared("train", recipe, dataset), dataset) for recipe, dataset in cells})
    part = parent / trainings
    imports, total = script + left + part, script + whole + part
    print(f"everything a job may import: {everything:.2f} s in a fresh process, {parent:.2f} s in the parent")
    print(f"one training of {RECIPE} on {DATASET}, {total:.2f} s: script {script:.2f} s, child {whole:.2f} s, of which")
    print(f"{left:.2f} s for {len(modules)} modules that its parent lacks, and the parent, as one of {trainings}")
    most = Counter(module.split(".")[0] for module in modules).most_common(5)
    print("most of these modules: " + ", ".join(f"{package} {count}" for package, count in most))
    plain = 100 * (script + everything + left) / (script + everything + whole)
    findings = [
        *(Finding(f"import {package}, fresh process", "s", seconds) for package, seconds in alone.items()),
        Finding("imports of a training", "s", imports, plain=script + everything + left),
        Finding("imports of a training, in its processor time", "%", 100 * imports / total, LIMIT, plain=plain),
    ]
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
