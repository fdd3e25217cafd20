"""A linear embedding of fixed features, trained in batches and on the whole set."""

import pytest
import torch

from figure_checks import so
from lookalike.base.files import write_tensors
from lookalike.workflow.report.figures.contextual.decomposability import Options, checks, data, measured, standardised
from lookalike.workflow.report.figures.parts.form import Run

OPTIONS = {
    "lams": [0.0, 1.0],
    "per_class": [2, "all"],
    "iterations": 5,
    "measured_every": 2,
    "embedding_dim": 6,
    "lr": 1e-2,
    "eps": 0.05,
    "alpha": 10.0,
    "positive_margin": 0.75,
    "negative_margin": 0.6,
}
LABELS = torch.tensor([7, 7, 7, 7, 9, 9, 9, 9, 9, 4, 4, 4])


def run(folder, role="train"):
    path = folder / "features.safetensors"
    features = torch.randn(12, 8, generator=torch.Generator().manual_seed(0))
    write_tensors(path, {f"last/{role}/embedding": features, f"labels/{role}": LABELS}, {})
    return Run("untrained_seen", "cub", "birds", 1, "embeddings", str(path))


def test_standardised_features_have_no_constant_columns():
    features = standardised(torch.tensor([[1.0, 5.0, 2.0], [3.0, 5.0, 2.5], [8.0, 5.0, 0.0]]))
    assert features.shape == (3, 2)
    assert torch.allclose(features.mean(dim=0), torch.zeros(2), atol=1e-6)
    assert torch.allclose(features.std(dim=0), torch.ones(2), atol=1e-6)


def test_a_perfect_ranking_is_measured_as_one():
    labels = torch.arange(3).repeat_interleave(4)
    found = measured(torch.eye(3)[labels], labels, 4, Options(**OPTIONS))
    assert found == {"R@1": 1.0, "MAP@R": 1.0, "contextual": 0.0}


def test_every_cell_of_the_grid_has_its_curve(tmp_path):
    frame = data([run(tmp_path)], Options(**OPTIONS))
    assert frame.groupby(["batch_size", "lam"])["iteration"].apply(list).tolist() == [[0, 2, 4, 5]] * 4
    assert frame.groupby("batch_size")["whole"].first().to_dict() == {6: False, 12: True}
    start = frame[frame["iteration"] == 0]
    assert start["MAP@R"].nunique() == 1  # all start from the same embedding
    assert frame["dataset"].unique() == ["birds"]
    assert frame.equals(data([run(tmp_path)], Options(**OPTIONS)))


def test_the_verdicts_follow_the_ends_of_the_curves(tmp_path):
    frame = data([run(tmp_path)], Options(**OPTIONS))
    end, whole, alone = frame["iteration"] == 5, frame["whole"], frame["lam"] == 1
    frame["MAP@R"] = 0.5
    assert [so(check) for check in checks(frame)] == [False, False, False]
    frame.loc[end & whole & alone, "MAP@R"] = 1.0
    assert [so(check) for check in checks(frame)] == [True, True, True]
    frame.loc[end & whole & ~alone, "MAP@R"] = 2.0
    assert [so(check) for check in checks(frame)] == [True, True, False]


def test_the_whole_set_is_known_by_name_where_batches_drawn_again_and_again_are_larger(tmp_path):
    frame = data([run(tmp_path)], Options(**{**OPTIONS, "per_class": [6, "all"]}))
    assert frame.groupby("whole")["batch_size"].first().to_dict() == {False: 18, True: 12}
    frame["MAP@R"] = frame["whole"].astype(float)
    first, *_ = checks(frame)
    assert first.says == "λ = 1 is worse with batches of 18 than with the whole set: MAP@R 0.0 % against 100.0 %"


def test_features_of_test_pictures_alone_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no last/train/embedding; embed\.training_pictures of its recipe"):
        data([run(tmp_path, role="test")], Options(**OPTIONS))
