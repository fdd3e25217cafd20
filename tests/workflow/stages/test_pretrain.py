"""The start is drawn, trained and kept as a network that recipes can begin with."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from described import described
from figurines import PRESETS, write_figurines
from lookalike.base.files import read_tensors
from lookalike.models.backbones import Trunk
from lookalike.workflow.data import load_specification
from lookalike.workflow.data.checksums import weights_digest
from lookalike.workflow.settings.start import DrawnSet
from lookalike.workflow.stages import pretrain as stage
from trainings import section

CLASSES = {"train_classes": 4, "test_classes": 4, "images_per_class": (3,)}


def write_few(preset, root, *, seed):
    """Eight species of three pictures."""
    write_figurines(preset, root, seed=seed, parameters=replace(PRESETS[preset], **CLASSES))


def drawn(preset, seed):
    content = load_specification(f"figurines_{preset}").dump() | {"generator": {"preset": preset, "seed": seed}}
    del content["counts"]
    content["classes"] = {"train": [1, 4], "test": [5, 8]}
    return DrawnSet(name=f"{preset}-{seed}", specification=described(content))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    over = {"loss": {"name": "softmax"}, "sampler": {"name": "plain"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "write_figurines", write_few)
        stage.pretrain(
            section("embedder", over),
            drawn=[drawn("birds", 1001), drawn("birds", 1002), drawn("vehicles", 1001)],
            measured_on=[drawn("birds", 1009)],
            seed=0,
            code="c",
            folder=str(folder / "work"),
            weights=str(folder / "tiny.safetensors"),
            history=str(folder / "tiny.csv"),
        )
    return folder


def test_the_species_of_all_sets_are_classes_of_their_own(made):
    split = pd.read_csv(made / "work" / "split.csv")
    assert split.groupby("role")["label"].nunique().to_dict() == {"train": 24, "test": 8}
    assert (split.groupby("label").size() == 3).all()
    assert all((made / "work" / path).is_file() for path in split["path"])


def test_the_file_is_the_trunk_after_the_last_epoch_and_says_what_made_it(made):
    tensors, about = read_tensors(made / "tiny.safetensors")
    model, _ = read_tensors(made / "work" / "model.safetensors")
    trunk = Trunk("tiny", str(made / "tiny.safetensors"), "trained")
    for name, value in trunk.stages.state_dict().items():
        assert torch.equal(value, tensors[name])
        assert torch.equal(value, model[f"last/model.trunk.stages.{name}"])
    assert about["drawn"] == ["birds-1001", "birds-1002", "vehicles-1001"]
    assert (about["species"], about["code"], about["seed"]) == ({"train": 24, "test": 8}, "c", 0)
    assert {"settings", "data"} <= about.keys()
    assert len(weights_digest(str(made / "tiny.safetensors"))) == 64


def test_the_history_says_how_well_other_species_are_found(made):
    history = pd.read_csv(made / "tiny.csv")
    assert history["R@1"].between(0, 1).any()


def test_weights_of_another_network_are_refused_in_a_line(made):
    with pytest.raises(ValueError, match=r"tiny\.safetensors do not fit resnet18"):
        Trunk("resnet18", str(made / "tiny.safetensors"), "trained")
