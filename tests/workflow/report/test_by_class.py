"""What single classes reached is gathered whole, so that whoever doubts a verdict can judge anew."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lookalike.workflow.plan.claims import Claims, claim_runs, read_claims
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.by_class import classes


def write(folder, name, **values):
    rows = pd.DataFrame({"label": ["a", "b"], "queries": [10, 30], "pictures": "test", "checkpoint": "last", **values})
    rows.to_csv(folder / f"{name}.classes.csv", index=False)
    return str(folder / f"{name}.json")


def test_all_models_classes_stand_in_one_file_of_equal_bytes_for_equal_rows(tmp_path):
    files = [
        write(tmp_path, "0", **{"R@1": [0.5, 0.25], "RP": [0.4, 0.2]}),
        write(tmp_path, "1", **{"R@1": [1.0, 0.0]}),
    ]
    files.append(str(tmp_path / "attention.json"))
    models = [("margin", 0), ("margin", 1), ("sam", 0)]
    outputs = [tmp_path / f"{number}.csv.xz" for number in range(2)]
    for output in outputs:
        classes(models, metrics=files, output=str(output))
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    read = pd.read_csv(outputs[0])
    assert list(read.columns) == ["recipe", "seed", "label", "queries", "R@1", "RP"]
    assert list(read["R@1"]) == [0.5, 0.25, 1.0, 0.0]
    means = [np.average(each["R@1"], weights=each["queries"]) for _, each in read.groupby(["recipe", "seed"])]
    assert means == pytest.approx([0.3125, 0.25])
    assert read["RP"].isna().tolist() == [False, False, True, True]


def test_no_model_is_an_empty_file_with_its_columns(tmp_path):
    classes([], metrics=[], output=str(tmp_path / "none.csv.xz"))
    assert not len(pd.read_csv(tmp_path / "none.csv.xz"))


def test_a_data_sets_models_are_all_that_claims_read_of_it_and_those_of_the_comparison():
    plan = Plan({"scale": "mini", "seeds": [0, 1], "archives": "data/archives", "tracking": False})
    runs = [run for run in claim_runs(plan, read_claims(plan)) if run.dataset == "figurines_birds"]
    read = {
        recipe for run in runs for side in ("changed", "learned", "started", "mapped") for _, recipe in run.read(side)
    }
    claims = Claims(Evidence(Inputs(plan), recorded=lambda file: True))
    models = {recipe for recipe, _ in claims.models(SimpleNamespace(dataset="figurines_birds"))}
    assert read < models
    assert {*plan.runs_of("methods")["recipe"]} <= models
