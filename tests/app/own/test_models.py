"""RUN is a finished training, or a network as it was published."""

import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torchvision import models

from lookalike import load, transform_of
from lookalike.app.own.models import last_map, open_model
from lookalike.models.backbones import Tiny
from lookalike.workflow.settings.recipes import View
from trainings import batch, save


@pytest.fixture
def tiny(tmp_path):
    """Weights of a network in torchvision's layout, and that network."""
    torch.manual_seed(1)
    network = Tiny().eval()
    save_file(network.state_dict(), tmp_path / "tiny.safetensors")
    return tmp_path / "tiny.safetensors", network


def test_an_untrained_network_is_averaged_and_seen_at_its_own_size(tiny):
    path, network = tiny
    model = open_model(f"untrained:tiny={path}")
    assert model.view == View(resize_px=256, crop_px=224)
    image = model.transform(Image.effect_noise((300, 260), 40))
    assert image.shape == (3, 224, 224)
    with torch.no_grad():
        maps = network.stage3(network.stage2(network.stage1(image[None])))
        torch.testing.assert_close(model.network(image[None]), maps.mean(dim=(2, 3)))


def test_another_size_keeps_the_proportion_of_crop_and_picture(tiny):
    assert open_model(f"untrained:tiny={tiny[0]}", size_px=112).view == View(resize_px=128, crop_px=112)
    with pytest.raises(ValueError, match="size 0 px: images have a side of 1 to 4096"):
        open_model(f"untrained:tiny={tiny[0]}", size_px=0)
    with pytest.raises(ValueError, match=r"^size 16 px: the network takes no such image \(.*\)$"):
        open_model("untrained:squeezenet1_1", size_px=16)


def test_a_finished_training_is_what_load_and_transform_of_give(tmp_path):
    path = tmp_path / "seed0.safetensors"
    save(path, "embedder")
    model, images = open_model(str(path)), batch(3)[0]
    with torch.no_grad():
        assert torch.equal(model.network(images), load(path)(images))
        assert torch.equal(open_model(str(path), checkpoint="best").network(images), load(path, "best")(images))
    picture = Image.effect_noise((40, 50), 40)
    assert torch.equal(model.transform(picture), transform_of(path)(picture))


def test_weights_and_view_tell_models_apart(tiny, tmp_path):
    path, network = tiny
    first = open_model(f"untrained:tiny={path}").digest
    assert open_model(f"untrained:tiny={path}").digest == first
    assert open_model(f"untrained:tiny={path}", size_px=56).digest != first
    with torch.no_grad():
        next(network.parameters()).add_(1)
    save_file(network.state_dict(), path)
    assert open_model(f"untrained:tiny={path}").digest != first
    run = tmp_path / "seed0.safetensors"
    save(run, "embedder")
    assert open_model(str(run)).digest != open_model(str(run), checkpoint="best").digest


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "results/mini/models/margin/x/seed0.safetensors",
            "no such file; a training that has not finished leaves none",
        ),
        ("margin", "margin: a model is the file of a finished training, results/.* or untrained:NAME"),
        ("untrained:resnet500", "untrained: unknown 'resnet500', did you mean 'resnet50'"),
        ("untrained:tiny=nowhere.pth", "untrained:tiny=nowhere.pth: there is no file nowhere.pth"),
        ("untrained:tiny", "weights 'IMAGENET1K_V1': no such file"),
    ],
)
def test_what_is_no_model_is_refused(name, said):
    with pytest.raises(ValueError, match=said):
        open_model(name)


def test_weights_that_cannot_be_downloaded_are_asked_for_as_a_file(monkeypatch):
    def away(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr(torch.hub, "download_url_to_file", away)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: "/nowhere")
    monkeypatch.setattr("os.makedirs", lambda *args, **kwargs: None)
    with pytest.raises(
        ValueError, match=r"weights IMAGENET1K_V1 cannot be had .*; untrained:resnet18=FILE reads a file"
    ):
        open_model("untrained:resnet18")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", "layer4"),
        ("mobilenet_v3_small", "features"),
        ("shufflenet_v2_x0_5", "conv5"),
        ("swin_t", "permute"),  # the map of a transformer with places, channels brought to the front
    ],
)
def test_the_last_map_of_a_classifier_is_found(name, expected):
    assert last_map(models.get_model(name, weights=None)) == expected


def test_networks_without_maps_are_refused():
    with pytest.raises(ValueError, match="VisionTransformer ends with no map"):
        last_map(models.vit_b_32(weights=None))
    with pytest.raises(ValueError, match="Sequential ends with no map"):
        last_map(nn.Sequential(nn.Flatten(), nn.Linear(3 * 224 * 224, 2)))


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_weights_that_are_not_finite_are_refused_by_file_and_tensor(tmp_path, suffix, value):
    state = Tiny().state_dict()
    state["stage2.1.running_var"][3] = value
    path = tmp_path / f"tiny.{suffix}"
    (torch.save if suffix == "pth" else save_file)(state, path)
    with pytest.raises(ValueError, match=rf"{path}: stage2\.1\.running_var holds NaN or infinity"):
        open_model(f"untrained:tiny={path}")


def test_a_run_whose_weights_are_not_finite_is_refused(tmp_path):
    path = tmp_path / "seed0.safetensors"
    save(path, "embedder")
    with safe_open(path, "pt") as stream:
        header = stream.metadata()
    tensors = load_file(path)
    tensors["best/model.head.weight"][0, 0] = torch.nan
    save_file(tensors, path, header)
    for read in (open_model, load):
        with pytest.raises(ValueError, match=rf"{path}: best/model\.head\.weight holds NaN or infinity"):
            read(str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"model": {"a": torch.zeros(1)}}, "'model' is a dict; a state dict holds tensors alone"),
        ([torch.zeros(1)], "holds a list, no state dict of tensors by name"),
    ],
)
def test_a_file_with_more_than_a_state_dict_says_what_it_holds(tmp_path, content, said):
    torch.save(content, tmp_path / "tiny.pth")
    with pytest.raises(ValueError, match=said):
        open_model(f"untrained:tiny={tmp_path / 'tiny.pth'}")
