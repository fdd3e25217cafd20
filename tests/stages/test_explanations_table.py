"""The table of explanations is written in the forms that other tables take."""

import json

import pandas as pd
import pytest

from lookalike.stages.explanations_table import explanations_table

SETTINGS = {
    "title": "Quality of explanations",
    "seed": 0,
    "neutral": {"recipe": "untrained", "seed": 0},
    "grid": 14,
    "steps": 16,
}
VALUES = {"partner": [0.1, 0.2, 0.4], "planted": [0.9, 0.8, None]}


def written(folder, counts):
    rows, paths = [], {"measures": [], "metrics": []}
    for seed, count in enumerate(counts):
        values = {name: each[:count] for name, each in VALUES.items()}
        contents = {
            "measures": {"values": values, "reasons": {"gap": "the method has no sum"}, "object": None},
            "metrics": {"best": {"R@1": 0.5 + seed / 10}, "last": {"R@1": 0.0}},
        }
        rows.append(
            {"block": "b", "dataset": "d", "label": "it", "recipe": "r", "explainer": "attention", "seed": seed}
        )
        for kind, content in contents.items():
            path = folder / f"{kind}{seed}.json"
            path.write_text(json.dumps(content))
            paths[kind].append(str(path))
    explanations_table(SETTINGS, rows, scale="small", **paths, output=str(folder / "explanations"))


def test_numbers_words_and_latex_are_written(tmp_path):
    written(tmp_path, [3, 3])
    cells = pd.read_csv(tmp_path / "explanations.csv").set_index("column")
    assert cells.loc["partner", "mean"] == pytest.approx(0.7 / 3, rel=1e-5)
    assert cells.loc["planted", "pairs"] == 2
    assert cells.loc["R@1", "mean"] == pytest.approx(55)
    assert cells.loc["gap", "reason"] == "the method has no sum"
    assert (tmp_path / "explanations.md").read_text().startswith("# Quality of explanations\n\nScale: small. ")
    assert r"\toprule" in (tmp_path / "explanations.tex").read_text()


def test_rows_of_other_triplets_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"measures1\.json was measured on 2 triplets, others on 3; remove it"):
        written(tmp_path, [3, 2])
