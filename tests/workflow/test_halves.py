"""Seeds that train on either half of the classes, in real calls of Snakemake."""

import csv

import pandas as pd
import pytest

LINE = "--cores 2 --resources gpu=1 tables --configfile own.yaml"
CROSSED = "halves: crossed\nseeds: [0, 1]\n"

pytestmark = pytest.mark.slow


def test_seeds_of_two_halves_end_in_a_table_and_none_is_tested_on_what_it_learned(project):
    project.edit("own.yaml", "tables: [comparison]", "tables: [ci_levels]")
    project.edit("own.yaml", "folder: pictures}", "folder: pictures, stands_for: cub}")
    with (project.root / "own.yaml").open("a") as overlay:
        overlay.write(CROSSED)
    done = project.run(LINE)
    assert done.returncode == 0, done.stderr
    results, splits = project.root / "results" / "own", project.root / "data" / "own" / "splits"
    lists = [pd.read_csv(splits / f"pictures{half}.csv") for half in ("", ".second")]
    for seed, listed in enumerate(lists):
        learned, tested = (set(listed.loc[listed["role"] == role, "label"]) for role in ("train", "test"))
        assert len(learned) == len(tested) == 4
        assert not learned & tested
        files = list((results / "metrics").rglob(f"seed{seed}.classes.csv"))
        assert len(files) == 8  # what nothing trains, too
        assert all(set(pd.read_csv(file)["label"]) == tested for file in files)
    with (results / "tables" / "ci_levels.csv").open() as stream:
        cells = list(csv.DictReader(stream))
    assert {cell["n"] for cell in cells} == {"2"}
    assert all(0 <= float(cell["mean"]) <= 100 for cell in cells)
    assert "Two fixed training halves: " in (results / "tables" / "ci_levels.md").read_text()
    again = project.run(LINE)
    assert "Nothing to be done" in again.stdout + again.stderr
