"""A network is fitted to the classes of a folder in one pass, and its file is taken as that of a training is."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from lookalike import load, open_model
from lookalike.app.command import main
from lookalike.app.own.fitting import fitted_model, write_model
from lookalike.base.tensors import unit
from lookalike.methods.whitening import relevant_components, whitening
from lookalike.models.backbones import Tiny
from own_pictures import opened

CLASSES, EACH, SIZE = 5, 4, 24


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder per class, of pictures of a colour; and beside it weights of a network."""
    folder = tmp_path_factory.mktemp("fitted")
    generator = np.random.default_rng(0)
    for label in range(CLASSES):
        colour = generator.integers(40, 215, 3)
        for number in range(EACH):
            path = folder / "pictures" / f"kind{label}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = colour + generator.integers(-40, 41, (30, 34, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    torch.manual_seed(1)
    save_file(Tiny().state_dict(), folder / "tiny.safetensors")
    return folder / "pictures"


@pytest.fixture(scope="module")
def model(pictures):
    return open_model(f"untrained:tiny={pictures.parent / 'tiny.safetensors'}", size_px=SIZE)


def seen(model, paths):
    with torch.inference_mode():
        return model.network(torch.stack([model.transform(Image.open(path)) for path in paths]))


@pytest.mark.parametrize("kind", ["rca", "whitening"])
def test_a_file_holds_the_map_of_the_folders_pictures_and_how_they_are_seen(pictures, model, tmp_path, kind):
    fitted = fitted_model(model, pictures, kind=kind, shrinkage=0.3, dim=6)
    assert (fitted.pictures, fitted.classes, fitted.passed_over) == (20, CLASSES if kind == "rca" else 0, [])
    write_model(fitted, tmp_path / "model.safetensors")
    again = open_model(str(tmp_path / "model.safetensors"))
    assert again.view == model.view
    paths = sorted(pictures.glob("*/*.png"))
    before, labels = seen(model, paths), torch.arange(CLASSES).repeat_interleave(EACH)
    expected = (
        relevant_components(before, labels, shrinkage=0.3, dim=6)
        if kind == "rca"
        else whitening(before, shrinkage=0.3, dim=6)
    )
    torch.testing.assert_close(unit(seen(again, paths)), unit(expected(before)), rtol=0, atol=1e-3)
    assert load(tmp_path / "model.safetensors").dim == 6


def test_a_trained_embedder_is_mapped_on_top_and_other_models_are_refused_by_name(pictures, model, tmp_path):
    write_model(fitted_model(model, pictures, shrinkage=0.3, dim=6), tmp_path / "model.safetensors")
    again = open_model(str(tmp_path / "model.safetensors"))
    assert fitted_model(again, pictures, shrinkage=0.5).network.dim == 6
    with pytest.raises(ValueError, match="AVSL: only an Embedder, which compares one vector"):
        fitted_model(opened("avsl"), pictures)
    with pytest.raises(ValueError, match="untrained embedder: no file could name its network"):
        fitted_model(opened(), pictures)


def test_folders_of_roles_are_fitted_by_the_training_pictures_and_pictures_without_classes_by_whitening(
    pictures, model, tmp_path
):
    for place, folder in enumerate(sorted(pictures.iterdir())):
        shutil.copytree(folder, tmp_path / "roles" / ("train" if place < 3 else "test") / folder.name)
    shutil.copytree(pictures / "kind0", tmp_path / "plain")
    (tmp_path / "plain" / "broken.png").write_bytes(b"no picture")
    assert fitted_model(model, tmp_path / "roles", shrinkage=0.2).classes == 3
    plain = fitted_model(model, tmp_path / "plain", kind="whitening")
    assert (plain.pictures, len(plain.passed_over)) == (EACH, 1)
    with pytest.raises(ValueError, match=r"no class folders; .*; --map whitening needs no classes"):
        fitted_model(model, tmp_path / "plain")
    with pytest.raises(ValueError, match=r"needs 4 of two images or more, not 3; give one, such as 0\.2"):
        fitted_model(model, tmp_path / "roles")


def test_copies_and_pictures_in_two_classes_say_nothing_of_what_varies_within_one(pictures, model, tmp_path):
    shutil.copytree(pictures, tmp_path / "clean")
    shutil.copytree(pictures, tmp_path / "found")
    shutil.copy(pictures / "kind0" / "1.png", tmp_path / "found" / "kind0" / "again.png")
    shutil.copy(pictures / "kind1" / "0.png", tmp_path / "found" / "kind2" / "other.png")
    (tmp_path / "clean" / "kind1" / "0.png").unlink()
    clean, found = (fitted_model(model, tmp_path / name, shrinkage=0.3) for name in ("clean", "found"))
    assert clean.passed_over == []
    assert found.passed_over == [
        f"{tmp_path}/found/kind0/again.png: copy of kind0/1.png",
        f"{tmp_path}/found/kind1/0.png: same bytes as kind2/other.png",
        f"{tmp_path}/found/kind2/other.png: same bytes as kind1/0.png",
    ]
    assert (found.pictures, found.classes) == (clean.pictures, clean.classes) == (19, CLASSES)
    for ours, theirs in zip(found.network.parameters(), clean.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_folder_whose_name_is_no_utf8_is_refused_by_it(pictures, model, tmp_path):
    folder = tmp_path / os.fsdecode(b"p\xff")
    shutil.copytree(pictures, folder)
    with pytest.raises(ValueError, match=r"p\\udcff': the name is no UTF-8, .*; rename it; --map whitening needs no"):
        fitted_model(model, folder, shrinkage=0.3)
    assert fitted_model(model, folder, kind="whitening").pictures == 5 * EACH


@pytest.mark.slow
def test_from_pictures_to_a_search_an_explanation_and_onnx(pictures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pictures = pictures.rename(pictures.with_name("my pictures; mine"))
    network = f"tiny={pictures.parent / 'tiny.safetensors'}"
    assert main(["fit", str(pictures), "--network", network, "--size", str(SIZE), "--out", "new.safetensors"]) == 0
    said, recall, following = capsys.readouterr().out.splitlines()
    assert "rca to 96 numbers, shrinkage 0." in said and "by 20 pictures of 5 classes in" in said
    numbers = re.fullmatch(
        r"R@1 of unseen classes, each half held out in its turn: ([\d.]+) % before, ([\d.]+) % after, a little too "
        "good, as the shrinkage was chosen on them",
        recall,
    )
    assert all(0 < float(each) <= 100 for each in numbers.groups())
    assert following == f"Next: lookalike search new.safetensors QUERY --in '{pictures}'"
    query = str(pictures / "kind1" / "0.png")
    assert main(["search", "new.safetensors", query, "--in", str(pictures), "--index", "index", "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["queries"][0]["hits"]
    assert [hit["picture"].split("/")[-2] for hit in hits[: EACH - 1]] == ["kind1"] * (EACH - 1)
    assert hits[0]["explanation"]["method"] == "activation"
    assert main(["explain", "new.safetensors", query, str(pictures / hits[0]["picture"]), "--method", "structure"]) == 0
    assert main(["export", "new.safetensors", "--to", "kiosks"]) == 0
    assert "ONNX differs from torch by" in capsys.readouterr().out
