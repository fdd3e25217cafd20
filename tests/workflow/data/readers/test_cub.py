import pandas as pd
import pytest

from described import read_layout, read_layout_keypoints

NAMES = ["Laysan_Albatross", "Groove_billed_Ani", "Blue_Jay", "Fish_Crow"]
SPECIFICATION = {
    "title": "small birds",
    "layout": "cub",
    "classes": {"train": [1, 2], "test": [3, 4]},
    "counts": {"train": {"classes": 2, "images": 6}, "test": {"classes": 2, "images": 6}},
    "hierarchy": "cub",
    "self_match": True,
}
ROWS = [
    (number, f"{label:03d}.{name}/{name}_{n}.jpg", label)
    for number, (label, name, n) in enumerate(
        ((label, name, n) for label, name in enumerate(NAMES, start=1) for n in range(3)), start=10
    )
]


@pytest.fixture
def root(tmp_path, touch, write_lines):
    """Four classes with three images each; lists in different orders, stray files, Windows' line ends."""
    top = tmp_path / "CUB_200_2011"
    touch(top / "images", [path for _, path, _ in ROWS])
    touch(top / "images", ["001.Laysan_Albatross/Laysan_Albatross_0_rgb.jpg", "001.Laysan_Albatross/._Laysan_0.jpg"])
    write_lines(top / "images.txt", [f"{number} {path}\r" for number, path, _ in ROWS])
    write_lines(top / "image_class_labels.txt", [f"{number} {label}" for number, _, label in reversed(ROWS)])
    write_lines(top / "classes.txt", [f"{label} {label:03d}.{name}" for label, name in enumerate(NAMES, start=1)])
    write_lines(top / "train_test_split.txt", [f"{number} {number % 2}" for number, _, _ in ROWS])
    write_lines(top / "bounding_boxes.txt", [f"{number} {number}.0 20.5 30.0 40.0" for number, _, _ in ROWS])
    write_lines(top / "parts" / "parts.txt", ["1 back", "2 left eye"])
    write_lines(
        top / "parts" / "part_locs.txt",
        [f"{n} {part} {n * (part == 2):.1f} 0.0 {int(part == 2)}" for n, _, _ in ROWS for part in (1, 2)],
    )
    return tmp_path


def test_cub_rows_follow_the_list_of_images(root):
    frame = read_layout(SPECIFICATION, root)
    assert frame["path"].tolist() == [f"CUB_200_2011/images/{path}" for _, path, _ in ROWS]
    assert frame["label"].tolist() == [label for _, _, label in ROWS]
    assert frame["label"].dtype == "int64"
    assert frame["role"].tolist() == ["train"] * 6 + ["test"] * 6
    assert frame["box_x"].tolist() == [float(number) for number, _, _ in ROWS]
    assert frame.loc[0, ["box_y", "box_width", "box_height"]].tolist() == [20.5, 30.0, 40.0]


def test_cub_coarse_labels_are_found_by_name_because_subsets_number_their_classes_anew(root):
    frame = read_layout(SPECIFICATION, root).drop_duplicates("label").set_index("label")
    # class 1 is a Laysan Albatross, class 2 of the full set; jay and crow are Corvidae
    assert frame.loc[3, "coarse_family"] == frame.loc[4, "coarse_family"]
    assert frame["coarse_family"].nunique() == 3
    assert frame["coarse_order"].nunique() == 3
    assert frame["coarse_family"].dtype == "int64"


def test_cub_without_boxes_parts_and_masks_is_read(root):
    (root / "CUB_200_2011" / "bounding_boxes.txt").unlink()
    specification = {key: value for key, value in SPECIFICATION.items() if key != "hierarchy"}
    assert list(read_layout(specification, root).columns) == ["path", "label", "role"]


def test_cub_masks_stand_beside_the_images(root, touch):
    touch(root / "segmentations", [path.replace(".jpg", ".png") for _, path, _ in ROWS])
    masks = read_layout(SPECIFICATION, root)["mask"]
    assert masks[0] == "segmentations/001.Laysan_Albatross/Laysan_Albatross_0.png"
    (root / masks[3]).unlink()
    with pytest.raises(ValueError, match=r"Groove_billed_Ani_0\.png does not exist \(1 of 12"):
        read_layout(SPECIFICATION, root)


def test_cub_keypoints_are_read_by_name(root):
    some = {"layout": "cub", "classes": {"train": [1, 1], "test": [4, 4]}}
    keypoints = read_layout_keypoints(some, root)
    assert list(keypoints.columns) == ["path", "part", "x", "y", "visible"]
    assert len(keypoints) == 2 * 3 * 2
    assert keypoints.loc[1].tolist() == [f"CUB_200_2011/images/{ROWS[0][1]}", "left eye", 10.0, 0.0, True]
    assert keypoints["visible"].tolist() == [False, True] * 6


def test_keypoints_of_a_missing_image_row_are_refused(root):
    path = root / "CUB_200_2011" / "parts" / "part_locs.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(
        ValueError, match=r"part_locs\.txt must hold one row for each of 12 images and 2 parts, it has 23"
    ):
        read_layout_keypoints(SPECIFICATION, root)


def test_a_missing_image_is_named(root):
    (root / "CUB_200_2011" / "images" / ROWS[4][1]).unlink()
    with pytest.raises(ValueError, match=r"002\.Groove_billed_Ani/Groove_billed_Ani_1\.jpg does not exist"):
        read_layout(SPECIFICATION, root)


def test_a_count_that_differs_names_data_set_role_expected_and_found(root):
    specification = {**SPECIFICATION, "counts": {"train": {"classes": 2, "images": 7}, "test": {"classes": 2}}}
    with pytest.raises(
        ValueError, match="small birds, train: 2 classes and 7 images expected, 2 classes and 6 images found"
    ):
        read_layout(specification, root)


def test_a_role_without_a_count_is_refused(root):
    with pytest.raises(ValueError, match="small birds: no images of role test expected, 6 found"):
        read_layout({**SPECIFICATION, "counts": {"train": {"classes": 2, "images": 6}}}, root)


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("bounding_boxes.txt", "99 1 1 1 1", "bounding_boxes.txt: image 99 is annotated, but not listed"),
        ("bounding_boxes.txt", "10 1 1 1 1", "bounding_boxes.txt: image 10 stands twice"),
        ("bounding_boxes.txt", "10 1 1 1", "does not hold the fields image, box_x, box_y"),
        ("bounding_boxes.txt", "10 1 1 1 wide", "column 'box_height' holds a value that is no float"),
        ("image_class_labels.txt", "99 1", "image_class_labels.txt: image 99 is annotated"),
        ("images.txt", "10 001.Laysan_Albatross/other.jpg", "or its id 10 stands twice"),
        ("images.txt", f"99 {ROWS[0][1]}", "stands twice"),
        ("images.txt", "99 ../../secret.jpg", "no row for image 99"),
    ],
)
def test_a_broken_list_is_named(root, file, line, message):
    with (root / "CUB_200_2011" / file).open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(ValueError, match=message):
        read_layout(SPECIFICATION, root)


def test_a_path_that_leads_out_of_the_root_is_refused(root):
    listed = root / "CUB_200_2011" / "images.txt"
    listed.write_text(listed.read_text().replace(ROWS[0][1], "../../../secret.jpg"))
    with pytest.raises(ValueError, match=r"secret\.jpg' is not allowed"):
        read_layout(SPECIFICATION, root)


def test_an_empty_class_is_named(root):
    for file in ("images.txt", "image_class_labels.txt", "bounding_boxes.txt"):
        path = root / "CUB_200_2011" / file
        gone = {str(number) for number, _, label in ROWS if label == 2}
        path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if line.split()[0] not in gone))
    with pytest.raises(ValueError, match=r"class 2 \(Groove_billed_Ani\) of role train has no image"):
        read_layout(SPECIFICATION, root)


def test_a_class_beyond_the_list_of_classes_is_refused(root):
    path = root / "CUB_200_2011" / "classes.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:3]))
    with pytest.raises(ValueError, match="class 4 has images, but is not in the list of classes"):
        read_layout(SPECIFICATION, root)


def test_without_classes_the_first_half_trains(root):
    assert read_layout({"layout": "cub"}, root).groupby("role")["label"].unique().map(list).to_dict() == {
        "train": [1, 2],
        "test": [3, 4],
    }


def test_classes_in_no_role_are_left_out(root):
    frame = read_layout({"layout": "cub", "classes": {"train": ["Blue_Jay"], "test": [1, 1]}}, root)
    assert frame["label"].tolist() == [1, 1, 1, 3, 3, 3]
    assert frame["role"].tolist() == ["test"] * 3 + ["train"] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": {"train": [1, 3], "test": [3, 4]}}, "class 3 is in the roles train and test"),
        ({"classes": {"train": [1, 2], "test": [3, 5]}}, r"class 5 \(not in the list of classes\) of role test has no"),
        ({"classes": {"train": ["Dodo"], "test": [3, 4]}}, "'Dodo' is no class"),
        ({"self_match": False}, r"self_match=False does not go with the roles \['test', 'train'\]"),
        ({"layout": "cubs"}, "layout: unknown 'cubs'"),
        ({"hierarchy": "cars"}, "class 'Laysan_Albatross' is not in the hierarchy"),
        ({"hierarchy": "none"}, r"hierarchies/none\.csv does not exist"),
    ],
)
def test_a_specification_that_does_not_fit_is_refused(root, changes, message):
    with pytest.raises(ValueError, match=message):
        read_layout({**SPECIFICATION, **changes}, root)


def test_a_root_one_folder_too_deep_is_explained(root):
    with pytest.raises(ValueError, match="the data set's root is the folder that holds its own top folder"):
        read_layout(SPECIFICATION, root / "CUB_200_2011")
    with pytest.raises(ValueError, match="is no folder; it should hold small birds"):
        read_layout(SPECIFICATION, root / "nowhere")


def test_a_list_that_is_not_text_is_refused(root):
    (root / "CUB_200_2011" / "classes.txt").write_bytes(b"\xff\xfe1\x00")
    with pytest.raises(ValueError, match=r"classes\.txt is not UTF-8 text"):
        read_layout(SPECIFICATION, root)


def test_reading_twice_gives_the_same_table(root):
    pd.testing.assert_frame_equal(read_layout(SPECIFICATION, root), read_layout(SPECIFICATION, root))
