"""Backbones give the maps their entry promises, with the weights that were asked for."""

import hashlib
import itertools
import re
import sys
from functools import partial

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision import models
from torchvision.models import WeightsEnum
from torchvision.transforms.functional import pil_to_tensor

from lookalike.models import backbones
from lookalike.models.backbones import BACKBONES, LITE0, Tiny, Trunk, build_network, find_backbone
from lookalike.models.embedder import Embedder, pool
from lookalike.workflow.data.checksums import weights_digest
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.images import transform

IMAGES = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


CHANNELS = {
    "resnet50": [512, 1024, 2048],
    "resnet18": [128, 256, 512],
    "squeezenet1_1": [128, 256, 512],
    "tiny": [16, 32, 96],
    "tf_efficientnet_lite0": [240, 672, 1280],
}


@pytest.mark.parametrize("name", BACKBONES)
def test_a_trunk_returns_the_last_stages_with_the_promised_channels(name):
    trunk = Trunk(name, None, "trained", levels=3).eval()
    with torch.no_grad():
        maps = trunk(IMAGES)
    assert [level.shape[1] for level in maps] == list(trunk.channels) == CHANNELS[name]
    assert all(low.shape[2] >= high.shape[2] for low, high in itertools.pairwise(maps))
    assert all(float(level.min()) >= 0 for level in maps)  # every stage ends with a ReLU


def lite0(tmp_path):
    """EfficientNet-Lite0 of timm at a random start, and a file with its weights."""
    timm = pytest.importorskip("timm", reason="timm is not installed")
    torch.manual_seed(1)
    network = timm.create_model(LITE0, pretrained=False).eval()
    save_file(network.state_dict(), tmp_path / "lite0.safetensors")
    return network, str(tmp_path / "lite0.safetensors")


@pytest.mark.parametrize("side", [128, 97])
def test_maps_of_a_picture_are_timms_which_normalises_by_its_own_values(tmp_path, side):
    network, path = lite0(tmp_path)
    picture = Image.effect_noise((side, side), 90).convert("RGB").resize((side, side - 1))
    seen = transform(View(resize_px=None, crop_px=side - 1))(picture)[None]
    config = network.pretrained_cfg
    pixels = pil_to_tensor(picture.crop((0, 0, side - 1, side - 1)))[None] / 255
    theirs = (pixels - torch.tensor(config["mean"]).view(3, 1, 1)) / torch.tensor(config["std"]).view(3, 1, 1)
    levels = []
    for name in find_backbone(LITE0).stages:
        network.get_submodule(name).register_forward_hook(lambda part, inputs, output: levels.append(output))
    trunk = Trunk(LITE0, path, "frozen", levels=3).eval()
    with torch.no_grad():
        last = network.forward_features(theirs)
        torch.testing.assert_close(trunk(seen), levels, rtol=1e-4, atol=1e-4)
    assert torch.equal(levels[-1], last)
    assert not torch.allclose(trunk.stages(seen)[trunk.names[-1]], last, rtol=1e-2)  # by ImageNet's values


@pytest.mark.parametrize("name", [name for name in BACKBONES if name != LITE0])
def test_a_network_that_wants_imagenets_values_gets_the_images_themselves(name):
    trunk = Trunk(name, None, "trained")
    assert trunk.in_own_colours(IMAGES) is IMAGES


def test_what_a_network_normalises_by_is_no_part_of_its_state(tmp_path):
    _, path = lite0(tmp_path)
    trunk = Trunk(LITE0, path, "frozen")
    assert {"scale", "shift"} <= dict(trunk.named_buffers()).keys()
    assert all(key.startswith("stages.") for key in trunk.state_dict())


def test_a_network_of_timm_without_timm_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"timm is not installed: .* extra `timm`.*uv pip install '\.\[timm\]'"
    ):
        Trunk(LITE0, None, "frozen")


@pytest.mark.parametrize(("name", "part"), [("tiny", "stage2"), ("resnet18", "layer3.1"), (LITE0, "blocks.4")])
def test_what_lies_before_the_part_that_learns_first_stays(name, part):
    trunk = Trunk(name, None, "trained", levels=3, trained_from=part)
    sum(level.square().mean() for level in trunk(IMAGES)).backward()
    learning = [key for key, each in trunk.named_parameters() if each.requires_grad]
    every = [key for key, _ in trunk.named_parameters()]
    first = next(place for place, key in enumerate(every) if key.startswith(f"stages.{part}."))
    assert 0 < first == len(every) - len(learning)
    assert {key for key, each in trunk.named_parameters() if each.grad is not None} <= {*learning}


def test_a_part_without_parameters_is_none_to_learn_from():
    with pytest.raises(
        ValueError, match=r"trained_from: tiny learns nothing in a part 'stage4'; it learns in stage1\.0"
    ):
        Trunk("tiny", None, "trained", trained_from="stage4")


def test_tiny_has_maps_as_wide_as_those_of_resnet50_and_about_a_tenth_of_a_million_parameters():
    trunk = Trunk("tiny", None, "trained", levels=3).eval()
    with torch.no_grad():
        assert [level.shape[2] for level in trunk(torch.zeros(1, 3, 56, 56))] == [28, 14, 7]
    assert sum(parameter.numel() for parameter in Tiny().parameters()) == 125_392


@pytest.mark.parametrize(
    ("mode", "statistics_move", "affine_trains"),
    [("trained", True, True), ("frozen_statistics", False, True), ("frozen", False, False)],
)
def test_batch_norm_is_frozen_in_its_two_forms(mode, statistics_move, affine_trains):
    trunk = Trunk("tiny", None, mode).train()
    norm = next(module for module in trunk.modules() if isinstance(module, torch.nn.BatchNorm2d))
    before = norm.running_mean.clone()
    trunk(IMAGES)[-1].sum().backward()
    assert (not torch.equal(norm.running_mean, before)) == statistics_move
    assert (norm.weight.grad is not None) == affine_trains


def test_weights_of_a_file_are_loaded_and_their_hash_is_known(tmp_path):
    torch.manual_seed(3)
    state = Tiny().state_dict()
    torch.save(state, tmp_path / "weights.pth")
    trunk = Trunk("tiny", str(tmp_path / "weights.pth"), "trained")
    assert torch.equal(trunk.state_dict()["stages.stage1.0.weight"], state["stage1.0.weight"])
    expected = hashlib.sha256((tmp_path / "weights.pth").read_bytes()).hexdigest()
    assert weights_digest(str(tmp_path / "weights.pth")) == expected


def test_unknown_or_unfit_weights_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"of torchvision's: IMAGENET1K_V1, IMAGENET1K_V2"):
        Trunk("resnet50", "DEFAULT", "trained")
    torch.save({"x": torch.zeros(1)}, tmp_path / "weights.pth")
    with pytest.raises(ValueError, match="do not fit tiny"):
        Trunk("tiny", str(tmp_path / "weights.pth"), "trained")
    with pytest.raises(ValueError, match=r"backbone: unknown 'resnet51', did you mean 'resnet50'. Nearest of"):
        Trunk("resnet51", None, "trained")


def test_an_embedder_without_a_head_embeds_with_the_pooled_channels():
    model = Embedder({"name": "tiny", "weights": None, "batch_norm": "trained"}, pooling="average", dim=None).eval()
    with torch.no_grad():
        assert torch.equal(model(IMAGES), pool(model.trunk(IMAGES)[-1], "average"))
    assert model.dim == 96


def test_the_two_initialisations_of_the_linear_layer():
    torch.manual_seed(0)
    backbone = {"name": "resnet18", "weights": None, "batch_norm": "frozen"}
    kaiming = Embedder(backbone, pooling="gem", dim=400, initialisation="kaiming").head
    assert kaiming.weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert kaiming.bias.abs().max() == 0
    default = Embedder(backbone, pooling="average", dim=400).head
    assert default.weight.abs().max() <= 512**-0.5
    with pytest.raises(ValueError, match="initialisation: unknown 'zeros'"):
        Embedder(backbone, pooling="average", dim=4, initialisation="zeros")


def test_any_classifier_of_torchvision_is_read_at_named_stages():
    stages = ["features.6", "features.13", "features.18"]
    trunk = Trunk("mobilenet_v2", None, "trained", levels=3, stages=stages).eval()
    with torch.no_grad():
        maps = trunk(IMAGES)
    assert [level.shape[1] for level in maps] == list(trunk.channels) == [32, 96, 1280]
    assert all(module.training for module in Trunk("mobilenet_v2", None, "trained", stages=stages).modules())


def test_stages_that_cannot_be_read_are_refused():
    with pytest.raises(ValueError, match="backbone 'mobilenet_v2' needs `stages`"):
        Trunk("mobilenet_v2", None, "trained")
    with pytest.raises(ValueError, match=r"backbone: unknown 'resnet'"):
        Trunk("resnet", None, "trained")
    with pytest.raises(ValueError, match="mobilenet_v2 has no part 'layer4'; it consists of features, classifier"):
        Trunk("mobilenet_v2", None, "trained", stages=["layer4"])
    with pytest.raises(ValueError, match=r"'classifier' gives shape \(1, 1000\) .* must give maps"):
        Trunk("mobilenet_v2", None, "trained", stages=["classifier"])
    # Its maps end with the channels, of which only the last part makes them come first.
    with pytest.raises(ValueError, match=r"'features\.7' gives shape \(1, 7, 7, 768\) of a picture of 224 px"):
        Trunk("swin_t", None, "trained", stages=["features.7"])
    with pytest.raises(ValueError, match=r"'encoder\.ln' gives shape \(1, 197, 768\)"):
        Trunk("vit_b_16", None, "trained", stages=["encoder.ln"])


def test_a_network_for_pictures_of_one_size_is_read(capsys):
    assert Trunk("maxvit_t", None, "trained", stages=["blocks.3"]).channels == (512,)
    assert capsys.readouterr().err == ""


def test_a_network_is_probed_once_in_a_process_and_again_where_another_part_is_read(monkeypatch):
    probed = []
    channels = backbones._channels
    monkeypatch.setattr(backbones, "CHANNELS", {})
    monkeypatch.setattr(backbones, "_channels", lambda stages: probed.append(1) or channels(stages))
    found = [Trunk("tiny", None, "trained", levels).channels for levels in (1, 3, 3, 1)]
    assert found == [(96,), (16, 32, 96), (16, 32, 96), (96,)]
    assert len(probed) == 2
    assert Trunk("resnet18", None, "trained", last_stride=1).channels == Trunk("resnet18", None, "frozen").channels
    assert len(probed) == 4


@pytest.mark.filterwarnings("ignore")
def test_a_network_for_large_pictures_alone_is_read_and_one_that_takes_none_of_ours_is_refused(monkeypatch):
    assert Trunk("inception_v3", None, "trained", stages=["Mixed_7c"]).channels == (2048,)
    monkeypatch.setattr(backbones, "CHANNELS", {})
    monkeypatch.setattr(backbones, "PROBED_PX", (32, 64))
    with pytest.raises(ValueError, match="a picture of 32 px is none for this network: "):
        Trunk("inception_v3", None, "trained", stages=["Mixed_7c"])


@pytest.mark.parametrize(
    ("name", "stages"),
    [("resnet50", None), ("resnet18", None), ("tiny", None), ("mobilenet_v2", ["features.13", "features.14"])],
)
def test_the_last_stage_without_its_stride_keeps_the_size_of_the_map_before(name, stages):
    images = IMAGES[:, :, :, :32]
    torch.manual_seed(0)
    usual = Trunk(name, None, "trained", levels=2, stages=stages).eval()
    torch.manual_seed(0)
    fine = Trunk(name, None, "trained", levels=2, stages=stages, last_stride=1).eval()
    assert usual.state_dict().keys() == fine.state_dict().keys()  # the weights are the same
    fine.load_state_dict(usual.state_dict())
    with torch.no_grad():
        (low, high), (same, larger) = usual(images), fine(images)
    assert torch.equal(low, same)
    assert high.shape[2:] == (low.shape[2] // 2, low.shape[3] // 2)
    assert larger.shape == (2, high.shape[1], *low.shape[2:])
    assert fine.channels == usual.channels


def test_a_stride_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="last_stride=2 must be 1, or null for the stride that the network has"):
        Trunk("tiny", None, "trained", last_stride=2)
    with pytest.raises(
        ValueError, match=r"last_stride=1: stage features\.12 of squeezenet1_1 has no layer of stride 2"
    ):
        Trunk("squeezenet1_1", None, "trained", last_stride=1)


HELD_BY_TORCH = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_hooks"}


def on_meta(module, name, parameter, *, register=torch.nn.Module.register_parameter):
    """Register a parameter without values, so that none is drawn."""
    kept = parameter if parameter is None else torch.nn.Parameter(parameter.to("meta"), parameter.requires_grad)
    register(module, name, kept)


def construction(module):
    """What a module was built with, by the names of its parts: types, layers' settings, flags, functions."""
    facts = {}
    for name, part in module.named_modules():
        facts[name] = (type(part), part.extra_repr(), part.training)
        for key, value in vars(part).items():
            if key in HELD_BY_TORCH or "hooks" in key or value is None:
                continue
            facts[f"{name}.{key}"] = (value.func, value.keywords) if isinstance(value, partial) else value
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    return facts, shapes, sorted(name for name, value in module.named_parameters() if value.requires_grad)


def as_published(monkeypatch, name, state):
    """A network as torchvision's path for weights builds it, of weights that are made here and not downloaded."""
    weights = models.get_model_weights(name)
    kind = weights["IMAGENET1K_V1"] if "IMAGENET1K_V1" in weights.__members__ else next(iter(weights))
    with monkeypatch.context() as patch:
        patch.setattr(WeightsEnum, "get_state_dict", lambda self, *args, **kwargs: dict(state))
        if not state:
            patch.setattr(torch.nn.Module, "load_state_dict", lambda self, state: None)
        return models.get_model(name, weights=kind)


# Vision transformers have no map and are refused; of the largest there are weights for pictures of 518 px alone.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [each for each in models.list_models(models) if each != "vit_h_14"])
@pytest.mark.filterwarnings("ignore")
def test_a_classifier_is_built_as_torchvision_builds_it_for_its_published_weights(monkeypatch, name):
    monkeypatch.setattr(torch.nn.Module, "register_parameter", on_meta)  # not the widths that RegNet computes
    ours, theirs = construction(build_network(name)), construction(as_published(monkeypatch, name, {}))
    for one, other in zip(ours, theirs, strict=True):
        assert one == other


def published_state(name):
    """A state of a network as its published file has it: without counters, GoogLeNet's with two more heads, DenseNet's
    with more dots."""
    torch.manual_seed(0)
    heads = {"aux_logits": True} if name in ("googlenet", "inception_v3") else {}
    state = models.get_model(name, weights=None, init_weights=False, **heads) if heads else models.get_model(name)
    state = state.state_dict()
    for key, value in state.items():
        if key.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif value.is_floating_point():
            value.add_(0.02 * torch.randn_like(value))
    dotted = re.compile(r"(.*denselayer\d+\.(?:norm|conv))([12]\..*)")
    return {dotted.sub(r"\1.\2", key): value for key, value in state.items() if "num_batches" not in key}


@pytest.mark.parametrize(
    ("name", "stages", "last"),
    [
        ("googlenet", ["inception5b"], "inception5b"),
        ("inception_v3", ["Mixed_7c"], "Mixed_7c"),
        ("densenet121", ["features"], "features"),
    ],
)
@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
@pytest.mark.filterwarnings("ignore")
def test_maps_of_published_weights_of_a_file_are_torchvisions(monkeypatch, tmp_path, name, stages, last, suffix):
    state = published_state(name)
    path = tmp_path / f"{name}.{suffix}"
    (torch.save if suffix == "pth" else save_file)(state, path)
    theirs = as_published(monkeypatch, name, state).eval()
    ours = Trunk(name, str(path), "frozen", stages=stages).eval()
    seen = []
    theirs.get_submodule(last).register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs(images)
        (found,) = ours(images)
    torch.testing.assert_close(found, seen[0], atol=1e-5, rtol=1e-4)
    assert found.std() > 0
    bare = Trunk(name, None, "frozen", stages=stages).eval()  # as a finished run is loaded
    bare.load_state_dict(ours.state_dict())
    with torch.no_grad():
        assert torch.equal(bare(images)[0], found)


def test_a_network_that_asks_for_the_version_of_its_layout_is_read_from_safetensors(tmp_path):
    torch.manual_seed(0)
    state = models.mnasnet0_5().state_dict()
    save_file(state, tmp_path / "weights.safetensors")
    trunk = Trunk("mnasnet0_5", str(tmp_path / "weights.safetensors"), "frozen", stages=["layers"])
    assert torch.equal(trunk.state_dict()["stages.layers.0.weight"], state["layers.0.weight"])


def test_weights_that_do_not_fit_are_counted_and_the_first_few_named(tmp_path):
    torch.save(models.squeezenet1_1().state_dict(), tmp_path / "squeezenet.pth")
    with pytest.raises(ValueError, match=r"do not fit resnet50: ") as said:
        Trunk("resnet50", str(tmp_path / "squeezenet.pth"), "frozen")
    message = str(said.value).partition("do not fit ")[2]
    assert message == (
        "resnet50: 265 of its 318 tensors are missing (conv1.weight, bn1.weight, bn1.bias, ...); "
        "52 of 52 are not its own (features.0.weight, features.0.bias, features.3.squeeze.weight, ...)"
    )
    state = models.resnet18().state_dict()
    torch.save({**state, "conv1.weight": state["conv1.weight"][:7]}, tmp_path / "narrow.pth")
    with pytest.raises(ValueError, match=r"do not fit resnet18: 1 have another shape \(conv1\.weight\)$"):
        Trunk("resnet18", str(tmp_path / "narrow.pth"), "frozen")


def first_filters(path, name="resnet18"):
    """What a trunk has of a file in its first layer."""
    return next(Trunk(name, str(path), "frozen").parameters())


@pytest.mark.parametrize(
    "heads",
    [
        lambda state: state | {"fc.weight": torch.zeros(200, 512), "fc.bias": torch.zeros(200)},
        lambda state: {key: each for key, each in state.items() if not key.startswith("fc.")},
        lambda state: state | {"fc.0.weight": torch.zeros(5, 512), "fc.2.weight": torch.zeros(2, 5)},
    ],
)
@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_no_classifier_is_asked_for_as_it_is_cut_off(tmp_path, heads, suffix):
    state = heads(models.resnet18().state_dict())
    (torch.save if suffix == "pth" else save_file)(state, tmp_path / f"weights.{suffix}")
    assert torch.equal(first_filters(tmp_path / f"weights.{suffix}"), state["conv1.weight"])


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module.", "model.", "net.backbone."])
def test_a_beginning_of_every_name_is_taken_off_and_told(tmp_path, caplog, prefix):
    state = Tiny().state_dict()
    torch.save({prefix + key: each for key, each in state.items()}, tmp_path / "tiny.pth")
    assert torch.equal(first_filters(tmp_path / "tiny.pth", "tiny"), state["stage1.0.weight"])
    assert [record.getMessage() for record in caplog.records] == [
        f"weights {tmp_path / 'tiny.pth'}: {prefix!r} before every name is taken off"
    ]
    torch.save({f"a.{key}" if "stage1" in key else key: each for key, each in state.items()}, tmp_path / "tiny.pth")
    with pytest.raises(ValueError, match="are not its own"):
        first_filters(tmp_path / "tiny.pth", "tiny")


KEY = "stage1.0.weight"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda each: torch.quantize_per_tensor(each, 0.1, 0, torch.qint8), "'stage1.0.weight' is quantised"),
        (lambda each: each.to_sparse(), "'stage1.0.weight' is sparse_coo"),
        (lambda each: each.reshape(16, -1).to_sparse_csr(), "'stage1.0.weight' is sparse_csr"),
        (lambda each: each.to("meta"), r"'stage1.0.weight' is without values \(meta\)"),
        (lambda each: each.to(torch.complex64), "'stage1.0.weight' is complex64"),
        (lambda each: each.to(torch.float8_e4m3fn), "'stage1.0.weight' is float8_e4m3fn"),
        (lambda each: (9 * each).to(torch.int8), r"1 are whole numbers, perhaps .* \(stage1.0.weight\)"),
        (lambda each: each > 0, r"1 are whole numbers, perhaps .* \(stage1.0.weight\)"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_dense_floating_tensor_is_refused_by_name(tmp_path, change, said):
    state = Tiny().state_dict()
    path = tmp_path / "tiny.pth"
    torch.save({**state, KEY: change(state[KEY])}, path)
    with pytest.raises(ValueError, match=rf"weights {path}.*{said}") as raised:
        first_filters(path, "tiny")
    assert "\n" not in str(raised.value)
    if state[KEY].shape == change(state[KEY]).shape and re.search("float8|whole", said):
        save_file({**state, KEY: change(state[KEY])}, tmp_path / "tiny.safetensors")
        with pytest.raises(ValueError, match=rf"weights {tmp_path}/tiny.safetensors.*{said}"):
            first_filters(tmp_path / "tiny.safetensors", "tiny")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: torch.save(models.squeezenet1_1(), path), r"network \(torchvision\.\S+\.SqueezeNet\)"),
        (lambda path: torch.jit.script(torch.nn.Linear(1, 1)).save(path), r"network \(TorchScript\)"),
        (lambda path: path.write_text("weights"), "no file of tensors as torch.save writes them"),
        (lambda path: path.write_bytes(b""), "no file of tensors as torch.save writes them"),
        (lambda path: torch.save({0: torch.zeros(1)}, path), "0 is a Tensor; a state dict holds tensors"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_file_of_something_else_is_told_what_is_read(tmp_path, write, said):
    path = tmp_path / "tiny.pth"
    write(path)
    with pytest.raises(ValueError, match=rf"weights {path}: .*{said}") as raised:
        first_filters(path, "tiny")
    assert str(raised.value).isprintable()


def test_torchvisions_own_file_is_named_where_it_cannot_be_read(monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("invalid hash value\nand more")

    monkeypatch.setattr(WeightsEnum, "get_state_dict", broken)
    with pytest.raises(
        ValueError, match=r"/resnet18-f37072fd\.pth: cannot be read \(RuntimeError: invalid hash \w+\)$"
    ):
        Trunk("resnet18", "IMAGENET1K_V1", "frozen")
