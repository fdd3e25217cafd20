"""`from lookalike import ...` finds the methods, without loading anything before it is asked for."""

import importlib
import subprocess
import sys

import pytest

import lookalike
from projects import ROOT

PUBLIC = {
    "AVSL": "lookalike.methods.avsl.model",
    "AVSLLoss": "lookalike.methods.avsl.loss",
    "ContextualLoss": "lookalike.methods.contextual.loss",
    "DIML": "lookalike.methods.diml.model",
    "DIMLLoss": "lookalike.methods.diml.loss",
    "Explanation": "lookalike.explanations.explanation",
    "StructuralMatcher": "lookalike.methods.diml.matcher",
    "SimilarityAttention": "lookalike.methods.sam.model",
    "SimilarityMiningLoss": "lookalike.methods.sam.loss",
    "explain": "lookalike.explanations.choice",
    "explain_files": "lookalike.app.own.explanation",
    "export_model": "lookalike.app.own.export",
    "load": "lookalike.workflow.training.model_file",
    "open_gallery": "lookalike.app.own.search",
    "open_model": "lookalike.app.own.models",
    "transform_of": "lookalike.workflow.training.model_file",
}

HEAVY = "print(*sorted({'torch', 'torchvision', 'numpy'} & set(sys.modules)))"

USER_SCRIPT = """
import lookalike
from lookalike import AVSL, DIML, AVSLLoss, ContextualLoss, DIMLLoss, SimilarityAttention, SimilarityMiningLoss
from lookalike import StructuralMatcher, load
from torch import Tensor, nn

def rank(embedder: nn.Module, images: Tensor) -> Tensor:
    model, matcher = DIML(embedder, "layer4", truncation=5), StructuralMatcher(truncation=5)
    return matcher.rank(model.represent(images), model.represent(images)) - model.rank(model(images), model(images))

def distance(model: AVSL, images: Tensor) -> Tensor:
    return model.distance(model.forward(images), model.forward(images))

AVSL("resnet50")
lookalike.AVLS
"""


def modules_loaded_by(code):
    command = [sys.executable, "-c", f"import sys; {code}; {HEAVY}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    "code", ["import lookalike", "import lookalike; dir(lookalike)", "from lookalike.base import paths"]
)
def test_importing_the_package_loads_no_heavy_library(code):
    assert modules_loaded_by(code) == []


def test_a_name_is_loaded_when_it_is_first_used():
    assert "torch" in modules_loaded_by("from lookalike import ContextualLoss")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_the_object_of_its_module(name):
    assert getattr(lookalike, name) is getattr(importlib.import_module(PUBLIC[name]), name)
    assert vars(lookalike)[name] is getattr(lookalike, name)


def test_dir_and_the_stub_list_the_public_names():
    assert lookalike._modules() == PUBLIC
    assert set(dir(lookalike)) >= PUBLIC.keys()


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("AVLS", "AVSL"),
        ("avsl", "AVSL"),
        ("contextual_loss", "ContextualLoss"),
        ("AVSLoss", "AVSLLoss"),
    ],
)
def test_an_unknown_attribute_names_the_nearest(wrong, near):
    with pytest.raises(AttributeError, match=rf"'lookalike' has no attribute '{wrong}'; nearest: {near}\b"):
        getattr(lookalike, wrong)


def test_an_attribute_like_no_other_names_them_all():
    with pytest.raises(AttributeError, match=f"nearest: {', '.join(sorted(PUBLIC))}"):
        lookalike.zzz  # noqa: B018


def test_an_unknown_name_cannot_be_imported():
    with pytest.raises(ImportError, match="AVLS"):
        from lookalike import AVLS  # noqa: F401


@pytest.mark.slow
def test_a_type_checker_sees_the_public_names(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "script.py").write_text(USER_SCRIPT)
    monkeypatch.chdir(tmp_path)
    # The settings and the cache of the project's own check, so that either finds what the other has read of torch.
    shared = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    output, _, _ = api.run([*shared, "--no-color-output", "script.py"])
    errors = [line for line in output.splitlines() if ": error:" in line]
    assert len(errors) == 2, output
    assert 'Argument 1 to "AVSL" has incompatible type "str"' in errors[0]
    assert 'Module has no attribute "AVLS"' in errors[1]
