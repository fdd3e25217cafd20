"""The differences that trials make are written for their scale, and published only where that is asked for."""

import json

import pandas as pd
import pytest

from lookalike.plan.fidelity import trials
from lookalike.stages.fidelity import fidelity

TRIAL = next(trial for trial in trials() if trial.option == "ties")


@pytest.fixture
def write(tmp_path):
    """Run the stage on metrics of two seeds."""

    def run(published):
        place = {"recipe": TRIAL.name, "unchanged": TRIAL.recipe, "dataset": "birds", "published": "cub"}
        files = {}
        for side, recall in (("metrics", 0.6), ("metrics_unchanged", 0.5)):
            files[side] = [tmp_path / f"{side}{seed}.json" for seed in (0, 1)]
            for path in files[side]:
                scores = {"best": {"R@1": recall, "MAP@R": 0.1}, "last": {"R@1": 0.0, "MAP@R": 0.0}}
                path.write_text(json.dumps(scores))
        runs = [{**place, "seed": seed} for seed in (0, 1)]
        fidelity(runs, scale="ci", overruled=[], **files, output=str(tmp_path / "fidelity"), published=published)
        return tmp_path

    return run


def test_the_best_epochs_are_compared(write):
    cells = pd.read_csv(write("") / "fidelity.csv").set_index("metric")
    assert cells["difference"].to_dict() == {"R@1": pytest.approx(10), "MAP@R": 0}
    assert set(cells["option"]) == {"ties"}


def test_the_document_is_published_only_where_it_is_asked_for(write, tmp_path):
    folder = write("")
    assert "R@1 +10.0 (+10.0 to +10.0)" in (folder / "fidelity.md").read_text()
    assert not (folder / "docs").exists()
    write(str(tmp_path / "docs" / "fidelity.md"))
    assert (folder / "docs" / "fidelity.md").read_text() == (folder / "fidelity.md").read_text()
