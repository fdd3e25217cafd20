"""A saved training gives its model back, whole and at the epoch that was asked for."""

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from lookalike import load, transform_of
from lookalike.base.files import read_tensors, write_tensors
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.images import Images, batches
from lookalike.workflow.training.model_file import load_model
from lookalike.workflow.training.roles import read_role
from projects import ROOT
from trainings import METHODS, batch, save, section, write_dataset


def represented(each, model):
    with torch.inference_mode():
        return each.represent(model, batch(5)[0])


def alike(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_model_represents_images_as_the_model_in_memory_does(tmp_path, method):
    path = tmp_path / "seed0.safetensors"
    learners = save(path, method)
    found = {kind: represented(each.eval(), each.model) for kind, each in learners.items()}
    assert not alike(found["best"], found["last"])
    for kind, each in learners.items():
        model = load(path, kind)
        assert not any(module.training for module in model.modules())
        assert type(model) is type(each.model)
        assert model.state_dict().keys() == each.model.state_dict().keys()
        assert alike(represented(each, model), found[kind])
    assert alike(represented(learners["last"], load(path)), found["last"])


def test_what_a_section_has_gained_since_does_not_keep_a_model_from_being_read(tmp_path):
    learners = save(tmp_path / "model", "avsl")
    tensors, about = read_tensors(tmp_path / "model")
    older = {key: value for key, value in about["settings"].items() if key not in ("acceleration", "noise")}
    write_tensors(tmp_path / "older", tensors, {**about, "settings": {**older, "of another time": 1}})
    model = load(tmp_path / "older")
    assert alike(represented(learners["last"].eval(), model), represented(learners["last"], load(tmp_path / "model")))


def test_a_file_without_a_best_state_holds_it_as_the_last_one(tmp_path):
    learners = save(tmp_path / "model", "embedder", best_epoch=2)
    expected = represented(learners["last"].eval(), learners["last"].model)
    for checkpoint in ("best", "last"):
        assert alike(represented(learners["last"], load(tmp_path / "model", checkpoint)), expected)


def test_loading_needs_no_weights_to_start_from(tmp_path):
    path = tmp_path / "model"
    learners = save(path, "embedder")
    about = {
        "settings": section("embedder", {"backbone": {"weights": "weights/lost.pth"}}).dump(),
        "best_epoch": 1,
        "epochs": 2,
    }
    write_tensors(path, {f"last/{name}": tensor for name, tensor in learners["last"].state_dict().items()}, about)
    model, found = load_model(path)
    assert torch.equal(model.head.weight, learners["last"].model.head.weight)
    assert found.settings.backbone.weights == "weights/lost.pth"
    assert found.facts == {"best_epoch": 1, "epochs": 2}


@pytest.mark.parametrize("method", ["embedder", "avsl_margin", "diml", "sam"])
def test_exported_states_can_be_imported(tmp_path, method):
    learners = save(tmp_path / "model", method)
    best, last = load(tmp_path / "model", "best"), load(tmp_path / "model", "last")
    save_file(best.state_dict(), tmp_path / "exported.safetensors")
    last.load_state_dict(load_file(tmp_path / "exported.safetensors"))
    assert alike(represented(learners["best"], last), represented(learners["best"], best))


def test_another_checkpoint_is_refused(tmp_path):
    save(tmp_path / "model", "embedder")
    with pytest.raises(ValueError, match=r"checkpoint: unknown 'first', did you mean '\w+'"):
        load(tmp_path / "model", "first")


@pytest.mark.parametrize("read", [load, transform_of])
def test_a_file_that_is_no_trainings_is_refused(tmp_path, read):
    save_file({"weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match=r"other\.safetensors is not the model of a training"):
        read(tmp_path / "other.safetensors")
    write_tensors(tmp_path / "embeddings.safetensors", {"labels/test": torch.zeros(2)}, {"best_epoch": 1, "epochs": 2})
    with pytest.raises(ValueError, match=r"embeddings\.safetensors is not the model of a training"):
        read(tmp_path / "embeddings.safetensors")


@pytest.mark.parametrize("read", [load, transform_of])
def test_of_a_foreign_file_it_is_said_what_it_is_not_and_nobody_is_told_to_remove_it(read):
    with pytest.raises(ValueError, match=r"README\.md is no whole safetensors file") as refused:
        read(ROOT / "README.md")
    assert "\n" not in str(refused.value)
    assert "remove" not in str(refused.value).lower()


@pytest.mark.parametrize("view", [{"resize_px": 28, "crop_px": 24}, {"resize_px": None, "crop_px": 24}])
def test_the_transform_of_a_model_makes_the_images_that_the_pipeline_scores(tmp_path, view):
    save(tmp_path / "model", "embedder", over={"test_image": view})
    manifest = write_dataset(tmp_path / "pictures", {"test": 2})
    paths = read_role(str(manifest), str(tmp_path / "pictures"), "test").paths
    for path, mode in zip(paths, ("L", "P", "RGBA", "1", "CMYK"), strict=False):  # as people's pictures are
        Image.open(path).convert(mode).save(path, "TIFF")
    ((expected, _),) = batches(Images(paths, View(**view)), [range(len(paths))], seed=0, device=torch.device("cpu"))
    transform = transform_of(tmp_path / "model")
    assert torch.equal(torch.stack([transform(Image.open(path)) for path in paths]), expected)


def test_a_model_of_an_older_format_says_what_to_do(tmp_path):
    path = tmp_path / "seed0.safetensors"
    settings = {"method": {"name": "embedder"}, "backbone": {"name": "tiny"}}
    about = {"settings": settings, "epochs": 1, "best_epoch": 1}
    write_tensors(path, {"last/model.x": torch.zeros(1)}, about)
    with pytest.raises(ValueError, match=r"seed0\.safetensors was written by other code .* --forcerun train"):
        load_model(path)
