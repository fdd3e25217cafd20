"""The split of own pictures is refused where a training would be, and says what would be enough."""

import shutil

import numpy as np
import pytest
from PIL import Image

from lookalike.workflow.data import read_manifest
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.stages.download import download
from lookalike.workflow.stages.split import split

TRAIN = {"batch_size": 8, "backbone": {"name": "tiny", "weights": None, "batch_norm": "trained"}}


def configured(pictures, **values):
    recipe = {"train": TRAIN}
    given = {"name": "mine", "datasets": {"street": pictures}, "recipe": recipe, "tracking": False, **values}
    return {**read("params/config.yaml", Configuration).dump(), **given}


@pytest.fixture
def street(params):
    """An archive of six classes of three pictures, in a project of its own."""
    generator = np.random.default_rng(0)
    for name in "abcdef":
        for number in range(3):
            path = params.parent / "street" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(generator.integers(0, 255, (8, 9, 3), dtype=np.uint8)).save(path)
    return params.parent / "street"


def made(config, street):
    manifest = street.parent / "street.csv"
    split("street", config=config, archives="archives", manifest=str(manifest), threads=2)
    return read_manifest(manifest)


def packed(street):
    return {"layout": "folder", "archive": shutil.make_archive(str(street), "tar", street)}


def test_an_archive_whose_classes_do_not_fill_a_batch_is_refused_for_all_recipes_of_the_call(street, capsys):
    with pytest.raises(
        ValueError, match=r"^street: 9 pictures of 3 training classes do not fill a batch of "
    ) as refused:
        made(configured(packed(street), recipe={"train": {**TRAIN, "batch_size": 16}}), street)
    assert "compared_margin_avsl (batch_size 16 takes 4 classes)" in str(refused.value)
    assert "compared_contextual (batch_size 16 takes 4 classes)" in str(refused.value)
    assert str(refused.value).endswith("or recipe.train.batch_size: 9 in the overlay")
    assert not (street.parent / "street.csv").exists()
    assert "18 of 18 pictures decoded, 0 cannot be read" in capsys.readouterr().out


def test_what_is_left_out_no_longer_counts(street):
    for number in (1, 2):
        (street / "e" / f"{number}.png").write_bytes(b"x")
        (street / "f" / f"{number}.png").write_bytes(b"x")
        (street / "d" / f"{number}.png").write_bytes(b"x")
    pictures = {"layout": "folder", "folder": "street", "broken": "skip"}
    message = "street, test: each of the 3 classes has 1 picture, .* 2 pictures per class are enough"
    with pytest.raises(ValueError, match=message):
        made(configured(pictures), street)
    Image.open(street / "d" / "0.png").rotate(180).save(street / "d" / "1.png")
    assert (made(configured(pictures), street)["role"] == "left_out").sum() == 5


@pytest.mark.parametrize("name", ["f\n", "f, g", '"f"', " NA"])
def test_a_manifest_lists_classes_of_any_name_and_names_one_that_it_cannot_hold(street, name):
    (street / "f").rename(street / name)
    pictures = {"layout": "folder", "folder": "street"}
    assert {path.partition("/")[0] for path in made(configured(pictures), street)["path"]} == {*"abcde", name}
    (street / name).rename(street / "f\rg")
    with pytest.raises(ValueError, match=r"path 'f\\rg/0\.png': lists hold neither a backslash nor a carriage return"):
        made(configured(pictures), street)


def test_a_choice_of_the_picture_cache_holds_for_the_split(street):
    (street / "a" / "1.png").write_bytes(b"x")
    cache = {"shorter_side_px": 8, "encoding": "png", "broken": "skip"}
    pictures = {"layout": "folder", "folder": "street"}
    with pytest.raises(ValueError, match=r"street/a/1\.png: no readable picture"):
        made(configured(pictures), street)
    assert (made(configured(pictures, picture_cache=cache), street)["role"] == "left_out").sum() == 1
    with pytest.raises(ValueError, match=r"street/a/1\.png: no readable picture"):
        made(configured({**pictures, "broken": "stop"}, picture_cache=cache), street)
    assert (made(configured({**pictures, "picture_cache": cache}), street)["role"] == "left_out").sum() == 1


def test_pictures_without_labels_alone_need_models_of_another_data_set(street):
    alone = {"layout": "folder", "folder": "street", "unlabelled": ["."]}
    with pytest.raises(ValueError, match="street has no training classes; models of another data set embed it if"):
        made(configured(alone), street)
    datasets = {"street": {**alone, "trained_on": "other"}, "other": {"layout": "folder", "archive": "x.tar"}}
    chosen = configured(None, datasets=datasets)
    assert set(made(chosen, street)["role"]) == {"unlabelled"}
    plan = Plan(chosen)
    assert plan.training_dataset("compared_margin", "street") == "other"
    assert set(plan.runs["dataset"]) == {"other"}


def test_the_log_says_which_classes_train_and_test_and_what_is_not_used(street, capsys, caplog):
    for number, name in enumerate("abcdef", start=8):
        (street / name).rename(street / str(number))
    (street / "8" / "notes.txt").touch()
    (street / "13" / "0.png").rename(street / "13" / "kept.png")
    for number in (1, 2):
        (street / "13" / f"{number}.png").unlink()
    classes = {"train": [8, 10], "test": [11, 13]}
    frame = made(configured({"layout": "folder", "folder": "street", "classes": classes}), street)
    assert set(frame.loc[frame["role"] == "train", "path"].str.split("/").str[0]) == {"8", "9", "10"}
    told = capsys.readouterr().out
    assert "train: 3 classes, 8, 9, 10\n" in told
    assert "test: 3 classes, 11, 12, 13\n" in told
    assert "1 file passed over as no picture by name (.txt 1), the first is 8/notes.txt" in told
    assert "1 of 7 queries are in no metric: no other picture of their class is searched" in caplog.text


def test_names_that_look_alike_are_warned_of(street, caplog):
    (street / "a").rename(street / "owl")
    (street / "b").rename(street / "Owl")
    made(configured({"layout": "folder", "folder": "street"}), street)
    assert "'Owl' and 'owl' are 2 classes, though their names differ by case or form alone" in caplog.text


def test_equal_pictures_of_two_models_of_cars_are_refused_with_the_key_that_drops_them(street):
    for name in "abcdef":
        shutil.copytree(street / name, street / "cars" / "train" / f"Car {name}")
        shutil.rmtree(street / name)
    (street / "cars" / "names.csv").write_text("".join(f"Car {name}\n" for name in "abcdef"))
    (street / "cars" / "test").mkdir()
    (street / "cars").rename(street / "car_data")
    shutil.copy(street / "car_data/train/Car e/0.png", street / "car_data/train/Car f/9.png")
    pictures = {"layout": "cars", "folder": "street", "classes": {"train": [1, 3], "test": [4, 6]}}
    with pytest.raises(ValueError, match=r"Car e/0\.png: same bytes as .*Car f/9\.png, .*`duplicates: drop`$"):
        made(configured(pictures), street)
    assert (made(configured({**pictures, "duplicates": "drop"}), street)["role"] == "left_out").sum() == 2


def test_own_figurines_are_split_as_they_were_drawn_and_drawn_anew_by_another_generator(params, monkeypatch):
    monkeypatch.chdir(params.parent)

    def drawn(seed):
        few = {"preset": "birds", "seed": seed, "train_classes": 5, "test_classes": 2, "images_per_class": [4]}
        about = {"layout": "cub", "generator": few, "classes": {"train": [1, 5], "test": [6, 7]}}
        config = configured(about)
        download("street", config=config, archives="archives", threads=2)
        return made(config, params.parent / "street")

    first, again, other = drawn(7), drawn(7), drawn(8)
    assert first.equals(again)
    assert len(first) == len(other) == 7 * 4
    assert not {*first["sha256"]} & {*other["sha256"]}
