"""A model leaves as files that search as it does, without this package."""

import copy
import json
import os
import subprocess
import sys
from functools import cache

import faiss
import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.files import read_json, read_tensors
from lookalike.methods.avsl.representation import Representation
from lookalike.own import export as exporting
from lookalike.own.export import export_model, vectors_of
from lookalike.own.picture_files import read_image
from own_pictures import opened, write_pictures


def printed_by(folder, picture):
    """What the exported lines print, in a process that cannot import this package."""
    forbid = "import sys; sys.modules['lookalike'] = sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "
    run = f"{forbid}import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    call = [sys.executable, "-c", run, str(folder / "use.py"), str(picture)]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The model of a kind, what its export with 10 pictures says, and the folder of both; once for each kind."""

    @cache
    def export(kind):
        folder = tmp_path_factory.mktemp(kind)
        write_pictures(folder / "pictures", 10)
        model = opened(kind)
        done = export_model(model, folder / "out", folder=folder / "pictures", store=folder / "store")
        return model, done, folder

    return export


@pytest.mark.parametrize("kind", ["embedder", "diml", "avsl"])
def test_exported_lines_rank_a_folder_as_the_model_does(exported, kind):
    model, done, folder = exported(kind)
    paths = sorted((folder / "pictures").rglob("*.png"))
    expected = {"model.safetensors", "model.onnx", "preprocessing.json", "use.py", "index.faiss", "pictures.json"}
    assert {path.name for path in done.files} == expected | ({"certificate.json"} if kind == "avsl" else set())
    assert done.difference <= 1e-4
    weights, about = read_tensors(folder / "out" / "model.safetensors")
    assert about == {"model": f"untrained {kind}"}
    assert all(torch.equal(weights[name], each) for name, each in model.network.state_dict().items())

    lines = [line.split() for line in printed_by(folder / "out", paths[3]).splitlines()]
    images = torch.stack([read_image(model, path) for path in paths])
    with torch.no_grad():
        if kind == "avsl":
            seen = model.network(images)
            scores = model.network.distance(seen[3], seen)[0]
        else:
            unit = torch.nn.functional.normalize(
                model.network(images) if kind == "embedder" else model.network.represent(images).global_vector
            )
            scores = unit @ unit[3]
    by_name = {
        path.relative_to(folder / "pictures").as_posix(): float(s) for path, s in zip(paths, scores, strict=True)
    }
    assert len(lines) == 10
    found = [float(score) for score, _ in lines]
    assert found == sorted(found, reverse=kind != "avsl")
    off = done.vectors.certificate.get("relative_error", 0)
    for score, name in lines:
        assert float(score) == pytest.approx(by_name[name], rel=off, abs=1e-3)


def test_no_exact_distance_lies_farther_than_the_certificate_says(exported):
    model, done, folder = exported("avsl")
    certificate = read_json(folder / "out" / "certificate.json")
    assert certificate == done.vectors.certificate
    assert certificate["pictures"] == 10
    index = faiss.read_index(str(folder / "out" / "index.faiss"))
    found = index.reconstruct_n(0, 10)  # a tensor wherever something has imported faiss's add-on for torch
    rows = torch.as_tensor(found).double()
    squared = torch.cdist(rows, rows).square()
    seen = done.gallery.index.rows(torch.arange(10))
    sides = Representation.from_state({name: each.double() for name, each in seen.items()})
    with torch.no_grad():
        exact = copy.deepcopy(model.network).double().distance(sides, sides)
    apart = ~torch.eye(10, dtype=torch.bool)
    off = ((squared - exact).abs() / exact)[apart].max()
    assert off <= certificate["relative_error"] + 1e-5


def test_without_a_folder_the_lines_print_the_vector(tmp_path):
    (path,) = write_pictures(tmp_path / "pictures", 1)
    model = opened()
    done = export_model(model, tmp_path / "out", store=tmp_path / "store")
    assert {path.name for path in done.files} == {"model.safetensors", "model.onnx", "preprocessing.json", "use.py"}
    vector = np.array(printed_by(tmp_path / "out", path).split(), dtype=float)
    with torch.no_grad():
        expected = done.vectors.network(read_image(model, path)[None])[0].numpy()
    assert np.abs(vector - expected).max() < 1e-4


@pytest.mark.parametrize(("variant", "ones"), [("top", [0.0, 0.0, 1.0]), ("concat", [1.0, 1.0, 1.0])])
def test_variants_whose_weights_are_constant_need_no_pictures(variant, ones):
    network = opened("avsl").network
    network.variant = variant
    vectors = vectors_of(network, None)
    images = torch.randn(3, 3, 24, 24)
    with torch.no_grad():
        rows = vectors.network(images).double()
        exact = network.distance(network(images), network(images))
    assert torch.allclose(torch.cdist(rows, rows).square(), exact.double(), atol=1e-5)
    assert [float(root[0]) for root in vectors.network.roots] == ones
    assert vectors.certificate == {}


def test_a_size_of_two_sides_is_resized_to_both(tmp_path):
    (path,) = write_pictures(tmp_path / "pictures", 1)
    base = opened()
    model = type(base)("pair", base.network, {"resize_px": [30, 26], "crop_px": [28, 24]}, "b")
    export_model(model, tmp_path / "out", store=tmp_path / "store")
    vector = np.array(printed_by(tmp_path / "out", path).split(), dtype=float)
    with torch.no_grad():
        expected = torch.nn.functional.normalize(model.network(read_image(model, path)[None]))[0].numpy()
    assert np.abs(vector - expected).max() < 1e-4


def test_an_export_that_cannot_be_leaves_nothing(tmp_path, monkeypatch):
    write_pictures(tmp_path / "pictures", 3)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"--to .*taken: holds files; name a new folder"):
        export_model(opened(), taken, store=tmp_path / "store")
    with pytest.raises(ValueError, match=r"taken/mine.txt: is a file"):
        export_model(opened(), taken / "mine.txt", store=tmp_path / "store")
    with pytest.raises(ValueError, match=r"an AVSL model's weights depend on the pair.*--in FOLDER names them"):
        export_model(opened("avsl"), tmp_path / "out", store=tmp_path / "store")
    monkeypatch.setattr(exporting, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match=r"model.onnx: differs from torch by .*, at most -1e\+00 is allowed"):
        export_model(opened(), tmp_path / "out", store=tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pictures", "taken"]


def test_preprocessing_is_what_the_model_takes(exported):
    _, _, folder = exported("embedder")
    how = json.loads((folder / "out" / "preprocessing.json").read_text())
    assert (how["resize_px"], how["crop_px"], how["interpolation"]) == (28, [24, 24], "bilinear")
    assert how["measure"] == "inner product"
    picture = Image.new("RGB", (40, 60), (10, 200, 90))
    image = opened().transform(picture)
    expected = (np.array([10, 200, 90]) / 255 - how["mean"]) / how["deviation"]
    assert np.allclose(image[:, 5, 5].numpy(), expected, atol=1e-5)


def test_every_exported_file_can_be_read_by_others(exported):
    _, done, folder = exported("avsl")
    umask = os.umask(0)
    os.umask(umask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in done.files}
    assert modes == dict.fromkeys(modes, 0o666 & ~umask)
    assert (folder / "out").stat().st_mode & 0o777 == 0o777 & ~umask


def test_weights_that_are_not_finite_are_not_exported(tmp_path):
    model = opened()
    with torch.no_grad():
        model.network.head.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"head\.weight holds NaN or infinity"):
        export_model(model, tmp_path / "out", store=tmp_path / "store")
    assert list(tmp_path.iterdir()) == []
