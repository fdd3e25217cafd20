import numpy as np
import pytest
from scipy.io import savemat

from described import read_layout
from lookalike.workflow.data import read_split

NAMES = [
    "AM General Hummer SUV 2000",
    "Acura RL Sedan 2012",
    "Ram C/V Cargo Van Minivan 2012",
    "smart fortwo Convertible 2012",
]
SPECIFICATION = {
    "title": "few cars",
    "layout": "cars",
    "classes": {"train": [1, 2], "test": [3, 4]},
    "hierarchy": "cars",
}


FIELDS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class")


def annotations(rows, *fields):
    """A MATLAB struct array, with the small unsigned integers of the official files."""
    table = np.zeros((1, len(rows)), dtype=[(field, object) for field in fields])
    for place, (path, *numbers) in enumerate(rows):
        table[0, place] = (path, *(np.uint8(number) for number in numbers))
    return table


def names(of):
    return np.array(of, dtype=object)[None]


@pytest.fixture
def combined(tmp_path, touch):
    rows = [(f"car_ims/{n:06d}.jpg", 10, 20, 200, 250, 1 + (n - 1) // 2) for n in range(1, 9)]
    touch(tmp_path, [path for path, *_ in rows])
    savemat(
        tmp_path / "cars_annos.mat",
        {"annotations": annotations(rows, "relative_im_path", *FIELDS), "class_names": names(NAMES)},
    )
    return tmp_path


@pytest.fixture
def train_test(tmp_path, touch):
    """Both halves begin at 00001.jpg, and hold every class."""
    rows = [(f"{n:05d}.jpg", n, 20, 200, 250, n) for n in range(1, 5)]
    for half in ("cars_train", "cars_test"):
        touch(tmp_path / half, [path for path, *_ in rows])
    (tmp_path / "devkit").mkdir()
    savemat(tmp_path / "devkit" / "cars_train_annos.mat", {"annotations": annotations(rows, "fname", *FIELDS)})
    savemat(
        tmp_path / "devkit" / "cars_test_annos.mat", {"annotations": annotations([row[:1] for row in rows], "fname")}
    )
    savemat(tmp_path / "devkit" / "cars_meta.mat", {"class_names": names(NAMES)})
    savemat(tmp_path / "cars_test_annos_withlabels.mat", {"annotations": annotations(rows, "fname", *FIELDS)})
    return tmp_path


@pytest.fixture
def class_folders(tmp_path, touch, write_lines):
    """As on Kaggle: the class name with a slash is written C-V in one half and nests two folders in the other."""
    top = tmp_path / "car_data" / "car_data"
    for half, van in (("train", "Ram C-V Cargo Van Minivan 2012"), ("test", NAMES[2])):
        folders = [van if name == NAMES[2] else name for name in NAMES]
        touch(top / half, [f"{folder}/{n:05d}.jpg" for n, folder in enumerate(folders, start=1)])
        write_lines(top / f"anno_{half}.csv", [f"{n:05d}.jpg,{n},20,200,250,{n}" for n in range(1, 5)])
    write_lines(top / "names.csv", [f'"{name}"' if "/" in name else name for name in NAMES])
    return tmp_path


def test_combined_cars_are_read(combined):
    frame = read_layout(SPECIFICATION, combined)
    assert frame["label"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert frame["role"].tolist() == ["train"] * 4 + ["test"] * 4
    assert frame["path"][0] == "car_ims/000001.jpg"
    assert frame.attrs["packaging"] == "combined"


def test_boxes_of_small_unsigned_integers_do_not_wrap_around(combined):
    frame = read_layout(SPECIFICATION, combined)
    assert frame.loc[0, ["box_x", "box_y", "box_width", "box_height"]].tolist() == [10.0, 20.0, 190.0, 230.0]


def test_make_and_body_are_coarse_labels(combined):
    classes = read_layout(SPECIFICATION, combined).drop_duplicates("label")
    assert classes["coarse_make"].nunique() == 4
    assert classes["coarse_body"].nunique() == 4  # SUV, sedan, minivan, convertible


def test_train_and_test_halves_are_merged_and_split_by_class(train_test):
    frame = read_layout(SPECIFICATION, train_test)
    assert frame["path"].tolist() == [f"cars_{half}/{n:05d}.jpg" for half in ("train", "test") for n in range(1, 5)]
    assert frame["role"].tolist() == ["train", "train", "test", "test"] * 2
    assert frame.attrs["packaging"] == "train_test"


def test_a_half_that_unpacks_into_itself_is_found(train_test):
    (train_test / "cars_test").rename(train_test / "inner")
    (train_test / "cars_test").mkdir()
    (train_test / "inner").rename(train_test / "cars_test" / "cars_test")
    assert read_layout(SPECIFICATION, train_test)["path"][4] == "cars_test/cars_test/00001.jpg"


def test_a_devkit_without_test_labels_is_refused(train_test):
    (train_test / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(
        ValueError, match=r"withlabels\.mat does not exist; the devkit's own cars_test_annos\.mat has no"
    ):
        read_layout(SPECIFICATION, train_test)
    (train_test / "devkit" / "cars_test_annos.mat").rename(train_test / "cars_test_annos_withlabels.mat")
    with pytest.raises(ValueError, match="holds no annotations with the field 'bbox_x1'"):
        read_layout(SPECIFICATION, train_test)


@pytest.mark.parametrize("with_lists", [True, False])
def test_class_folders_are_read_whatever_became_of_the_slash(class_folders, with_lists):
    top = class_folders / "car_data" / "car_data"
    specification = SPECIFICATION
    if not with_lists:
        for name in ("names.csv", "anno_train.csv", "anno_test.csv"):
            (top / name).unlink()
        # the ids of the full set: 1, 3, 174, 196
        specification = {
            **SPECIFICATION,
            "classes": {"train": ["AM General Hummer SUV 2000", NAMES[1]], "test": NAMES[2:]},
        }
    frame = read_layout(specification, class_folders)
    assert sorted(frame["role"]) == ["test"] * 4 + ["train"] * 4
    vans = frame[frame["path"].str.contains("Cargo")]
    assert vans["label"].nunique() == 1
    assert set(vans["path"].str.count("/")) == {4, 5}
    assert ("box_x" in frame) == with_lists
    assert frame.attrs["packaging"] == "class_folders"


def test_a_folder_of_other_signs_is_the_only_class_that_it_can_be(class_folders, touch, caplog):
    read_layout(SPECIFICATION, class_folders)
    (told,) = {record.getMessage() for record in caplog.records}
    pair = "'Ram C-V Cargo Van Minivan 2012' for 'Ram C/V Cargo Van Minivan 2012'"
    assert told == f"1 class taken for one that shares letters and digits alone: {pair}"
    touch(class_folders / "car_data" / "car_data" / "train", ["Ram C_V Cargo Van Minivan 2012/00001.jpg"])
    with pytest.raises(ValueError, match=r"Ram C.V Cargo Van Minivan 2012 is no class of Cars196"):
        read_layout(SPECIFICATION, class_folders)


def test_class_folders_and_lists_that_differ_are_refused(class_folders):
    top = class_folders / "car_data" / "car_data"
    image = top / "train" / NAMES[0] / "00001.jpg"
    image.rename(image.with_name("00009.jpg"))
    with pytest.raises(ValueError, match=r"00001\.jpg is not both an image and a row of anno_train\.csv"):
        read_layout(SPECIFICATION, class_folders)


def test_a_folder_that_is_no_car_is_named(class_folders, touch):
    touch(class_folders / "car_data" / "car_data" / "train", ["Batmobile 1966/00001.jpg"])
    with pytest.raises(ValueError, match="Batmobile 1966 is no class of Cars196"):
        read_layout(SPECIFICATION, class_folders)


def test_a_class_without_images_is_named(class_folders):
    top = class_folders / "car_data" / "car_data"
    for half in ("train", "test"):
        (top / half / NAMES[1] / "00002.jpg").unlink()
        (top / f"anno_{half}.csv").unlink()
    with pytest.raises(ValueError, match=r"class 2 \(Acura RL Sedan 2012\) of role train has no image"):
        read_layout(SPECIFICATION, class_folders)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"<html>quota</html>" * 20, "is no readable MATLAB file"), (b"", "is no readable MATLAB file")],
)
def test_a_list_that_is_no_matlab_file_is_refused(combined, content, message):
    (combined / "cars_annos.mat").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_layout(SPECIFICATION, combined)


def test_a_missing_car_is_named(combined):
    (combined / "car_ims" / "000003.jpg").unlink()
    with pytest.raises(ValueError, match=r"000003\.jpg does not exist \(1 of 8"):
        read_layout(SPECIFICATION, combined)


def test_a_root_without_any_packaging_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"holds none of cars_annos\.mat, devkit/ and train/"):
        read_layout(SPECIFICATION, tmp_path)


def test_the_classification_split_is_refused_by_its_counts(combined):
    with pytest.raises(ValueError, match=r"class 5 \(not in the list of classes\) of role train has no image"):
        read_split("cars", combined)


def test_a_list_that_crashes_the_reader_of_matlab_is_refused_by_its_name(combined):
    path = combined / "cars_annos.mat"
    savemat(path, {"class_names": names(["Car 1", "Car 2"])})
    content = bytearray(path.read_bytes())
    content[144] = 14  # scipy 1.16 ends with the process on this kind of array
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cars_annos\.mat is (broken|no readable)"):
        read_layout(SPECIFICATION, combined)
