"""The table of explanations says what many triplets and a few seeds come to, and why a number is missing."""

import json
from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import t as student

from lookalike.workflow.plan.explanations import Explained
from lookalike.workflow.report.explanations import (
    CELLS,
    COLUMNS,
    NOTHING,
    RECALL,
    explanation_cells,
    explanations_table,
    over_pairs,
    readers_table,
)
from lookalike.workflow.report.tables.render import latex, markdown
from lookalike.workflow.settings import pages

SETTINGS = {
    "title": "Quality of explanations",
    "seed": 3,
    "triplets": 40,
    "neutral": {"recipe": "untrained", "seed": 0},
    "grid": 14,
    "steps": 16,
    "substitutes": ["blur"],
    "datasets": ["birds"],
    "blocks": [{"title": "b", "rows": [{"label": "it", "recipe": "r", "explainer": "attention"}]}],
}
COUNT = 40
NO_SUM = "the method has no sum"
VALUES = {"partner": [0.1, 0.2, 0.4], "planted": [0.9, 0.8, None]}


def row(label, explainer, seed, block="One model"):
    return Explained(block, "birds", label, "margin", explainer, seed)


def measured(seed, *, without=(), hidden=()):
    generator = torch.Generator().manual_seed(seed)
    names = ["deletion_blur", "whole_blur", "agreement", "pck@0.1", "ceiling@0.1", "same_place@0.1", "partner", "gap"]
    values = {name: torch.rand(COUNT, generator=generator, dtype=torch.float64).tolist() for name in names}
    for place in hidden:
        values["agreement"][place] = None
    for name in without:
        del values[name]
    return {"values": values, "reasons": dict.fromkeys(without, NO_SUM)}


ROWS = [row("exact", "activation", seed) for seed in (0, 1)] + [row("chance", "random", seed) for seed in (0, 1)]


MEASURES = [
    measured(0, hidden=[2]),
    measured(1, hidden=[2, 5]),
    measured(2, without=["gap"]),
    measured(3, without=["gap"]),
]


RECALLS = [0.5, 0.6, 0.5, 0.6]


@pytest.fixture(scope="module")
def cells():
    return explanation_cells(ROWS, MEASURES, RECALLS)


def cell(cells, label, column):
    (found,) = cells[(cells["label"] == label) & (cells["column"] == column)].to_dict("records")
    return found


def text(cells):
    said = {"counts": {"birds": COUNT}, "objects": {"birds": "box"}, "scale": "small"}
    table = readers_table(pages.Explanations(**SETTINGS), cells, **said)
    return markdown(table), latex(table)


def test_a_cell_is_the_mean_over_triplets_and_seeds_with_its_interval(cells):
    assert list(cells.columns) == CELLS
    values = torch.tensor([MEASURES[0]["values"]["partner"], MEASURES[1]["values"]["partner"]])
    estimate = over_pairs(values)
    found = cell(cells, "exact", "partner")
    assert (found["mean"], found["pairs"], found["seeds"]) == (pytest.approx(float(values.mean())), COUNT, 2)
    assert (found["low"], found["high"]) == pytest.approx(estimate.interval(0.05))
    assert cell(cells, "exact", RECALL)["mean"] == pytest.approx(55)


def test_deletion_is_in_units_of_what_each_training_has_to_lose(cells):
    expected = []
    for measures in MEASURES[:2]:
        scale = sum(abs(value) for value in measures["values"]["whole_blur"]) / COUNT
        expected += [value / scale for value in measures["values"]["deletion_blur"]]
    assert cell(cells, "exact", "deletion_blur")["mean"] == pytest.approx(sum(expected) / len(expected))
    assert not set(cells["column"]) & {"whole_blur", "whole_mean"}


def test_a_triplet_without_a_value_in_any_seed_is_left_out_and_counted(cells):
    assert cell(cells, "exact", "agreement")["pairs"] == COUNT - 2
    words, _ = text(cells)
    assert (
        f"Not all of the {COUNT} triplets are behind each number, but, by row, part agreement {COUNT - 2} to" in words
    )


def test_a_missing_number_has_a_reason_in_place_of_it(cells):
    found = cell(cells, "chance", "gap")
    assert found["reason"] == NO_SUM and isnan(found["mean"])
    words, _ = text(cells)
    assert "Empty, as the method has no sum: completeness gap of chance." in words
    for measures in (never := [measured(seed) for seed in range(2)]):
        measures["values"]["agreement"] = [None] * COUNT
    assert cell(explanation_cells(ROWS[:2], never, RECALLS[:2]), "exact", "agreement")["reason"] == NOTHING


def test_every_column_is_explained_and_says_which_way_is_better(cells):
    words, _ = text(cells)
    for column in COLUMNS:
        assert f"\n- {column.heading}: {column.says.format(chance=16 / 14**2)}." in words
        if column.name not in (RECALL, "gap", "deletion_mean"):
            assert "higher is better" in column.says.lower() or "lower is better" in column.says.lower(), column.name
    assert "in that box; higher is better, 0.08 is chance." in words
    assert "order of cells alone" in words  # what a planted difference means without a sum
    assert "seed 3" in words and "14 x 14 cells" in words and "`untrained`" in words and "its box on birds" in words


def test_rows_stand_in_blocks_with_controls_in_italics_and_ceilings_beside(cells):
    words, letters = text(cells)
    lines = [line for line in words.splitlines() if line.startswith("|")]
    assert words.count("\n## ") == 1 and "## One model: birds" in words
    assert lines[2].startswith("| exact ") and lines[3].startswith("| *chance*")
    found = cell(cells, "exact", "pck@0.1")
    beside = [cell(cells, "exact", name)["mean"] for name in ("ceiling@0.1", "same_place@0.1")]
    assert (
        f"{found['mean']:.2f} ± {found['high'] - found['mean']:.2f} (of {beside[0]:.2f}, stay {beside[1]:.2f})"
        in lines[2]
    )
    assert r"\textit{chance}" in letters and r"$\pm$" in letters
    assert lines[3].count(" – ") >= 1


def test_one_training_has_an_interval_over_triplets_and_a_recall_without_one():
    cells = explanation_cells(ROWS[:1], MEASURES[:1], [0.5])
    assert cell(cells, "exact", "partner")["low"] < cell(cells, "exact", "partner")["mean"]
    assert isnan(cell(cells, "exact", RECALL)["low"])
    assert "| 50.0 " in text(cells)[0]


def test_an_empty_plan_makes_an_empty_table():
    assert explanation_cells([], [], []).equals(pd.DataFrame([], columns=CELLS))


def test_no_number_is_below_zero_by_rounding_alone_and_columns_that_nothing_fills_are_left_out(cells):
    words, _ = text(cells.assign(mean=-0.001, low=-0.002, high=0.0))
    line = next(line for line in words.splitlines() if line.startswith("| exact "))
    assert "| 0.00 ± 0.00 " in line and "-0.00" not in line
    header = next(line for line in words.splitlines() if line.startswith("| explanation "))
    assert "deletion, blur" in header and "deletion, mean" not in header
    assert "-1e-03 |" in " ".join(line.split())  # of the gap no interval


def write(folder, counts):
    rows, paths = [], {"measures": [], "metrics": []}
    for seed, count in enumerate(counts):
        values = {name: each[:count] for name, each in VALUES.items()}
        contents = {
            "measures": {"values": values, "reasons": {"gap": "the method has no sum"}, "object": None},
            "metrics": {"last": {"R@1": 0.5 + seed / 10}, "best": {"R@1": 0.0}},
        }
        rows.append(
            {"block": "b", "dataset": "d", "label": "it", "recipe": "r", "explainer": "attention", "seed": seed}
        )
        for kind, content in contents.items():
            path = folder / f"{kind}{seed}.json"
            path.write_text(json.dumps(content))
            paths[kind].append(str(path))
    explanations_table(SETTINGS, rows, scale="small", **paths, output=str(folder / "explanations.csv"))


def test_numbers_words_and_latex_are_written(tmp_path):
    write(tmp_path, [3, 3])
    cells = pd.read_csv(tmp_path / "explanations.csv").set_index("column")
    assert cells.loc["partner", "mean"] == pytest.approx(0.7 / 3, rel=1e-5)
    assert cells.loc["planted", "pairs"] == 2
    assert cells.loc["R@1", "mean"] == pytest.approx(55)
    assert cells.loc["gap", "reason"] == "the method has no sum"
    assert (tmp_path / "explanations.md").read_text().startswith("# Quality of explanations\n\nScale: small. ")
    assert r"\toprule" in (tmp_path / "explanations.tex").read_text()


def test_rows_of_other_triplets_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"measures1\.json was measured on 2 triplets, others on 3; remove it"):
        write(tmp_path, [3, 2])


def test_the_interval_of_one_training_is_students_over_pairs():
    values = torch.randn(1, 40, generator=torch.Generator().manual_seed(0)).double()
    numbers = values[0].numpy()
    found = over_pairs(values)
    expected = student.interval(0.95, 39, numbers.mean(), numbers.std(ddof=1) / 40**0.5)
    assert found.mean == pytest.approx(numbers.mean())
    assert found.interval(0.05) == pytest.approx(expected)


def test_a_pair_without_a_value_in_one_training_is_left_out_of_all():
    values = torch.randn(3, 20, generator=torch.Generator().manual_seed(0)).double()
    values[0, 4] = values[2, 7] = torch.nan
    kept = np.delete(values.numpy(), [4, 7], axis=1)
    found = over_pairs(values)
    assert (found.seeds, found.classes) == (3, 18)
    assert found.mean == pytest.approx(kept.mean())
    assert found.interval(0.05) == pytest.approx(over_pairs(torch.from_numpy(kept)).interval(0.05))


def test_trainings_on_two_halves_are_explained_on_triplets_of_their_own():
    halves = torch.randn(2, 2, 20, generator=torch.Generator().manual_seed(0)).double()
    halves[1, 0, 5] = torch.nan
    found = over_pairs(halves[0], halves[1])
    kept = np.delete(halves[1].numpy(), 5, axis=1)
    assert (found.seeds, found.classes) == (4, 39)
    assert found.mean == pytest.approx((20 * halves[0].numpy().mean() + 19 * kept.mean()) / 39)
    rows = [replace(row("exact", "activation", seed), half="second" if seed % 2 else "") for seed in range(4)]
    cells = explanation_cells(rows, [measured(seed) for seed in range(4)], [0.5, 0.25, 0.5, 0.25])
    recall, agreement = (cells[cells["column"] == name].iloc[0] for name in ("R@1", "agreement"))
    assert (recall["mean"], recall["seeds"]) == (37.5, 4)
    assert (agreement["pairs"], agreement["seeds"]) == (2 * COUNT, 4)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        values = 0.3 + rng.normal(0, 0.1, (3, 1)) + rng.normal(0, 0.5, (1, 30)) + rng.normal(0, 0.2, (3, 30))
        low, high = over_pairs(torch.from_numpy(values)).interval(0.05)
        held += low < 0.3 < high
    assert held / 400 > 0.93


def test_no_values_at_all_are_refused():
    with pytest.raises(ValueError, match="none of 2 pairs has a value in all of 2 trainings"):
        over_pairs(torch.tensor([[torch.nan, 1.0], [1.0, torch.nan]]))
    with pytest.raises(ValueError, match=r"values must be \(S, N\), seeds and pairs, not \(5,\)"):
        over_pairs(torch.zeros(5))
