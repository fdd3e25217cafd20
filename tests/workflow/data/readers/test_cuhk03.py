import pytest

from described import read_layout

SPECIFICATION = {"title": "few people", "layout": "cuhk03", "subset": "labeled", "self_match": False}
FILES = [
    "bounding_box_train/0001_c1_1.png",
    "bounding_box_train/0001_c2_1.png",
    "query/0800_c1_4.png",
    "bounding_box_test/0800_c2_5.png",
    "bounding_box_test/0801_c1_5.png",
]


@pytest.mark.parametrize("top", ["", "labeled/", "cuhk03-np/labeled/", "CUHK03-NP/labeled/"])
def test_people_are_read_with_their_cameras(tmp_path, touch, top):
    touch(tmp_path, [top + file for file in FILES])
    touch(tmp_path, [f"{top}bounding_box_test/Thumbs.db", f"{top}bounding_box_test/-1_c1_9.png"])
    frame = read_layout(SPECIFICATION, tmp_path)
    assert frame["path"].tolist() == [top + file for file in FILES]
    assert frame["label"].tolist() == [1, 1, 800, 800, 801]
    assert frame["role"].tolist() == ["train", "train", "query", "gallery", "gallery"]
    assert frame["camera"].tolist() == [1, 2, 1, 2, 1]


def test_a_subset_is_not_mistaken_for_the_other(tmp_path, touch):
    touch(tmp_path / "detected", FILES)
    with pytest.raises(ValueError, match="bounding_box_train does not exist, nor in cuhk03-np/labeled, "):
        read_layout(SPECIFICATION, tmp_path)


def test_files_of_another_naming_and_missing_folders_are_refused(tmp_path, touch):
    touch(tmp_path, FILES[:3])
    with pytest.raises(ValueError, match="bounding_box_test does not exist"):
        read_layout(SPECIFICATION, tmp_path)
    touch(tmp_path, [*FILES, "query/someone.png"])
    with pytest.raises(ValueError, match=r"someone\.png does not begin with <person>_c<camera>"):
        read_layout(SPECIFICATION, tmp_path)
