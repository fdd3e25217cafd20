"""Own pictures that cannot be read, or that lie in two classes, are named, and left out by choice."""

import io
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageFilter

from described import described, read_layout
from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings
from lookalike.workflow.data import read_manifest, read_picture, with_file_hashes, write_manifest
from lookalike.workflow.data.roles import queries_without_positive
from lookalike.workflow.data.screening import (
    BITS,
    NEAR,
    check_readable,
    equal_in_class,
    equal_in_other_classes,
    looked_at,
    near_copies,
    perceptual_hash,
    screened,
)

FOLDER = {"title": "mine", "layout": "folder"}


@pytest.fixture
def pictures(tmp_path):
    generator = np.random.default_rng(0)
    for name in ("a/0", "a/1", "b/0", "b/1", "c/0", "c/1", "d/0", "d/1", "new/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(generator.integers(0, 255, (8, 9, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    return tmp_path


def screen(root, **keys):
    specification = {**FOLDER, "unlabelled": ["new"], **keys}
    return screened(read_layout(specification, root), described(specification), root, processes=2)


def left_out(frame):
    return dict(frame.loc[frame["role"] == "left_out", ["path", "reason"]].itertuples(index=False))


def test_what_cannot_be_read_is_named_with_the_number_of_the_others(pictures, capsys):
    (pictures / "a/1.png").write_text("<html>")
    (pictures / "d/0.png").write_bytes((pictures / "d/0.png").read_bytes()[:60])
    (pictures / "new/0.png").write_bytes(b"")
    message = (
        r"a/1\.png: no readable picture \(.*\) \(and 2 more, all in the log\); mend or remove them, or .*`broken: skip`"
    )
    with pytest.raises(ValueError, match=message) as refused:
        screen(pictures)
    assert "\n" not in str(refused.value)
    log = capsys.readouterr().out
    assert "9 of 9 pictures decoded, 3 cannot be read" in log
    assert all(f"{pictures / name}: no readable picture" in log for name in ("a/1.png", "d/0.png", "new/0.png"))


def test_what_cannot_be_read_is_left_out_by_choice_and_stays_in_the_manifest_by_name(pictures, tmp_path_factory):
    (pictures / "a/1.png").write_text("<html>")
    (pictures / "new/0.png").write_bytes(b"")
    frame = screen(pictures, broken="skip")
    assert left_out(frame).keys() == {"a/1.png", "new/0.png"}
    assert all(reason.startswith("no readable picture") for reason in left_out(frame).values())
    path = tmp_path_factory.mktemp("out") / "manifest.csv"
    write_manifest(frame, path)
    assert left_out(read_manifest(path)) == left_out(frame)


def test_equal_pictures_in_two_classes_are_named(pictures, capsys):
    (pictures / "c/0.png").write_bytes((pictures / "a/0.png").read_bytes())
    message = r"^a/0\.png: same bytes as c/0\.png, which is in another class \(and 1 more, .*`duplicates: drop`$"
    with pytest.raises(ValueError, match=message):
        screen(pictures)
    assert "c/0.png: same bytes as a/0.png" in capsys.readouterr().out


def test_equal_pictures_in_two_classes_are_all_dropped_by_choice(pictures):
    (pictures / "c/0.png").write_bytes((pictures / "a/0.png").read_bytes())
    frame = screen(pictures, duplicates="drop")
    assert left_out(frame) == {"a/0.png": "same bytes as c/0.png", "c/0.png": "same bytes as a/0.png"}


def test_of_an_unlabelled_picture_and_an_equal_labelled_one_the_labelled_one_stays(pictures):
    (pictures / "new/0.png").write_bytes((pictures / "d/0.png").read_bytes())
    with pytest.raises(ValueError, match=r"^new/0\.png: same bytes as d/0\.png"):
        screen(pictures)
    assert left_out(screen(pictures, duplicates="drop")) == {"new/0.png": "same bytes as d/0.png"}


@pytest.mark.parametrize("duplicates", ["stop", "drop"])
def test_of_equal_pictures_of_one_class_one_takes_part_and_the_others_are_told(pictures, duplicates, capsys, caplog):
    (pictures / "a/1.png").write_bytes((pictures / "a/0.png").read_bytes())
    assert left_out(screen(pictures, duplicates=duplicates)) == {"a/1.png": "copy of a/0.png"}
    assert "a/1.png: copy of a/0.png" in capsys.readouterr().out
    assert "1 picture left out, the first is a/1.png: copy of a/0.png" in caplog.text
    message = r"^a/1\.png: copy of a/0\.png; remove it, or leave all copies out with .* `copies: keep_one`$"
    with pytest.raises(ValueError, match=message):
        screen(pictures, copies="stop")


def recall(frame, root):
    """R@1 of the test pictures by their pixels."""
    rows = frame[frame["role"] == "test"]
    pixels = [np.asarray(read_picture(root / path).resize((4, 4))).ravel() for path in rows["path"]]
    embeddings = torch.tensor(np.stack(pixels) - 128.0, dtype=torch.float64)
    labels = torch.tensor(rows["label"].to_numpy())
    found = retrieval_metrics_from_embeddings(embeddings, labels, embeddings, labels, ks=[1], self_match=True)
    return found["R@1"]


def test_with_each_picture_twice_in_its_class_the_score_is_that_of_once(tmp_path):
    generator = np.random.default_rng(0)
    for name in [f"{name}/{number}" for name in "abcdefgh" for number in range(4)]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(generator.integers(0, 255, (8, 9, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    once = screened(read_layout(FOLDER, tmp_path), described(FOLDER), tmp_path)
    for path in list(tmp_path.rglob("*.png")):
        path.with_name(f"again_{path.name}").write_bytes(path.read_bytes())
    twice = read_layout(FOLDER, tmp_path)
    assert recall(twice, tmp_path) == 1.0  # what copies make of noise
    kept = screened(twice, described(FOLDER), tmp_path)
    assert recall(kept, tmp_path) == recall(once, tmp_path) < 0.5
    assert (kept["role"] == "left_out").sum() == 32


def test_a_class_in_one_form_in_the_query_and_in_another_in_the_gallery_is_scored_as_in_one(tmp_path):
    generator, found = np.random.default_rng(0), []
    pixels = generator.integers(0, 255, (3, 2, 3, 8, 9, 3), dtype=np.uint8)
    for tree, name in (("one", "caf\u00e9"), ("two", "cafe\u0301")):
        for place, role in enumerate(("train", "query", "gallery")):
            for label, folder in enumerate((name if role == "gallery" else "caf\u00e9", "owl")):
                (tmp_path / tree / role / folder).mkdir(parents=True)
                for number in range(3):
                    picture = Image.fromarray(pixels[place, label, number])
                    picture.save(tmp_path / tree / role / folder / f"{number}.png")
        frame = screened(read_layout(FOLDER, tmp_path / tree), described(FOLDER), tmp_path / tree)
        sides = []
        for role in ("query", "gallery"):
            rows = frame[frame["role"] == role].sort_values("path", key=lambda paths: paths.str[-8:])
            seen = [np.asarray(read_picture(tmp_path / tree / path)).ravel() - 128.0 for path in rows["path"]]
            sides += [torch.tensor(np.stack(seen)), torch.tensor(rows["label"].to_numpy())]
        found.append(retrieval_metrics_from_embeddings(*sides, ks=[1], self_match=False))
        assert queries_without_positive(frame) == (0, 6)
    assert found[1] == pytest.approx(found[0], abs=1e-12)


def test_of_equal_files_in_query_and_gallery_that_of_the_gallery_goes(tmp_path):
    generator = np.random.default_rng(0)
    for name in [
        f"{role}/{name}/{number}" for role in ("train", "query", "gallery") for name in "ab" for number in range(3)
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 255, (8, 9, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    shutil.copy(tmp_path / "query/b/1.png", tmp_path / "gallery/b/2.png")
    frame = screened(read_layout({**FOLDER, "self_match": False}, tmp_path), described(FOLDER), tmp_path)
    assert left_out(frame) == {"gallery/b/2.png": "copy of query/b/1.png"}


def test_pictures_that_nearly_equal_another_one_are_told_and_take_part(pictures, caplog):
    pixels = np.random.default_rng(1).integers(0, 255, (20, 24, 3), dtype=np.uint8)
    soft = Image.fromarray(pixels).resize((96, 80), Image.Resampling.BICUBIC)
    soft.save(pictures / "a/soft.png")
    soft.resize((72, 60)).save(pictures / "b/small.webp", quality=90)
    assert "left_out" not in set(screen(pictures)["role"])
    assert "1 picture nearly like another, as saved or resized anew; all take part; the first is " in caplog.text
    assert "the first is b/small.webp, like a/soft.png" in caplog.text


def test_pictures_of_twelve_bits_in_sixteen_are_told_as_nearly_black(pictures, caplog):
    pixels = np.random.default_rng(1).integers(0, 4096, (8, 9), dtype=np.uint16)
    Image.fromarray(pixels).save(pictures / "a/dark.png")
    Image.fromarray(pixels).save(pictures / "b/dark.tif")
    screen(pictures)
    assert "2 pictures of 11 nearly black, with values in a sixteenth of their range" in caplog.text
    assert f"the first is {pictures / 'a/dark.png'}" in caplog.text


def test_kinds_that_are_not_read_stop_the_split_or_are_left_out_by_name(pictures):
    (pictures / "a/raw.NEF").write_bytes((pictures / "a/0.png").read_bytes())
    (pictures / "b/drawn.svg").write_text("<svg/>")
    with pytest.raises(ValueError, match=r"a/raw\.NEF: no readable picture \(\.NEF is not read; .*\) \(and 1 more"):
        screen(pictures)
    assert left_out(screen(pictures, broken="skip")).keys() == {"a/raw.NEF", "b/drawn.svg"}


def test_a_link_that_leads_nowhere_is_no_picture_that_vanishes(pictures):
    (pictures / "a/gone.jpg").symlink_to(pictures / "elsewhere.jpg")
    with pytest.raises(ValueError, match=r"a/gone\.jpg does not exist \(1 of 10 listed files are missing\)"):
        screen(pictures)


def test_equal_pictures_of_a_split_that_is_made_elsewhere_all_take_part_and_are_counted(pictures, capsys):
    shutil.copy(pictures / "a/0.png", pictures / "a/2.png")
    shutil.copy(pictures / "c/0.png", pictures / "d/2.png")
    frame = with_file_hashes(read_layout({**FOLDER, "unlabelled": ["new"]}, pictures), pictures)
    check_readable(frame, pictures, "stop")
    told = capsys.readouterr().out
    assert "1 picture with the bytes of one of their class, which all take part, as in the papers; the first" in told
    assert "2 pictures with the bytes of one of another class, which all take part" in told


def test_a_split_that_is_made_elsewhere_is_read_too(pictures, capsys):
    frame = read_layout({**FOLDER, "unlabelled": ["new"]}, pictures)
    check_readable(frame, pictures, "stop", processes=2)
    (pictures / "b/0.png").write_text("<html>")
    check_readable(frame, pictures, "skip", processes=2)
    assert "b/0.png: no readable picture" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"b/0\.png: no readable picture"):
        check_readable(frame, pictures, "stop", processes=2)


def test_every_picture_is_decoded_by_several_processes_in_order(pictures):
    paths = sorted(pictures.rglob("*.png")) * 20
    broken = pictures / "broken.png"
    broken.write_bytes(b"x")
    looks = looked_at([*paths, broken], processes=2)
    assert list(looks) == [*dict.fromkeys(paths), broken]
    assert [path for path, look in looks.items() if look.fault] == [broken]


def photograph(seed, size=(96, 72)):
    """Soft spots of colour: as in photographs, most of it is in low frequencies."""
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))


def saved(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return Image.open(stream).convert("RGB")


def hashes(pictures):
    return np.frombuffer(b"".join(map(perceptual_hash, pictures)), dtype=np.uint8).reshape(-1, BITS // 8)


def rows(*listed):
    return pd.DataFrame(listed, columns=["path", "label", "role", "sha256"])


def test_of_equal_pictures_of_a_class_the_first_stays():
    frame = rows(("b", 1, "train", "x"), ("a", 1, "train", "x"), ("c", 1, "train", "y"), ("d", 2, "train", "x"))
    assert equal_in_class(frame) == {"a": "copy of b"}


@pytest.mark.parametrize(
    ("first", "second"), [("gallery", "query"), ("train", "test"), ("train", "query"), ("train", "gallery")]
)
def test_of_equal_pictures_in_two_roles_the_one_that_is_searched_for_stays(first, second):
    assert equal_in_class(rows(("a", 1, first, "x"), ("b", 1, second, "x"))) == {"a": "copy of b"}
    assert equal_in_class(rows(("a", 1, second, "x"), ("b", 1, first, "x"))) == {"b": "copy of a"}


def test_a_picture_with_two_labels_is_no_copy_of_itself_and_unlabelled_ones_are_left_alone():
    assert not equal_in_class(rows(("a", 1, "test", "x"), ("a", 2, "test", "x"), ("b", 1, "left_out", "x")))
    assert not equal_in_class(rows(("a", -1, "unlabelled", "x"), ("b", -1, "unlabelled", "x")))


def test_equal_pictures_in_two_classes_are_found_among_those_that_take_part():
    frame = rows(("a", 1, "train", "x"), ("b", 2, "test", "x"), ("c", 3, "left_out", "x"), ("d", 3, "test", "y"))
    assert equal_in_other_classes(frame) == {"a": "same bytes as b", "b": "same bytes as a"}


@pytest.mark.parametrize(
    "copied",
    [
        lambda picture: saved(picture, "JPEG", quality=50),
        lambda picture: saved(picture, "WEBP", quality=50),
        lambda picture: picture.resize((48, 36), Image.Resampling.LANCZOS),
        lambda picture: picture.resize((192, 144), Image.Resampling.BICUBIC),
        lambda picture: picture.point(lambda value: value * 0.9 + 10),
    ],
)
def test_a_copy_saved_resized_or_made_lighter_is_near_its_original_and_no_other_picture_is(copied):
    originals = [photograph(seed) for seed in range(40)]
    found = near_copies(hashes([*originals, copied(originals[7])]))
    assert found.tolist() == [*range(40), 7]


def test_near_means_at_most_so_many_bits():
    bits = np.random.default_rng(0).integers(0, 2, (2, BITS), dtype=np.uint8)
    third, fourth = bits[0].copy(), bits[0].copy()
    third[:NEAR] ^= 1
    fourth[: NEAR + 1] ^= 1
    assert near_copies(np.packbits([*bits, third], axis=1)).tolist() == [0, 1, 0]
    assert near_copies(np.packbits([*bits, fourth], axis=1)).tolist() == [0, 1, 2]
    assert near_copies(np.packbits([bits[1], bits[0], bits[1], bits[0]], axis=1)).tolist() == [0, 1, 0, 1]


def test_a_picture_of_one_colour_has_no_hash():
    assert perceptual_hash(Image.new("RGB", (40, 40), "red")) is None
    assert len(perceptual_hash(photograph(0))) == BITS // 8
