"""Annotations of all data sets, spoiled: rows of pictures that are there, or one line that says what is wrong."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from described import read_layout, read_layout_keypoints
from spoiled import examples, read_or_refused, spoiled_bytes, spoiled_text, written

BIRDS = [f"{label:03d}.Bird_{label}/{number}.jpg" for label in (1, 2, 3, 4) for number in (1, 2)]
CLOTHES = [f"img/WOMEN/Denim/id_{item:08d}/0{number}_front.jpg" for item in (1, 7) for number in (1, 2)]
KINDS = ("00000_Animalia_Chordata_Aves_O_F_G_a", "00001_Plantae_T_M_O_F_G_b", "00002_Plantae_T_M_O_F_G_c")
SUPER_CATEGORIES = {"Birds": 1, "Plants": 2}


def lines(*rows):
    return "".join(f"{row}\n" for row in rows)


@dataclass(frozen=True)
class Layout:
    """A small data set: its pictures, the text files about them, and what `params/datasets` says of it."""

    pictures: tuple[str, ...]
    texts: dict[str, str]
    specification: dict


HALVES = {"train": [1, 2], "test": [3, 4]}
LAYOUTS = {
    "cub": Layout(
        tuple(f"CUB_200_2011/images/{bird}" for bird in BIRDS),
        {
            "CUB_200_2011/images.txt": lines(*(f"{n} {bird}" for n, bird in enumerate(BIRDS, 1))),
            "CUB_200_2011/image_class_labels.txt": lines(*(f"{n} {1 + (n - 1) // 2}" for n in range(1, 9))),
            "CUB_200_2011/classes.txt": lines(*(f"{n} {n:03d}.Bird_{n}" for n in range(1, 5))),
            "CUB_200_2011/bounding_boxes.txt": lines(*(f"{n} 1.0 2.5 30.0 40.0" for n in range(1, 9))),
            "CUB_200_2011/parts/parts.txt": "1 back\n2 left eye\n",
            "CUB_200_2011/parts/part_locs.txt": lines(*(f"{n} {p} 1.0 2.0 1" for n in range(1, 9) for p in (1, 2))),
        },
        {"layout": "cub", "classes": HALVES},
    ),
    "sop": Layout(
        tuple(f"Stanford_Online_Products/fan_final/{n}.JPG" for n in range(8)),
        {
            f"Stanford_Online_Products/Ebay_{role}.txt": lines(
                "image_id class_id super_class_id path",
                *(f"{n} {1 + n // 2} 1 fan_final/{n}.JPG" for n in numbers),
            )
            for role, numbers in (("train", range(4)), ("test", range(4, 8)))
        },
        {"layout": "sop", "classes": HALVES},
    ),
    "inshop": Layout(
        tuple(f"Img/{path}" for path in CLOTHES),
        {
            "Eval/list_eval_partition.txt": lines(
                4,
                "image_name item_id evaluation_status",
                *(
                    f"{p} {p.split('/')[3]} {r}"
                    for p, r in zip(CLOTHES, ("train", "train", "query", "gallery"), strict=True)
                ),
            ),
            "Anno/list_bbox_inshop.txt": lines(
                4, "image_name clothes_type pose_type x_1 y_1 x_2 y_2", *(f"{p} 1 2 010 020 110 220" for p in CLOTHES)
            ),
        },
        {"layout": "inshop"},
    ),
    "inat": Layout(
        tuple(f"train_mini/{kind}/0.jpg" for kind in KINDS),
        {
            "iNaturalist_train.txt": lines(f"{KINDS[0]}/0.jpg,3,0", f"{KINDS[1]}/0.jpg,8,1"),
            "iNaturalist_test.txt": lines(f"{KINDS[2]}/0.jpg,8,2"),
        },
        {"layout": "inat", "super_categories": SUPER_CATEGORIES},
    ),
    "cars": Layout(
        tuple(
            f"{half}/Car {label}/{half}{label}{n}.jpg"
            for half in ("train", "test")
            for label in (1, 2, 3, 4)
            for n in (1, 2)
        ),
        {
            "names.csv": lines(*(f"Car {label}" for label in (1, 2, 3, 4))),
            **{
                f"anno_{half}.csv": lines(
                    *(f"{half}{label}{n}.jpg,10,20,200,250,{label}" for label in (1, 2, 3, 4) for n in (1, 2))
                )
                for half in ("train", "test")
            },
        },
        {"layout": "cars", "classes": HALVES},
    ),
    "pascal5i": Layout((), {}, {"layout": "pascal5i"}),
}
TEXTS = [(name, text) for name, layout in LAYOUTS.items() for text in layout.texts]


@pytest.fixture(scope="module")
def roots():
    """Each data set as it should be, made once."""
    folder = Path(tempfile.mkdtemp())
    for name, layout in LAYOUTS.items():
        for picture in layout.pictures:
            (folder / name / picture).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / picture).touch()
        for text, content in layout.texts.items():
            (folder / name / text).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / text).write_text(content)
    yield folder
    shutil.rmtree(folder)


def rows_of(layout, root):
    """All that is read of a data set."""
    frame = read_layout(layout.specification, root)
    if layout.specification["layout"] == "cub":
        read_layout_keypoints(layout.specification, root)
    return frame


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.texts])
def test_the_data_sets_are_right_before_they_are_spoiled(roots, name):
    assert len(rows_of(LAYOUTS[name], roots / name)) >= 3


@pytest.mark.parametrize(("name", "text"), TEXTS, ids=[f"{name} {Path(text).name}" for name, text in TEXTS])
def test_a_spoiled_list_gives_rows_of_pictures_or_one_line(roots, name, text):
    layout = LAYOUTS[name]
    root, whole = roots / name, layout.texts[text]

    @examples(0.45 / len(TEXTS))
    @given(spoiled_text(whole))
    def try_it(content):
        written(root / text, content)
        frame = read_or_refused(lambda: rows_of(layout, root))
        if frame is not None:
            assert all((root / path).is_file() for path in frame["path"])
            assert frame["label"].dtype == "int64"

    try:
        try_it()
    finally:
        written(root / text, whole.encode())


@pytest.fixture
def annotated(tmp_path):
    """Cars in the packaging of the papers: one file of MATLAB."""
    fields = ("relative_im_path", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class")
    table = np.zeros((1, 8), dtype=[(field, object) for field in fields])
    (tmp_path / "car_ims").mkdir()
    for place in range(8):
        path = f"car_ims/{place:06d}.jpg"
        table[0, place] = (path, *map(np.uint8, (10, 20, 200, 250, 1 + place // 2)))
        (tmp_path / path).touch()
    names = np.array([f"Car {label}" for label in (1, 2, 3, 4)], dtype=object)[None]
    savemat(tmp_path / "cars_annos.mat", {"annotations": table, "class_names": names})
    return tmp_path


def test_a_spoiled_file_of_matlab_gives_rows_of_pictures_or_one_line(annotated):
    path = annotated / "cars_annos.mat"
    whole = path.read_bytes()
    specification = LAYOUTS["cars"].specification
    assert len(read_layout(specification, annotated)) == 8

    @examples(0.05)
    @given(spoiled_bytes(whole))
    def try_it(content):
        written(path, content)
        read_or_refused(lambda: read_layout(specification, annotated))

    try_it()


@examples(0.05)
@given(st.lists(st.text(alphabet="0123456789_-cabAnimaliPlte.", min_size=1, max_size=40), min_size=1, max_size=4))
def test_folders_and_files_of_any_name_are_read_or_refused(names):
    with tempfile.TemporaryDirectory() as folder:
        for top in ("train_mini", "bounding_box_train", "query", "bounding_box_test"):
            for name in names:
                if name not in (".", ".."):
                    (Path(folder) / top / name).mkdir(parents=True, exist_ok=True)
                    (Path(folder) / top / name / "0.jpg").touch()
                    (Path(folder) / top / f"{name}.png").touch()
        for layout in ("inat", "cuhk03", "folder"):
            specification = {"layout": layout, "folder": "train_mini"}
            read_or_refused(lambda specification=specification: read_layout(specification, Path(folder)))
