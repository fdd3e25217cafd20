"""Networks of timm give maps of places, of tokens too, and see their images as they were trained to."""

import shutil
import sys

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lookalike import explain, open_model
from lookalike.app.own.fitting import fitted_model, write_model
from lookalike.app.own.models import timm_names
from lookalike.models.embedder import Embedder
from lookalike.models.timm_trunk import TimmTrunk
from lookalike.workflow.settings.recipes import View
from own_pictures import write_pictures

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
    assert model.view == View(resize_px=248, crop_px=224, interpolation="bicubic")
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


@pytest.mark.parametrize("size", [(300, 200), (70, 260)])
@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("tf_efficientnet_lite0", {}),  # bicubic, of the centre
        (CONVNET, {"crop_mode": "squash", "crop_pct": 0.95}),
        (CONVNET, {"interpolation": "bilinear", "input_size": (3, 160, 160)}),
        (CONVNET, {"crop_mode": "squash", "input_size": (3, 160, 96)}),
    ],
)
def test_pictures_are_prepared_as_timm_prepares_them(file_of, monkeypatch, name, changed, size):
    path, network = file_of(name)
    config = {**timm.data.resolve_model_data_config(network), **changed}
    monkeypatch.setattr(timm.data, "resolve_model_data_config", lambda network: config)
    picture = Image.effect_noise(size, 90).convert("RGB")
    theirs = timm.data.create_transform(**config)(picture)
    model = open_model(f"untrained:{name}={path}")
    ours = model.network.trunk.in_own_colours(model.transform(picture)[None])[0]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_a_way_to_cut_pictures_that_is_not_known_is_refused(file_of, monkeypatch):
    path, network = file_of(CONVNET)
    config = {**timm.data.resolve_model_data_config(network), "crop_mode": "border"}
    monkeypatch.setattr(timm.data, "resolve_model_data_config", lambda network: config)
    with pytest.raises(ValueError, match=r"convnext_atto of timm: .* by crop_mode 'border'; what is known is 'squash'"):
        open_model(f"untrained:{CONVNET}={path}")


@pytest.mark.parametrize("name", [VIT, CONVNET])
def test_no_classifier_of_timm_is_asked_for(file_of, name):
    path, network = file_of(name)
    part = network.pretrained_cfg["classifier"]
    save_file({k: v for k, v in network.state_dict().items() if not k.startswith(f"{part}.")}, path)
    assert torch.equal(TimmTrunk(name, path).network.state_dict().popitem(last=False)[1], next(network.parameters()))


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


def test_a_fitted_network_of_timm_is_built_from_its_file_alone(file_of, tmp_path):
    path, _ = file_of(CONVNET)
    pictures = write_pictures(tmp_path / "pictures", 8)
    fitted = fitted_model(open_model(f"untrained:{CONVNET}={path}", size_px=64), tmp_path / "pictures", shrinkage=0.5)
    assert fitted.settings.backbone.name == f"{CONVNET}.{timm.create_model(CONVNET).pretrained_cfg['tag']}"
    write_model(fitted, tmp_path / "fitted.safetensors")
    again = open_model(str(tmp_path / "fitted.safetensors"))
    with torch.no_grad():
        images = IMAGES[:, :, :64, :64]
        torch.testing.assert_close(again.network(images), fitted.network(images))
    assert len(pictures) == fitted.pictures


def test_a_network_of_timm_is_read_whole():
    backbone = {"name": CONVNET, "weights": None, "batch_norm": "frozen", "stages": ["stages.2"]}
    with pytest.raises(ValueError, match=rf"stages=\['stages.2'\]: {CONVNET} of timm is read whole, at its end"):
        Embedder(backbone, pooling="average", dim=None)


def test_a_file_that_names_a_network_of_timm_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ModuleNotFoundError, match="extra `timm`"):
        Embedder({"name": f"{CONVNET}.d2_in1k", "weights": None, "batch_norm": "frozen"}, pooling="average", dim=None)
