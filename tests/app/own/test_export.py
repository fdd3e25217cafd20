"""A model leaves as files that search as it does, without this package."""

import copy
import http.client
import json
import os
import runpy
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from safetensors.torch import save_file

from lookalike.app.own import export as exporting
from lookalike.app.own.export import export_model, vectors_of
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import read_image
from lookalike.base.files import read_json, read_tensors
from lookalike.base.tensors import unit
from lookalike.methods.avsl.representation import Representation
from lookalike.models.backbones import LITE0
from lookalike.models.embedder import Embedder
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.settings.recipes import View
from own_pictures import opened, write_pictures
from waiting import wait_until

ALONE = {
    "model.safetensors",
    "model.onnx",
    "preprocessing.json",
    "use.py",
    "service.py",
    "Dockerfile",
    "requirements.txt",
}

UV = shutil.which("uv")
TELEMETRY = "ORT_DISABLE_TELEMETRY"
FORBID = (
    "import sys; sys.modules['lookalike'] = sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "
    "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def printed_by(folder, picture):
    """What the exported lines print, in a process that cannot import this package."""
    call = [sys.executable, "-c", FORBID, str(folder / "use.py"), str(picture)]
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
    assert {path.name for path in done.files} == {*ALONE, "index.faiss", "pictures.json"} | (
        {"certificate.json"} if kind == "avsl" else set()
    )
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
    target = tmp_path / ("\u00e9" * 127)  # as long as any
    done = export_model(model, target, store=tmp_path / "store")
    assert {path.name for path in done.files} == ALONE
    vector = np.array(printed_by(target, path).split(), dtype=float)
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
    model = type(base)("pair", base.network, View(resize_px=[30, 26], crop_px=[28, 24]), "b")
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


def test_a_network_that_normalises_by_values_of_its_own_leaves_with_them(tmp_path):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    torch.manual_seed(0)
    network = timm.create_model(LITE0, pretrained=False).eval()
    save_file(network.state_dict(), tmp_path / "lite0.safetensors")
    backbone = {"name": LITE0, "weights": str(tmp_path / "lite0.safetensors"), "batch_norm": "frozen"}
    view = View(resize_px=None, crop_px=64)
    model = OpenModel("lite0", Embedder(backbone, pooling="average", dim=None).eval(), view, "a")
    export_model(model, tmp_path / "out", store=tmp_path / "store")
    picture = Image.effect_noise((64, 64), 90).convert("RGB")
    picture.save(tmp_path / "picture.png")
    found = [float(each) for each in printed_by(tmp_path / "out", tmp_path / "picture.png").split()]
    theirs = torch.from_numpy(
        (np.asarray(picture) / 255 - network.pretrained_cfg["mean"]) / network.pretrained_cfg["std"]
    )
    with torch.no_grad():
        expected = unit(network.forward_features(theirs.permute(2, 0, 1)[None].float()).mean(dim=(2, 3)))
    assert np.allclose(found, expected[0].numpy(), atol=1e-4)


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


def test_pictures_that_are_added_at_once_are_all_added(exported, tmp_path):
    _, _, folder = exported("embedder")
    out = shutil.copytree(folder / "out", tmp_path / "out")
    new = write_pictures(tmp_path / "new", 5, seed=7)
    calls = [[sys.executable, "-c", FORBID, str(out / "use.py"), "--add", str(picture)] for picture in new]
    adding = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for call in calls]
    printed = [each.communicate()[0] for each in adding]
    assert sorted(printed) == [f"1 added, {count} in the index\n" for count in range(11, 16)]
    index = faiss.read_index(str(out / "index.faiss"))
    names = read_json(out / "pictures.json")["pictures"]
    assert (index.ntotal, sorted(names[10:])) == (15, sorted(map(str, new)))
    (hit,) = printed_by(out, new[2]).splitlines()[:1]
    assert hit.split() == ["1.0000", str(new[2])]


def test_exported_functions_take_batches_add_pictures_and_tell_the_broken_in_a_line(exported, tmp_path):
    _, _, folder = exported("embedder")
    out = shutil.copytree(folder / "out", tmp_path / "out")
    new = write_pictures(tmp_path / "new", 3, seed=7)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(new[0].read_bytes()[:90])

    def use(*words):
        call = [sys.executable, "-c", FORBID, str(out / "use.py"), *map(str, words)]
        surroundings = {name: value for name, value in os.environ.items() if name not in ("CI", TELEMETRY)}
        surroundings["HOME"] = str(tmp_path / "home")
        return subprocess.run(call, capture_output=True, text=True, check=False, env=surroundings)

    added = use("--add", *new, broken)
    assert (added.returncode, added.stdout) == (1, "3 added, 13 in the index\n")
    assert [line.split(":")[0] for line in added.stderr.splitlines()] == [str(broken)]
    os.mkfifo(tmp_path / "pipe.jpg")
    assert use(tmp_path / "pipe.jpg").stderr == f"{tmp_path}/pipe.jpg: no such file\n"
    again = use("--add", new[1])
    assert again.stderr == f"{new[1]}: is in the index already\n" and again.stdout == "0 added, 13 in the index\n"
    found = use(new[1], broken, new[2])
    assert found.returncode == 1
    lines = found.stdout.splitlines()
    assert (lines[0], lines[11]) == (str(new[1]), str(new[2]))
    assert lines[1].split() == ["1.0000", str(new[1])] and lines[12].split() == ["1.0000", str(new[2])]
    assert faiss.read_index(str(out / "index.faiss")).ntotal == 13
    assert not list(out.glob("*.part"))
    assert not (tmp_path / "home").exists()  # where ONNX Runtime would keep a number by which it tells of this machine
    assert os.environ[TELEMETRY] == "1"  # since the export
    assert use().returncode == 1 and "python use.py PICTURE" in use().stderr
    assert use("--help").returncode == 0 and "python use.py PICTURE" in use("--help").stdout


def pictures_of_every_depth(folder):
    """A grey ramp of 16, of 12 bits and turned, one with an odd note, and pictures with transparency, named so."""
    ramp = np.linspace(0, 1, 40 * 30).reshape(40, 30)
    wide, seen = (ramp * 65535).astype(np.uint16), Image.fromarray((ramp * 255).astype(np.uint8))
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = 6
    Image.fromarray(wide).save(folder / "16.png")
    Image.fromarray(wide).save(folder / "turned.png", exif=turned)
    # Turned, and a resolution that is text: big-endian, two notes of tag, kind, count and value.
    odd = b"Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\x01\x1a\0\x02\0\0\0\x0372\0\0\0\0\0\0"
    seen.save(folder / "odd.png", exif=odd)
    Image.fromarray(wide).save(folder / "16.tif")
    Image.fromarray(wide).save(folder / "16.pgm")
    Image.fromarray((ramp * 4095).astype(np.uint16)).save(folder / "12.tif", tiffinfo={258: (12,)})
    seen.convert("LA").save(folder / "grey.png")
    Image.merge("RGBA", [seen, seen, seen, seen.rotate(180)]).save(folder / "alpha.png")
    seen.convert("P").save(folder / "palette.png", transparency=7)
    return sorted(folder.iterdir())


def test_exported_functions_see_the_colours_that_the_model_sees(exported, tmp_path):
    model, _, folder = exported("embedder")
    seen_by = runpy.run_path(str(folder / "out" / "use.py"))["image"]
    for path in pictures_of_every_depth(tmp_path):
        expected = model.transform(read_picture(path)).numpy()
        assert np.abs(seen_by(path) - expected).max() < 0.05, path.name  # of 4.5 between black and white
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "floating.tif")
    with pytest.raises(ValueError, match="no stated range"):
        seen_by(tmp_path / "floating.tif")


def test_more_than_a_batch_is_as_one_by_one(exported, tmp_path, monkeypatch):
    _, _, folder = exported("embedder")
    use = runpy.run_path(str(folder / "out" / "use.py"))
    paths = write_pictures(tmp_path / "many", 70, seed=3)
    kept, rows, broken = use["vectors"]([*paths, tmp_path / "nowhere.png"])
    assert kept == paths and len(broken) == 1 and rows.shape[0] == 70
    for place in (0, 31, 32, 69):
        assert np.abs(use["vectors"]([paths[place]])[1][0] - rows[place]).max() < 1e-5
    assert use["vectors"]([])[1].shape == (0, 0)
    Image.new("RGB", (8, 8)).save(tmp_path / "a.eps")  # which Pillow hands to another program
    assert "no readable picture (cannot identify" in use["vectors"]([tmp_path / "a.eps"])[2][0]


@pytest.fixture(params=["forbidden", pytest.param("absent", marks=pytest.mark.slow)])
def python(request, exported, tmp_path):
    """Words that run a script where lookalike and torch are forbidden, or where requirements.txt alone is installed."""
    if request.param == "forbidden":
        return [sys.executable, "-c", FORBID]
    if UV is None:
        pytest.skip("uv makes the environment")
    _, _, folder = exported("embedder")
    fresh = str(tmp_path / "fresh" / "bin" / "python")
    for words in (
        ["venv", "--python", sys.executable, str(tmp_path / "fresh")],
        ["pip", "install", "--python", fresh, "-r", "requirements.txt"],
    ):
        made = subprocess.run([UV, *words], cwd=folder / "out", capture_output=True, text=True, check=False)
        if "Failed to fetch" in made.stderr:
            pytest.skip("no package index can be reached")
        assert made.returncode == 0, made.stderr
    look = "from importlib.util import find_spec; print(find_spec('lookalike'), find_spec('torch'))"
    assert subprocess.run([fresh, "-c", look], capture_output=True, text=True, check=True).stdout == "None None\n"
    return [fresh]


@contextmanager
def served(out, token, python=(sys.executable, "-c", FORBID)):
    """Call the service of an export as its Dockerfile starts it: path, body and token to status and answer."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    uvicorn = str(Path(python[0]).with_name("uvicorn"))
    start = [*python, uvicorn, "service:app", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(start, cwd=out, env={**os.environ, "TOKEN": token})

    def call(path, body=None, key=token):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST" if body is not None else "GET", path, body, {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if answer.getheader("Content-Type") == "application/json" else text

    def is_there():
        try:
            return call("/openapi.json")[0]
        except ConnectionError:
            return False

    try:
        wait_until(is_there, 120, "the service did not start")
        yield call
    finally:
        process.terminate()
        process.wait()


def test_the_exported_service_answers(exported, python, tmp_path):
    _, _, folder = exported("embedder")
    out = shutil.copytree(folder / "out", tmp_path / "out")
    assert len((out / "service.py").read_text().splitlines()) <= 40
    pinned = [line.split("==") for line in (out / "requirements.txt").read_text().splitlines()]
    assert all(version(name) == number for name, number in pinned)
    assert "requirements.txt" in (out / "Dockerfile").read_text()
    path = folder / "pictures" / "even" / "004.png"
    printed = subprocess.run([*python, "use.py", str(path)], cwd=out, capture_output=True, text=True, check=True)
    assert printed.stdout.split()[:2] == ["1.0000", "even/004.png"]
    picture = path.read_bytes()
    (new,) = (each.read_bytes() for each in write_pictures(tmp_path / "new", 1, seed=9))
    with served(out, "key", python) as call:
        status, found = call("/search?top=3", picture)
        assert status == 200 and found[0] == [pytest.approx(1, abs=1e-5), "even/004.png"] and len(found) == 3
        assert len(call("/vector", picture)[1]) > 3
        assert call("/pictures?name=new.png", new) == (201, 11)
        assert call("/pictures?name=new.png", new) == (422, {"detail": "new.png: is in the index already"})
        assert call("/search?top=1", new)[1][0][1] == "new.png"
        assert call("/search", b"no picture") == (422, {"detail": "no readable picture"})
        assert call("/search", picture, key="other")[0] == 401
        assert call("/search", b"\x00" * (25 * 2**20))[0] == 413


def test_without_a_token_everybody_asks_an_exported_service_and_nobody_adds(exported):
    _, _, folder = exported("embedder")
    picture = (folder / "pictures" / "even" / "004.png").read_bytes()
    with served(folder / "out", "") as call:
        assert call("/search?top=1", picture)[1][0][1] == "even/004.png"
        assert call("/pictures?name=new.png", picture)[0] == 403
