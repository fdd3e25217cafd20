"""Rows are read from what the workflow leaves, and rows of one training stand together."""

import numpy as np
import pandas as pd
import pytest

from lookalike.files import write_json
from lookalike.own.recommend.rows import UNTRAINED, Way, read_row, trainings_of
from lookalike.own.recommend.schedule import ORDER
from lookalike.plan.plan import Plan
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.settings.layers import merge

OVERLAY = {"name": "own_x", "datasets": {"pictures": {"layout": "folder", "folder": "x"}}, "seeds": [0, 1]}


@pytest.fixture(scope="module")
def plan():
    return Plan(merge(read("params/config.yaml", Configuration).dump(), OVERLAY))


def test_rows_that_share_a_training_stand_together_and_all_are_known_to_the_order(plan):
    found = {each.label: [way.label for way in each.ways] for each in trainings_of(plan, "pictures")}
    assert found["ProxyAnchor"] == ["ProxyAnchor", "ProxyAnchor + DIML"]
    assert found["ProxyAnchor-AVSL"] == ["ProxyAnchor-AVSL"]
    assert set(found) == set(ORDER)


def test_the_untrained_rows_are_recipes_of_one_training_that_differ_in_matching(plan):
    assert len({plan.shared("train", way.recipe, "pictures") for way in UNTRAINED}) == 1
    settings = [plan.deciding(way.recipe, "pictures") for way in UNTRAINED]
    assert [each["train"]["loss"] for each in settings] == [None, None]
    assert [each["evaluate"]["scoring"]["name"] for each in settings] == ["cosine", "structural_matching"]


def test_a_row_holds_percent_by_seed_and_class_with_its_costs(plan, tmp_path):
    for seed in (0, 1):
        stem = tmp_path / "metrics" / "compared_margin" / "pictures" / f"seed{seed}"
        facts = {"best_epoch": 2, "epochs": 2, "pictures": 50, "searched": 50}
        write_json(stem.with_suffix(".json"), {"best": {}, "last": {}, **facts})
        rows = {"label": [3, 5], "queries": [30, 20], "R@1": [0.5 + seed / 10, 0.25], "MAP@R": [0.25, 0.1]}
        frame = pd.DataFrame(rows).assign(checkpoint="best", pictures="test")  # the last epoch is the best one
        frame.to_csv(stem.with_suffix(".classes.csv"), index=False)
        for stage, took in (("train", 120), ("embed", 5), ("evaluate", 10)):
            path = tmp_path / "timings" / stage / f"compared_margin-pictures-seed{seed}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"s\th:m:s\n{took}\t0\n")
    way, manifest = Way("Margin", "compared_margin"), tmp_path / "manifest.csv"
    listed = [f"a{number}.jpg,3,test" for number in range(30)] + [f"b{number}.jpg,5,test" for number in range(20)]
    manifest.write_text("\n".join(["path,label,role", *listed]) + "\n")
    row = read_row(plan, tmp_path, way, start="net", dataset="pictures", seeds=[0, 1], manifest=manifest)
    np.testing.assert_allclose(row.of_classes["R@1"], [[50, 25], [60, 25]])
    assert row.mean() == pytest.approx((30 * 55 + 20 * 25) / 50)
    assert (row.trained, row.structural, row.seeds, row.training_s) == (True, False, 2, 120)
    assert row.query_ms == pytest.approx(1000 * (5 / 50 + 10 / 50))
    assert row.name == "Margin (net)"
    assert (row.gallery, row.searched) == (None, 50)
    listed = ["q.jpg,3,query", *(f"g{number}.jpg,{label},gallery" for number, label in enumerate((3, 3, 5, 9)))]
    manifest.write_text("\n".join(["path,label,role", *listed]) + "\n")
    row = read_row(plan, tmp_path, way, start="net", dataset="pictures", seeds=[0, 1], manifest=manifest)
    assert row.gallery is not None
    assert (row.gallery.tolist(), row.searched) == ([2, 1], 4)
