"""Files from elsewhere are read, never run: whatever they ask for, a marker stays unwritten and one line names them."""

import ast
import io
import pickle
import re
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from lookalike.base.files import read_tensors
from lookalike.models.backbones import Trunk
from lookalike.workflow.data.decoded import SIZES, DecodedPictures
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers import cars
from lookalike.workflow.data.readers.pascal5i import read_mask
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.files import read_yaml
from lookalike.workflow.training.checkpoint import ResumeFile
from projects import ROOT


class Hostile:
    """Writes a marker when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "it ran"


def zipped(content):
    """A pickle as torch lays it out."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")
    return stream.getvalue()


def object_array(content, name=None):
    """A pickle as NumPy lays it out, alone or in an ``.npz``."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    if name is None:
        return stream.getvalue() + content
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, stream.getvalue() + content)
    return packed.getvalue()


READERS = {
    "weights": lambda path: Trunk("tiny", str(path.rename(path.with_suffix(".pth"))), "trained"),
    "safe weights": lambda path: Trunk("tiny", str(path.rename(path.with_suffix(".safetensors"))), "trained"),
    "model": read_tensors,
    "annotations": lambda path: cars.read({}, path.rename(path.with_name("cars_annos.mat")).parent),
    "mask": lambda path: read_mask(path.rename(path.with_suffix(".mat"))),
    "picture": read_picture,
}


@pytest.mark.parametrize("wrapped", [bytes, zipped, object_array, lambda content: object_array(content, "arr.npy")])
@pytest.mark.parametrize("reader", READERS)
def test_a_pickle_is_refused_by_its_name_and_not_run(tmp_path, marker, reader, wrapped):
    path = tmp_path / "hostile"
    path.write_bytes(wrapped(pickle.dumps(Hostile(marker), protocol=2)))
    with pytest.raises(ValueError, match=r"hostile|cars_annos\.mat") as said:
        READERS[reader](path)
    assert "\n" not in str(said.value).strip()
    assert not marker.exists()


def test_a_pickle_does_run_where_it_is_unpickled(marker):
    pickle.loads(pickle.dumps(Hostile(marker), protocol=2))
    assert marker.exists()


@pytest.mark.parametrize("signed", [False, True], ids=["as it is", "with a checksum"])
def test_a_state_of_a_training_that_holds_more_than_tensors_is_thrown_away(tmp_path, marker, signed, caplog):
    path = tmp_path / ".seed0.unfinished"
    if signed:  # by somebody who knows the format
        ResumeFile(path, "x").write({"epoch": 1, "last": Hostile(marker)})
    else:
        torch.save({"digest": "x", "epoch": 1, "last": Hostile(marker)}, path)
    assert ResumeFile(path, "x").read() is None
    assert "is damaged" in caplog.text
    assert not marker.exists()


def test_kept_pictures_with_objects_among_them_are_not_loaded(tmp_path, marker):
    (tmp_path / SIZES).write_bytes(object_array(pickle.dumps(Hostile(marker), protocol=2)))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        DecodedPictures(tmp_path, [])
    assert not marker.exists()


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{marker}']]",
        "!!python/object/apply:os.system ['touch {marker}']",
        "!!python/name:os.system",
        "!!python/object/new:os.system ['touch {marker}']",
    ],
)
def test_yaml_makes_no_objects(tmp_path, marker, tag):
    path = tmp_path / "own.yaml"
    path.write_text(f"name: own\nrecipe: {tag.format(marker=marker)}\n")
    with pytest.raises(ValueError, match=r"own\.yaml, line 2: is no valid YAML, could not determine a constructor"):
        read_yaml(path)
    assert not marker.exists()


def png_of(width, height):
    """A picture of one colour, which takes a thousandth of its pixels on the disk."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(bytes(1 + width // 8)) for _ in range(height)) + rows.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_a_picture_of_four_hundred_megapixels_in_fifty_kilobytes_is_refused_before_it_is_decoded(tmp_path):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of(20_000, 20_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"bomb\.png: no readable picture \(.*decompression bomb"):
        read_picture(path)


CLIMBING = ("../climbs", "/tmp/climbs", "a/b", "..", "with space", "", "a\nb", "$(touch x)")
REFUSED_BY = {  # key of a call: what is said of a name that is none
    "name": "configuration, name: {} is no name of small letters",
    "suffix": "configuration, suffix: {} does not match",
    "scale": "configuration, scale: {} is no name of small letters",
    "datasets": "datasets: {} is no name of small letters",
    "tables": "tables: unknown {}",
}


@pytest.mark.parametrize(
    ("key", "name"), [(key, name) for key in REFUSED_BY for name in CLIMBING if (key, name) != ("suffix", "")]
)
def test_names_that_climb_out_of_their_folder_are_refused(key, name):
    own = {"datasets": {"own": {"layout": "folder", "folder": "x"}}, "name": "own", "tables": ["comparison"]}
    changed = {"datasets": {name: own["datasets"]["own"]}, "tables": [name]}.get(key, name)
    usual = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
    given = {**usual, key: name} if key in ("suffix", "scale") else {**usual, **own, key: changed}
    with pytest.raises(ValueError, match=re.escape(REFUSED_BY[key].format(repr(name)))):
        Plan(given).runs  # noqa: B018


def calls_of(path):
    """Every call in a module: what is called, and its named arguments."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords}


def test_no_rule_and_no_module_hands_text_to_a_shell():
    rules = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    assert len(rules) > 15
    assert [path.name for path in rules if re.search(r"^\s*shell:|\bshell\(", path.read_text(), re.MULTILINE)] == []
    asked = [(path.name, *each) for path in sources for each in calls_of(path)]
    unwanted = {"eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads"}
    assert [each for each in asked if each[1] in unwanted or {"shell=True", "allow_pickle=True"} & each[2]] == []
    loads = [each[2] for each in asked if each[1] == "torch.load"]
    assert loads
    assert all("weights_only=True" in named for named in loads)
