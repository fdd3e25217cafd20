# ruff: noqa: E501  (one case of wrong input a line)
"""What cannot be meant is refused by a call before it starts any job: one line with file, key and what would be right."""

import re

import pytest

from projects import path_in, spoil
from recorded import leave

LINE = "--cores 1 --dry-run tables"

# What, in which file, and what the call says.
CALLS = {
    "a misspelt loss": (
        ("recipes/diml", "{name: npair", "{name: npiar"),
        r"params/recipes/diml\.yaml: recipe npair on \w+, train\.loss\.name: unknown 'npiar', did you mean 'npair'\?",
    ),
    "an embedding size that k exceeds": (
        ("recipes/avsl", " k: 128", " k: 1024"),
        r"params/recipes/avsl\.yaml: recipe \w+ on \w+, train\.method\.k: \d+ edges per node exceed the \d+ nodes",
    ),
    "a row for an unknown data set": (
        ("tables/diml", "recipe: npair,", "recipe: npair, datasets: [cup],"),
        r"params/tables/diml\.yaml: table diml_1, row 'NPair', datasets: unknown 'cup', did you mean 'cub'\?",
    ),
    "a published CSV with a broken line": (
        ("published/diml.csv", "61.77", "6l.8"),
        r"params/published/diml\.csv, line \d+, value: '6l\.8' is no number, such as 61\.8",
    ),
    "two recipes with one name": (
        ("recipes/avsl", "  avsl_baseline_margin:", "  margin:"),
        r"params/recipes/diml\.yaml: a recipe named 'margin' exists already",
    ),
}


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".snakemake" not in path.parts}


@pytest.mark.slow
@pytest.mark.parametrize("what", CALLS)
def test_a_call_is_refused_at_its_start_in_one_line(project, what):
    (file, old, new), message = CALLS[what]
    spoil(path_in(project.root / "params", file), old, new)
    before = contents(project.root)
    done = project.run(LINE)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert len(re.findall(message, said)) == 1, said
    assert "Traceback" not in said
    assert "Job stats" not in said
    assert contents(project.root) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("claims", "metrics/robust_contextual_labels_20/figurines_birds/seed0.json"),
        ("claims", "attributions/sam_triplet/figurines_birds/seed0.json"),
        ("fidelity", "metrics/margin_diml/figurines_birds/seed0.json"),
        ("results/mini/figures/diml_3.svg", "metrics/margin_diml/figurines_birds/seed0.json"),
    ],
)
def test_claims_fidelity_and_figures_take_no_copied_results_of_older_code(project, target, file):
    path = project.root / "results" / "mini" / file
    leave(path, {}, code="0123456789abcdef")
    done = project.run(f"--cores 1 --dry-run {target}")
    assert done.returncode != 0
    assert f"{file}: made by older code, 0123456789abcdef, not today's" in done.stdout + done.stderr


@pytest.mark.slow
def test_copied_results_of_older_code_are_refused_at_the_start(project):
    path = project.root / "results/own/metrics/compared_margin_avsl/pictures/seed0.json"
    leave(path, {}, code="0123456789abcdef")
    done = project.run(f"{LINE} --configfile own.yaml")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert '.py"' not in said  # Snakemake says of a rule's parameters whose they are, and shows no line of the package
    message = r"metrics/compared_margin_avsl/pictures/seed0\.json: made by older code, 0123456789abcdef, not today's [0-9a-f]{16}"
    assert re.search(message, said)
    line = re.search(r"Make anew: `snakemake (.+? --configfile own.yaml --forcerun train)`", said)
    again = project.run(f"{line.group(1)} --dry-run")
    assert again.returncode == 0, again.stderr
    assert re.search(r"^train +1$", again.stdout + again.stderr, re.MULTILINE)
