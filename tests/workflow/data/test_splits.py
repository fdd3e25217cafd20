import subprocess
import sys

import pandas as pd
import pytest
import yaml

from described import read_layout, read_layout_keypoints
from lookalike.base.paths import project_root
from lookalike.workflow.data import load_specification, read_keypoints, read_split
from lookalike.workflow.data.hierarchy import read_hierarchy
from lookalike.workflow.data.readers import READERS
from lookalike.workflow.data.splits import second_half
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.model import checked
from tars import unpack

NAMES = ("cub", "cars", "sop", "inshop", "inat", "cuhk03", "cuhk03_detected", "cuhk03_labeled", "pascal5i")
SHARED = project_root().parent / "shared" / "data"


@pytest.fixture
def shared(tmp_path):
    def unpacked(name):
        if not (SHARED / name).is_file():
            pytest.skip(f"{SHARED / name} is not here")
        return unpack(SHARED / name, tmp_path / "data")

    return unpacked


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="data set: unknown 'birds'"):
        read_split("birds", tmp_path)
    with pytest.raises(ValueError, match=r"data set: unknown '\.\./config'"):
        read_split("../config", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_specification_follows_its_schema_and_links_no_withdrawn_data(name):
    specification = load_specification(name)
    assert (specification.layout or "cub") in READERS
    assert all(load_specification(variant).layout == "cuhk03" for variant in specification.one_of)
    assert "duke" not in (project_root() / "params" / "datasets" / f"{name}.yaml").read_text().lower()


@pytest.mark.parametrize(
    ("name", "role", "classes", "images"),
    [
        ("cub", "train", 100, 5864),
        ("cub", "test", 100, 5924),
        ("cars", "train", 98, 8054),
        ("cars", "test", 98, 8131),
        ("sop", "train", 11318, 59551),
        ("sop", "test", 11316, 60502),
        ("inshop", "train", 3997, 25882),
        ("inshop", "query", 3985, 14218),
        ("inshop", "gallery", 3985, 12612),
    ],
)
def test_counts_are_those_of_the_zero_shot_protocol(name, role, classes, images):
    specification = load_specification(name)
    assert specification.counts.dump()[role] == {"classes": classes, "images": images}
    if specification.classes:
        first, last = specification.classes_by_role[role]
        assert last - first + 1 == classes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"title": "x", "layout": "cub", "clases": {}}, "unknown key 'clases', did you mean 'classes'"),
        ({"title": "x"}, "^test: there must be 'layout' or 'one_of'$"),
        ({"title": "x", "layout": "cub", "archives": [{"file": "a.zip", "creates": "a"}]}, r"^test, archives\.0: "),
        ({"title": "x", "layout": "cub", "archives": [{"file": "../a", "creates": "a", "unverified": True}]}, "file"),
        ({"title": "x", "layout": "cub", "classes": {"train": [1, 2, 3]}}, "classes"),
        ({"title": "x", "layout": "cub", "counts": {"train": {"image": 3}}}, "unknown key 'image'"),
    ],
)
def test_the_schema_refuses_what_it_does_not_know(content, message):
    with pytest.raises(ValueError, match=message):
        checked(Dataset, content, "test")


@pytest.mark.parametrize(
    ("name", "classes", "levels"), [("cub", 200, {"family": 37, "order": 13}), ("cars", 196, {"make": 49, "body": 9})]
)
def test_hierarchies_name_every_class_once(name, classes, levels):
    table = read_hierarchy(project_root() / "params" / "hierarchies" / f"{name}.csv")
    assert table["class_id"].tolist() == list(range(1, classes + 1))
    assert {level: table[level].nunique() for level in levels} == levels
    if name == "cub":
        family = table.set_index("class_id")["family"]
        train, test = set(family.loc[:100]), set(family.loc[101:])
        assert (len(train), len(test), len(train & test)) == (29, 20, 12)


def test_key_points_of_a_layout_without_them_are_refused(tmp_path):
    with pytest.raises(ValueError, match="layout 'sop' has no key points; layouts with key points: cub"):
        read_keypoints("sop", tmp_path)


def test_reading_needs_no_torch():
    code = "import sys, lookalike.workflow.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_real_hundred_classes_of_cub_are_read_with_their_families(shared):
    specification = {
        "title": "100 classes of CUB",
        "layout": "cub",
        "classes": {"train": [1, 50], "test": [51, 100]},
        "counts": {"train": {"classes": 50, "images": 2949}, "test": {"classes": 50, "images": 2953}},
        "hierarchy": "cub",
    }
    frame = read_layout(specification, shared("cub100.tar"))
    assert list(frame.columns) == ["path", "label", "role", "coarse_family", "coarse_order"]
    species = frame["path"].str.extract(r"/\d+\.(\w+)/")[0]
    table = read_hierarchy(project_root() / "params" / "hierarchies" / "cub.csv").set_index("class_name")
    families = sorted(table["family"].unique())
    assert frame["coarse_family"].tolist() == [families.index(table.loc[name, "family"]) for name in species]


def test_the_real_ten_classes_of_cub_are_read_with_boxes_and_parts(shared):
    specification = {"title": "10 classes of CUB", "layout": "cub", "classes": {"train": [1, 5], "test": [6, 10]}}
    root = shared("cub10_parts.tar")
    frame = read_layout(specification, root)
    assert len(frame) == 543
    assert frame.loc[0, ["box_x", "box_y", "box_width", "box_height"]].tolist() == [60.0, 27.0, 325.0, 304.0]
    keypoints = read_layout_keypoints(specification, root)
    assert len(keypoints) == 543 * 15
    assert keypoints.loc[1].tolist() == [frame.loc[0, "path"], "beak", 312.0, 182.0, True]
    assert (keypoints.loc[~keypoints["visible"], ["x", "y"]] == 0).all(axis=None)
    boxes = keypoints[keypoints["visible"]].merge(frame, on="path")
    outside = (boxes["x"] < boxes["box_x"] - 5) | (boxes["x"] > boxes["box_x"] + boxes["box_width"] + 5)
    assert outside.mean() < 0.01


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of its own, with small data sets in its parameters."""
    (tmp_path / "Snakefile").touch()
    (tmp_path / "params" / "datasets").mkdir(parents=True)
    (tmp_path / "params" / "hierarchies").mkdir()
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        (tmp_path / "params" / "datasets" / f"{name}.yaml").write_text(yaml.safe_dump({"title": name, **content}))

    return write


def test_specifications_and_hierarchies_come_from_the_project_of_the_working_directory(project, tmp_path, touch):
    (tmp_path / "params" / "hierarchies" / "kinds.csv").write_text("class_id,name,kind\n1,b,round\n2,a,flat\n")
    project("mine", {"layout": "folder", "hierarchy": "kinds"})
    touch(tmp_path / "data", ["a/0.jpg", "a/1.jpg", "b/0.jpg"])
    assert read_split("mine", tmp_path / "data")["coarse_kind"].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="data set: unknown 'cub'"):
        read_split("cub", tmp_path)


def test_of_several_variants_the_one_that_fits_the_counts_is_read(project, tmp_path, touch):
    roles = {"query": {"images": 1}, "gallery": {"images": 1}}
    for name, images in (("two", 2), ("three", 3)):
        project(name, {"layout": "cuhk03", "counts": {"train": {"images": images}, **roles}})
    project("either", {"one_of": ["two", "three"]})
    names = [f"bounding_box_train/0001_c1_{n}.png" for n in range(3)]
    touch(tmp_path / "data", [*names, "query/0002_c1_0.png", "bounding_box_test/0002_c2_0.png"])
    frame = read_split("either", tmp_path / "data")
    assert frame.attrs["title"] == "three"
    assert len(frame) == 5
    touch(tmp_path / "data", ["bounding_box_train/0001_c1_9.png"])
    with pytest.raises(
        ValueError, match=r"either is none of its variants: two, train: 2 images expected, 4 .*; three, "
    ):
        read_split("either", tmp_path / "data")


def test_a_level_without_coarse_labels_is_refused(tmp_path):
    for name in "abcd":
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").touch()
    message = r"own, levels\.mid: it has no coarse labels 'family'; it has none"
    with pytest.raises(ValueError, match=message):
        read_layout({"title": "own", "layout": "folder", "levels": {"mid": "family"}}, tmp_path)


def roles(**labels):
    rows = [{"path": f"{label}.jpg", "label": label, "role": role} for role, own in labels.items() for label in own]
    return pd.DataFrame(rows)


def test_training_and_test_classes_change_sides_and_all_else_stays():
    frame = roles(train=[1, 2], test=[3, 4], unlabelled=[-1], left_out=[5])
    second = second_half(frame, source="birds.csv")
    assert list(second["role"]) == ["test", "test", "train", "train", "unlabelled", "left_out"]
    pd.testing.assert_frame_equal(second_half(second, source="birds.csv"), frame)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"train": [1], "query": [2], "gallery": [2]}, "has the role 'gallery'; only training and test classes can"),
        ({"train": [1, 2], "test": [2, 3]}, "class 2 both trains and tests, so the halves are not apart"),
    ],
)
def test_what_has_no_second_half_is_refused(labels, message):
    with pytest.raises(ValueError, match=rf"^birds\.csv.*{message}"):
        second_half(roles(**labels), source="birds.csv")
