"""What a plain install gives, which has neither Snakemake nor DVC nor MLflow, and what it says of the rest."""

import subprocess
import sys

import pytest

from projects import ROOT

# What the extra `workflow` adds to the core, by the names that are imported.
LEFT_OUT = ("cv2", "dvc", "imagehash", "matplotlib", "mlflow", "pooch", "snakemake", "tabulate")
PUBLIC = """
import lookalike
for name in dir(lookalike):
    getattr(lookalike, name)
import lookalike.losses, lookalike.metrics.retrieval, lookalike.sampling.miners, lookalike.sampling.samplers
import lookalike.models.embedder, lookalike.segmentation, lookalike.workflow.training.methods
"""
PIECES = """
import re, pathlib
page = pathlib.Path("docs/methods.md").read_text()
for piece in re.findall(r"^```python\\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
    exec(piece)
"""
SERVED = """
import tempfile, pathlib
sys.path.append("tests/helpers")
from own_pictures import opened, write_pictures
from lookalike.app.own.serving import Service, application
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    picture = write_pictures(folder / "pictures")[0]
    service = Service([opened()], folder / "pictures", folder / "store")
    answers = {route.path: route.endpoint for route in application(service).routes if hasattr(route, "endpoint")}
    answers["/"](), answers["/data.js"](), answers["/thumbnails/{number}"](0)
    service.doubtful(None)
    service.search(picture.read_bytes(), model=None, way=None, below=None, top=2, why=True, without=None)
"""


def needed(extra):
    remedy = f"in the project's folder: uv pip install '.[{extra}]'"
    return f"is not installed: this needs lookalike's extra `{extra}`; {remedy}"


def without(blocked, code, folder=ROOT):
    """Run Python in which some libraries cannot be imported."""
    preface = f"import sys; sys.modules |= dict.fromkeys({blocked!r})\n"
    command = [sys.executable, "-c", preface + code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_methods_need_nothing_of_the_workflow():
    done = without((*LEFT_OUT, "fcntl"), PIECES + PUBLIC)  # the pieces first: they import what they use
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("library", "code"),
    [
        ("matplotlib", "import lookalike.workflow.report.figures.parts.style"),
        (
            "imagehash",
            "from lookalike.workflow.data.screening import perceptual_hash as f; "
            "from PIL.Image import new; f(new('L', (9, 9)))",
        ),
        ("cv2", "from lookalike.segmentation import cuts; cuts._grown(None, None, 1)"),
    ],
)
def test_what_needs_the_extra_says_so_in_its_last_line(library, code):
    done = without(LEFT_OUT, code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"{library} {needed('workflow')}")


@pytest.mark.parametrize(
    ("library", "extra", "words"),
    [("mlflow", "workflow", ["track", "sync"]), ("fastapi", "serve", ["serve", "groceries:"])],
)
def test_the_command_names_the_extra_in_one_line(library, extra, words):
    done = without((library,), f"from lookalike.app.command import main; sys.exit(main({words}))")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lookalike: {library} {needed(extra)}\n"


def test_a_folder_is_served_by_its_own_extra_alone():
    blocked = [name for name in LEFT_OUT if name not in ("imagehash", "matplotlib")]
    done = without((*blocked, "markdown_it", "onnx", "onnxruntime", "onnxscript", "psutil"), SERVED)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["devices", "jobs"])
def test_where_there_is_no_fcntl_the_workflow_names_the_systems_that_it_runs_on(module):
    done = without(("fcntl",), f"import lookalike.workflow.running.{module}")
    assert done.stderr.splitlines()[-1].startswith("ImportError: lookalike's workflow needs Linux or macOS")
