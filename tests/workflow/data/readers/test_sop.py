import pytest

from described import read_layout

SPECIFICATION = {
    "title": "some products",
    "layout": "sop",
    "classes": {"train": [1, 2], "test": [3, 4]},
    "counts": {"train": {"classes": 2, "images": 5}, "test": {"classes": 2, "images": 4}},
}
HEADER = "image_id class_id super_class_id path"
TRAIN = ["1 1 1 bicycle_final/1_0.JPG", "2 1 1 bicycle_final/1_1.JPG"] + [
    f"{n} 2 3 fan_final/2_{n}.JPG" for n in (3, 4, 5)
]
TEST = [f"{n} {3 + n % 2} {1 if n % 2 else 3} {'bicycle' if n % 2 else 'fan'}_final/x_{n}.JPG" for n in (6, 7, 8, 9)]


@pytest.fixture
def root(tmp_path, touch, write_lines):
    top = tmp_path / "Stanford_Online_Products"
    touch(top, [row.split()[3] for row in TRAIN + TEST])
    touch(top, ["fan_final/not_listed.JPG", "__MACOSX/._Ebay_train.txt"])
    for name, rows in (("train", TRAIN), ("test", TEST), ("info", TRAIN + TEST)):
        write_lines(top / f"Ebay_{name}.txt", [HEADER, *rows])
    return tmp_path


def test_products_are_read_from_both_lists_without_their_headers(root):
    frame = read_layout(SPECIFICATION, root)
    assert frame["path"].tolist() == [f"Stanford_Online_Products/{row.split()[3]}" for row in TRAIN + TEST]
    assert frame["label"].tolist() == [1, 1, 2, 2, 2, 3, 4, 3, 4]
    assert frame["role"].tolist() == ["train"] * 5 + ["test"] * 4
    assert frame["coarse_super"].tolist() == [1, 1, 3, 3, 3, 3, 1, 3, 1]
    assert frame["coarse_super"].dtype == "int64"


def test_super_classes_are_shared_by_train_and_test(root):
    frame = read_layout(SPECIFICATION, root)
    assert set(frame.loc[frame["role"] == "train", "coarse_super"]) == set(
        frame.loc[frame["role"] == "test", "coarse_super"]
    )


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("train", "10 3 1 bicycle_final/1_0.JPG", "class 3 is in both lists"),
        ("train", "10 5 1 bicycle_final/9.JPG", "class 5 is in the list of role train, but not in its classes"),
        ("test", "10 3 1", "does not hold the fields image_id, label, coarse_super, path"),
        ("test", "10 three 1 fan_final/x_6.JPG", "column 'label' holds a value that is no int"),
        ("test", f"10 3 3 {'x' * 300}/x.JPG", r"x/x\.JPG does not exist \(1 of 10"),
        ("test", "10 3 3 fan_final/gone.JPG", r"fan_final/gone\.JPG does not exist \(1 of 10"),
        ("test", "10 3 3 fan_final/x_6.JPG", r"fan_final/x_6\.JPG is listed twice"),
    ],
)
def test_a_wrong_row_is_refused(root, name, row, message):
    with (root / "Stanford_Online_Products" / f"Ebay_{name}.txt").open("a") as stream:
        stream.write(f"{row}\n")
    with pytest.raises(ValueError, match=message):
        read_layout(SPECIFICATION, root)


def test_a_class_missing_from_its_list_is_named(root):
    with pytest.raises(ValueError, match=r"class 5 .* of role test has no image"):
        read_layout({**SPECIFICATION, "classes": {"train": [1, 2], "test": [3, 5]}}, root)


def test_a_missing_list_is_named(root):
    (root / "Stanford_Online_Products" / "Ebay_test.txt").unlink()
    with pytest.raises(ValueError, match=r"Ebay_test\.txt does not exist"):
        read_layout(SPECIFICATION, root)
