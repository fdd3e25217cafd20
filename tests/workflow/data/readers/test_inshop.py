import pytest

from described import read_layout

SPECIFICATION = {
    "title": "few clothes",
    "layout": "inshop",
    "counts": {
        "train": {"classes": 1, "images": 2},
        "query": {"classes": 2, "images": 2},
        "gallery": {"classes": 2, "images": 3},
    },
    "self_match": False,
}
ROWS = [
    ("img/WOMEN/Denim/id_00000007/01_1_front.jpg", "id_00000007", "query"),
    ("img/WOMEN/Denim/id_00000007/01_2_side.jpg", "id_00000007", "gallery"),
    ("img/MEN/Denim/id_00000001/01_1_front.jpg", "id_00000001", "train"),
    ("img/MEN/Denim/id_00000001/01_2_side.jpg", "id_00000001", "train"),
    ("img/MEN/Pants/id_00003998/01_1_front.jpg", "id_00003998", "gallery"),
    ("img/MEN/Pants/id_00003998/01_2_side.jpg", "id_00003998", "query"),
    ("img/MEN/Pants/id_00003998/02_1_front.jpg", "id_00003998", "gallery"),
]


@pytest.fixture
def root(tmp_path, touch, write_lines):
    """Rows in no order of roles, columns padded with spaces, as in the official list."""
    touch(tmp_path / "Img", [path for path, _, _ in ROWS])
    write_lines(
        tmp_path / "Eval" / "list_eval_partition.txt",
        [str(len(ROWS)), "image_name item_id evaluation_status", *(f"{p:<70}   {i}   {s}  " for p, i, s in ROWS)],
    )
    return tmp_path


@pytest.fixture
def boxes(root, write_lines):
    path = root / "Anno" / "list_bbox_inshop.txt"
    rows = [f"{image}   1   2   010 020 110 220" for image, _, _ in reversed(ROWS)]
    write_lines(path, [str(len(rows)), "image_name clothes_type pose_type x_1 y_1 x_2 y_2", *rows])
    return path


def test_clothes_are_read_into_three_roles(root):
    frame = read_layout(SPECIFICATION, root)
    assert frame["path"].tolist() == [f"Img/{path}" for path, _, _ in ROWS]
    assert frame["label"].tolist() == [7, 7, 1, 1, 3998, 3998, 3998]
    assert frame["role"].tolist() == [role for _, _, role in ROWS]


def test_query_and_gallery_share_items_but_no_image(root):
    frame = read_layout(SPECIFICATION, root)
    query, gallery = (frame[frame["role"] == role] for role in ("query", "gallery"))
    assert set(query["label"]) == set(gallery["label"])
    assert not set(query["path"]) & set(gallery["path"])


def test_the_category_tells_women_from_men(root):
    assert read_layout(SPECIFICATION, root)["coarse_category"].tolist() == [2, 2, 0, 0, 1, 1, 1]


def test_boxes_are_joined_by_image(root, boxes):
    frame = read_layout(SPECIFICATION, root)
    assert frame.loc[3, ["box_x", "box_y", "box_width", "box_height"]].tolist() == [10.0, 20.0, 100.0, 200.0]


@pytest.mark.parametrize("top", ["In-shop Clothes Retrieval Benchmark", "."])
def test_pictures_and_top_folder_may_lie_otherwise(root, tmp_path_factory, top):
    other = tmp_path_factory.mktemp("other") / top
    other.mkdir(exist_ok=True)
    (root / "Eval").rename(other / "Eval")
    (root / "Img" / "img").rename(other / "img")
    frame = read_layout(SPECIFICATION, other if top == "." else other.parent)
    assert frame["path"][0] == (ROWS[0][0] if top == "." else f"{top}/{ROWS[0][0]}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "states 7 rows and holds 6"),
        (lambda lines: lines[1:], "states image_name item_id evaluation_status rows"),
        (lambda lines: [*lines[:-1], lines[-1].replace("gallery", "val")], "evaluation_status 'val' is none of train"),
        (lambda lines: [*lines[:-1], lines[-1].replace("gallery", "query")], "few clothes, query: .* 3 images found"),
        (lambda lines: [*lines[:-1], lines[-1].replace(" id_", " nr_")], "column 'item' holds a value that is no int"),
        (lambda lines: [*lines[:-1], lines[2]], "is listed twice"),
        (lambda lines: [], "states no number of rows"),
    ],
)
def test_a_broken_partition_is_refused(root, write_lines, change, message):
    path = root / "Eval" / "list_eval_partition.txt"
    write_lines(path, change(path.read_text().splitlines()))
    with pytest.raises(ValueError, match=message):
        read_layout(SPECIFICATION, root)


def test_boxes_of_other_images_are_refused(root, boxes):
    boxes.write_text(boxes.read_text().replace("01_2_side", "01_9_side", 1))
    with pytest.raises(ValueError, match=r"01_9_side\.jpg is annotated, but not in the partition"):
        read_layout(SPECIFICATION, root)
    lines = boxes.read_text().replace("01_9_side", "01_2_side").splitlines()
    boxes.write_text("\n".join(["6", lines[1], *lines[3:]]))
    with pytest.raises(ValueError, match="no row for image img/MEN/Pants"):
        read_layout(SPECIFICATION, root)
