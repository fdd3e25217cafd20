"""Networks of timm give maps of places, of tokens too, and see their images as they were trained to."""

import shutil

import pytest
import torch
from safetensors.torch import save_file

from lookalike import explain, open_model
from lookalike.app.own.models import TimmTrunk, timm_names
from lookalike.workflow.settings.recipes import View

timm = pytest.importorskip("timm", reason="timm is not installed")

VIT, SWIN, CONVNET = "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "convnext_atto"
IMAGES = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
AT = {  # a place in what timm gives
    VIT: lambda features, row, column, places: features[:, 1 + row * places + column],  # behind the class token
    SWIN: lambda features, row, column, places: features[:, row, column],
    CONVNET: lambda features, row, column, places: features[:, :, row, column],
}


@pytest.fixture
def file_of(tmp_path):
    """Weights of a network, as a random start; and that network."""

    def make(name):
        torch.manual_seed(1)
        network = timm.create_model(name, pretrained=False).eval()
        save_file(network.state_dict(), tmp_path / f"{name}.safetensors")
        return str(tmp_path / f"{name}.safetensors"), network

    return make


@pytest.mark.parametrize(("name", "places"), [(VIT, 14), (SWIN, 7), (CONVNET, 7)])
def test_places_lie_as_on_the_picture_whatever_the_network_calls_them(file_of, name, places):
    path, network = file_of(name)
    trunk = TimmTrunk(name, path).eval()
    mean, std = (torch.tensor(network.default_cfg[key]).view(3, 1, 1) for key in ("mean", "std"))
    pixels = IMAGES * torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1) + torch.tensor([0.485, 0.456, 0.406]).view(
        3, 1, 1
    )
    with torch.no_grad():
        [found] = trunk(IMAGES)
        features = network.forward_features((pixels - mean) / std)
    assert found.shape == (2, trunk.channels[0], places, places)
    for row, column in ((0, 0), (2, 5), (places - 1, places - 1)):
        expected = AT[name](features, row, column, places)
        torch.testing.assert_close(found[:, :, row, column], expected, rtol=1e-4, atol=1e-4)


def test_an_untrained_transformer_is_averaged_over_its_places_and_seen_at_its_own_size(file_of):
    path, _ = file_of(VIT)
    model = open_model(f"untrained:{VIT}={path}")
    assert model.view == View(resize_px=249, crop_px=224)
    with torch.no_grad():
        maps = model.network.trunk(IMAGES)[-1]
        torch.testing.assert_close(model.network(IMAGES), maps.mean(dim=(2, 3)))


def test_a_size_that_a_transformer_does_not_take_is_refused_at_once_with_its_own(file_of):
    path, _ = file_of(VIT)
    with pytest.raises(ValueError, match=rf"{VIT} of timm takes no images of 160 x 160 px .* its own are 224 x 224"):
        open_model(f"untrained:{VIT}={path}", size_px=160)
    path, _ = file_of(CONVNET)
    assert open_model(f"untrained:{CONVNET}={path}", size_px=96).view.crop_px == 96


def test_weights_of_another_network_and_misspelt_names_are_refused(file_of, tmp_path):
    path, _ = file_of(CONVNET)
    with pytest.raises(ValueError, match=rf"weights \S+ do not fit {VIT} of timm"):
        open_model(f"untrained:{VIT}={path}")
    with pytest.raises(ValueError, match=r"unknown 'vit_tiny_patch16_225', did you mean 'vit_tiny_patch16_224'"):
        open_model(f"untrained:vit_tiny_patch16_225={path}")


def test_names_of_both_libraries_are_torchvisions(file_of):
    assert "resnet18" in timm_names()
    with pytest.raises(ValueError, match=r"do not fit resnet18: "):
        open_model(f"untrained:resnet18={file_of(CONVNET)[0]}")


def test_a_transformer_is_explained_as_other_networks_are(file_of):
    model = open_model(f"untrained:{VIT}={file_of(VIT)[0]}").network
    query, match = IMAGES[:1], IMAGES[1:]
    found = explain(model, query, match)
    assert found.method == "activation"
    assert found.grid == (14, 14)
    torch.testing.assert_close(found.pairs.sum().float(), found.value.sum().float(), atol=1e-5, rtol=1e-5)
    for method in ("structure", "gradient", "attention", "class_agnostic"):
        assert torch.isfinite(explain(model, query, match, method=method).maps[0]).all()


def test_published_weights_are_named_behind_a_dot():
    assert {"vit_small_patch14_dinov2.lvd142m", "vit_small_patch14_dinov2"} <= timm_names()


def test_weights_that_expect_other_images_are_another_model(file_of, monkeypatch):
    path, _ = file_of(VIT)
    name, config_of = f"untrained:{VIT}={path}", timm.data.resolve_model_data_config
    first = open_model(name).digest
    copy = shutil.copy(path, f"{path}.copy.safetensors")
    assert open_model(f"untrained:{VIT}={copy}").digest == first
    monkeypatch.setattr(
        timm.data, "resolve_model_data_config", lambda network: {**config_of(network), "mean": (0.1, 0.2, 0.3)}
    )
    assert open_model(name).digest != first
