"""An epoch may be chosen on training classes that are held out, and is then kept whatever the test pictures say."""

import numpy as np
import pandas as pd
import pytest

from lookalike.base.files import read_tensors
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.splits import held_out
from lookalike.workflow.stages.hold_out import hold_out
from lookalike.workflow.stages.train import best_epoch, train
from trainings import section, write_dataset


def test_a_fifth_of_the_training_classes_is_held_out_and_no_test_picture_is_left(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 2, "test": 2}, classes=10)
    hold_out(str(manifest), held_out=str(tmp_path / "held.csv"), seed=0)
    whole, held = read_manifest(manifest), read_manifest(tmp_path / "held.csv")
    assert set(held["path"]) == set(whole.loc[whole["role"] == "train", "path"])
    classes = {role: set(rows["label"]) for role, rows in held.groupby("role")}
    assert {role: len(labels) for role, labels in classes.items()} == {"train": 8, "test": 2}
    assert not classes["train"] & classes["test"]


def test_another_seed_holds_out_other_classes(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 1, "test": 1}, classes=10)
    chosen = []
    for seed in (0, 0, 1):
        hold_out(str(manifest), held_out=str(tmp_path / "held.csv"), seed=seed)
        held = read_manifest(tmp_path / "held.csv")
        chosen.append(set(held.loc[held["role"] == "test", "label"]))
    assert chosen[0] == chosen[1] != chosen[2]


def test_without_a_seed_the_last_classes_are_held_out(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 1, "test": 1}, classes=10)
    hold_out(str(manifest), held_out=str(tmp_path / "held.csv"), seed=None)
    held = read_manifest(tmp_path / "held.csv")
    classes = sorted(held["label"].unique())
    assert sorted(held.loc[held["role"] == "test", "label"].unique()) == classes[-2:]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_of_each_super_class_as_many_are_held_out(seed):
    labels = np.arange(40)
    rows = pd.DataFrame({"label": labels, "role": np.where(labels < 36, "train", "test"), "coarse_super": labels // 12})
    held = held_out(rows, seed=seed, source="split.csv")
    assert held["label"].tolist() == list(range(36))
    counts = held[held["role"] == "test"].groupby("coarse_super")["label"].count()
    assert sorted(counts) == [2, 2, 3]  # 7 of 36
    if seed is None:
        assert held.loc[held["role"] == "test", "label"].tolist() == [10, 11, 22, 23, 33, 34, 35]


def test_too_few_classes_are_refused(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 2, "test": 2}, classes=3)
    with pytest.raises(ValueError, match="has 3 training classes; to hold some out it takes at least 4"):
        hold_out(str(manifest), held_out=str(tmp_path / "held.csv"), seed=0)
    assert not (tmp_path / "held.csv").exists()


def test_the_first_of_the_best_epochs_is_chosen(tmp_path):
    path = tmp_path / "history.csv"
    pd.DataFrame({"epoch": [1, 2, 3, 4], "R@1": [0.1, None, 0.4, 0.4]}).to_csv(path, index=False)
    assert best_epoch(str(path)) == 3


def test_the_chosen_epoch_is_kept_and_no_test_picture_ends_the_training(tmp_path):
    manifest = write_dataset(tmp_path, {"train": 2, "test": 2})
    history = tmp_path / "selection.csv"
    pd.DataFrame({"epoch": [1, 2, 3], "R@1": [0.1, 0.4, 0.2]}).to_csv(history, index=False)
    budget = {"budget": {"epochs": 3, "patience": 1, "collapse": 0.99}}
    data = {"manifest": str(manifest), "root": str(tmp_path)}
    files = {name: str(tmp_path / name) for name in ("model", "history", "resume")}
    train(section("embedder", budget), seed=0, code="c", **data, **files, selection=str(history))
    about = read_tensors(tmp_path / "model")[1]
    assert (about["best_epoch"], about["epochs"], about["selected_epoch"]) == (2, 3, 2)
