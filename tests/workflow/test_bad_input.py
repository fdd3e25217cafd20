# ruff: noqa: E501  (one case of wrong input a line)
"""What cannot be meant is refused by a call before it starts any job: one line with file, key and what would be right."""

import json
import re

import pytest
import torch

from lookalike.files import read_tensors, write_tensors
from lookalike.models.saved import load_model
from lookalike.plan import Plan
from lookalike.tables.older import is_older, refuse_unnoticed
from projects import spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}
LINE = "--cores 1 --dry-run tables"
PRINTED = "diml,T1,cub,Contrasitive,"

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


def path_of(params, file):
    return params / (file if file.endswith(".csv") else f"{file}.yaml")


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".snakemake" not in path.parts}


@pytest.mark.slow
@pytest.mark.parametrize("what", CALLS)
def test_a_call_is_refused_at_its_start_in_one_line(project, what):
    (file, old, new), message = CALLS[what]
    spoil(path_of(project.root / "params", file), old, new)
    before = contents(project.root)
    done = project.run(LINE)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert len(re.findall(message, said)) == 1, said
    assert "Traceback" not in said
    assert "Job stats" not in said
    assert contents(project.root) == before


@pytest.mark.slow
def test_copied_results_of_older_code_are_refused_at_the_start(project):
    path = project.root / "results/own/metrics/avsl_margin/pictures/seed0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"code": "0123456789abcdef"}))
    done = project.run(f"{LINE} --configfile own.yaml")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert '.py"' not in said  # Snakemake says of a rule's parameters whose they are, and shows no line of the package
    message = (
        r"metrics/avsl_margin/pictures/seed0\.json: made by older code, 0123456789abcdef, not today's [0-9a-f]{16}"
    )
    assert re.search(message, said)
    line = re.search(r"Make anew: `snakemake (.+?) --configfile <your overlay> --forcerun train`", said)
    again = project.run(f"{line.group(1)} --dry-run --configfile own.yaml --forcerun train")
    assert again.returncode == 0, again.stderr
    assert re.search(r"^train +1$", again.stdout + again.stderr, re.MULTILINE)


REFUSED = [
    (
        "tables/diml",
        "datasets: [cub, cars, sop]",
        "datasets: [cub, carz]",
        r"diml_1, datasets: unknown 'carz', .*'cars'",
    ),
    ("tables/diml", "metrics: [P@1, RP", "metrics: [P@1, RQ", r"diml_1, metrics: unknown 'RQ', did you mean 'RP'"),
    (
        "tables/diml",
        "metrics: [P@1, RP",
        "metrics: [P@1, R@16",
        r"diml_1, metrics: unknown 'R@16', did you mean 'R@1\w*'",
    ),
    ("tables/diml", "against: NPair,", "against: NPear,", r"row 'NPair \+ DIML', against: unknown 'NPear', .*'NPair'"),
    (
        "tables/diml",
        "{method: NPair,",
        "{method: NPear,",
        r"row 'NPair', published names .*NPear.*nearest: {method: NPair,",
    ),
    (
        "tables/diml",
        "table: T1}",
        "table: T11}",
        r"diml_1, published\.table: paper diml has no table 'T11'; known: T1, T2",
    ),
    (
        "tables/diml",
        "{paper: diml, table: T1}",
        "{paper: dimm, table: T1}",
        r"published\.paper: unknown 'dimm', .*'diml'",
    ),
    (
        "tables/avsl",
        "avsl_2:",
        "diml_1:",
        r"diml\.yaml: a table named 'diml_1' exists already in params/tables/avsl\.yaml",
    ),
    (
        "sweeps/ablations",
        "recipe: avsl_proxy_anchor",
        "recipe: avsl_prox",
        r"avsl_edges\.recipe: unknown 'avsl_prox', did",
    ),
    (
        "sweeps/ablations",
        "datasets: [cars]",
        "datasets: [carz]",
        r"ablations\.yaml, avsl_edges, datasets: unknown 'carz'",
    ),
    (
        "sweeps/ablations",
        "[R@1, RP, MAP@R]",
        "[R@1, RPP]",
        r"ablations\.yaml, avsl_edges, metrics: unknown 'RPP', did you",
    ),
    (
        "scales/mini",
        "{stands_for: cub}",
        "{stands_for: cup}",
        r"datasets\.figurines_birds\.stands_for: unknown 'cup', .*'cub'",
    ),
    (
        "recipes/diml",
        "recipes:\n",
        "recipes:\n\tx: 1\n",
        r"recipes/diml\.yaml, line \d+: is no valid YAML, found character",
    ),
    ("published/diml.csv", "paper,table", "papers,table", r"diml\.csv, line 1: columns must be paper, table, dataset"),
    ("published/diml.csv", PRINTED, "diml,T1,cub,", r"diml\.csv, line \d+: 11 fields, not the 12 of line 1"),
    ("published/diml.csv", PRINTED, f"x,{PRINTED}", r"diml\.csv, line \d+: 13 fields, not the 12 of line 1"),
    ("published/diml.csv", PRINTED, f'"{PRINTED}', r"diml\.csv, line \d+: .*is a quotation mark left open\?"),
    ("published/diml.csv", PRINTED, "diml,T1,,Contrasitive,", r"diml\.csv, line \d+, dataset: is empty"),
    ("published/diml.csv", PRINTED, "dimm,T1,cub,Contrasitive,", r"paper: 'dimm' stands in the file of 'diml'"),
    ("published/diml.csv", "61.77", "inf", r"diml\.csv, line \d+, value: 'inf' is no number"),
]


@pytest.fixture(autouse=True)
def _nothing_remembered():
    from lookalike.tables.published import published_numbers

    published_numbers.cache_clear()
    yield
    published_numbers.cache_clear()


@pytest.mark.parametrize(("file", "old", "new", "message"), REFUSED)
def test_parameter_files_are_refused_with_file_key_and_what_would_be_right(params, file, old, new, message):
    spoil(path_of(params, file), old, new)
    with pytest.raises(ValueError, match=message):
        _ = Plan(MINI).sweeps


def test_a_printed_number_that_stands_twice_is_refused(params):
    path = params / "published" / "diml.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], lines[4], *lines[5:]]))
    with pytest.raises(ValueError, match=r"diml\.csv, line 6: the number of line 5 stands here again"):
        Plan(MINI)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": [1, 0, 1]}, r"configuration, seeds: 1 stands twice in \[1, 0, 1\]"),
        ({"seeds": 3}, r"configuration, seeds: 3 is no list, \[3\] is one"),
        ({"scale": "minni"}, r"scales/minni\.yaml does not exist, did you mean 'mini'\? Known: ci, mini, paper"),
        ({"tables": ["diml_11"]}, r"configuration, tables: unknown 'diml_11', did you mean 'diml_1'"),
        ({"tables": []}, r"configuration, tables: \[\] should be non-empty"),
        ({"tables": ["diml_1", "diml_1"]}, r"configuration, tables: 'diml_1' stands twice"),
    ],
)
def test_a_configuration_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Plan({**MINI, **given})


def metrics_file(folder, name, code):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"code": code}))
    return {"metrics_file": str(path), "code_today": "new", "options": " --config scale=ci"}


def test_only_metrics_of_older_code_without_a_record_are_refused(tmp_path):
    runs = [metrics_file(tmp_path, name, code) for name, code in (("a", "new"), ("b", "old"), ("c", "older"))]
    files = [run["metrics_file"] for run in runs]
    refuse_unnoticed(runs, [files[0], str(tmp_path / "not there yet.json")])
    message = (
        rf"b\.json \(and 1 more\): made by older code, old, not today's new.*`snakemake {files[1]} {files[2]} --cores"
    )
    with pytest.raises(ValueError, match=message):
        refuse_unnoticed(runs, files)


def test_metrics_without_a_digest_are_older_and_a_run_that_asks_for_none_is_not():
    assert is_older({"code_today": "new"}, {})
    assert not is_older({}, {"code": "old"})


def test_a_model_of_an_older_format_says_what_to_do(tmp_path):
    path = tmp_path / "seed0.safetensors"
    settings = {"method": {"name": "embedder"}, "backbone": {"name": "tiny"}}
    about = {"settings": settings, "epochs": 1, "best_epoch": 1}
    write_tensors(path, {"last/model.x": torch.zeros(1)}, about)
    with pytest.raises(
        ValueError, match=r"seed0\.safetensors was written by other code .* Remove the file, and the next"
    ):
        load_model(path)


def test_a_broken_file_of_tensors_is_named(tmp_path):
    (tmp_path / "seed0.safetensors").write_bytes(b"half a file")
    with pytest.raises(
        ValueError, match=r"seed0\.safetensors is no whole safetensors file .*; remove it and call again"
    ):
        read_tensors(tmp_path / "seed0.safetensors")
