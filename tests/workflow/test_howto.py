"""The README's how-to for a loss, done step by step in a copy of the project."""

import csv
import os
import re
import shutil

import pytest

from projects import ROOT, make_project

# The steps, as the README shows them: a file, and what it gets.
LOSS = '''"""A loss of one's own."""

from torch import Tensor, nn


class PullLoss(nn.Module):
    """Mean squared distance to ``scale`` times the mean of all embeddings."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, embeddings: Tensor, labels: Tensor, indices_tuple: tuple[Tensor, ...] | None = None) -> Tensor:
        return (embeddings - self.scale * embeddings.mean(dim=0)).square().mean()
'''
IMPORT = "from lookalike.losses.pull import PullLoss\n"
LINE = '    "pull": PullLoss,\n'
RECIPE = "  pull: {like: margin, train: {loss: {name: pull, scale: 0.5}}}\n"
ROW = "    - {label: Pull, recipe: pull}\n"
TABLES = (
    "first: &small\n  title: First\n  datasets: own\n  metrics: [R@1]\n  rows:\n    - {label: Margin, recipe: margin}\n"
)
CALL = "--cores 2 tables --configfile own.yaml"


@pytest.fixture
def copy(tmp_path):
    project = make_project(tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "params/tables/two.yaml").write_text(TABLES + TABLES.replace("first: &small", "second:"))
    project.edit("own.yaml", "tables: [comparison]", "tables: [first, second]")
    return project


def call(project, line):
    path = os.pathsep.join([str(project.root / "src"), os.environ.get("PYTHONPATH", "")])
    done = project.run(line, PYTHONPATH=path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_loss_with_a_row_in_two_tables_trains_nothing_but_itself(copy):
    call(copy, CALL)

    (copy.root / "src/lookalike/losses/pull.py").write_text(LOSS)
    losses = "src/lookalike/losses/__init__.py"
    copy.edit(losses, "from lookalike.losses.quadruplet", IMPORT + "from lookalike.losses.quadruplet")
    copy.edit(losses, '    "quadruplet": ', LINE + '    "quadruplet": ')
    copy.edit("params/recipes/comparison.yaml", "recipes:\n", "recipes:\n" + RECIPE)
    tables = copy.root / "params/tables/two.yaml"
    tables.write_text(tables.read_text().replace("recipe: margin}\n", "recipe: margin}\n" + ROW))

    planned = call(copy, f"-n {CALL}")
    jobs = re.findall(r"Job \d+: ((?:Train|Embed \w+ with|Evaluate|Assemble) \w+)", planned)
    expected = ["Assemble first", "Assemble second", "Embed pictures with pull", "Evaluate pull", "Train pull"]
    assert sorted(set(jobs)) == expected

    call(copy, CALL)
    for table in ("first", "second"):
        with (copy.root / f"results/own/tables/{table}.csv").open() as stream:
            cells = {cell["label"]: cell["mean"] for cell in csv.DictReader(stream)}
        assert set(cells) == {"Margin", "Pull", "Chance", "Untrained features"}
        assert 0 <= float(cells["Pull"]) <= 100
