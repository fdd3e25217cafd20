"""Grad-CAM beside similarity attention, on a small model and pictures in the layout of CUB: data, picture, checks."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from figure_checks import so
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.readers.cub import TOP
from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.report.figures.parts.networks import read_pictures
from lookalike.workflow.report.figures.sam.gradcam import GRAD_CAM, METHODS, QUESTIONS, Options, near_parts
from lookalike.workflow.settings.recipes import View
from trainings import CROP, save, write_dataset

OPTIONS = Options(triplets=5, seed=0, tolerance=0.1, steps=40, lr=0.1, weight_decay=0.01)
VIEW = View(resize_px=None, crop_px=CROP)  # of pictures of 34 x 30: the crop begins at (5, 3)
BOX = {"box_x": 11.0, "box_y": 3.0, "box_width": 12.0, "box_height": 8.0}  # a sixth of the crop
PARTS = [("1", 9.0, 7.0, 1), ("2", 20.0, 20.0, 0)]  # the second is hidden


@pytest.fixture
def run(tmp_path):
    """Trained models of CUB's layout, one per seed; of each picture one part is seen, and the same box."""
    folder = tmp_path / TOP
    listed = write_dataset(folder / "images", {"train": 3, "test": 4})
    frame = read_manifest(listed)
    names, frame["path"] = frame["path"], f"{TOP}/images/" + frame["path"]
    listed.unlink()
    manifest = tmp_path / "manifest.csv"
    frame.assign(**BOX).to_csv(manifest, index=False)
    (folder / "images.txt").write_text("".join(f"{number} {name}\n" for number, name in enumerate(names, 1)))
    (folder / "parts").mkdir()
    (folder / "parts" / "parts.txt").write_text("1 beak\n2 tail\n")
    located = [f"{number} {part} {x} {y} {seen}\n" for number in range(1, len(names) + 1) for part, x, y, seen in PARTS]
    (folder / "parts" / "part_locs.txt").write_text("".join(located))

    def make(seed=0, layout="cub"):
        path = tmp_path / f"{seed}.safetensors"
        save(path, "sam", over={"test_image": VIEW.dump()})
        paths = {"manifest": str(manifest), "root": str(tmp_path)}
        return Run("sam", "cub", "birds", seed, "model", str(path), layout=layout, **paths)

    return make


def test_a_pixel_is_near_a_part_within_the_distance_and_hidden_parts_do_not_count(run):
    pictures = read_pictures(run(), VIEW)
    near = near_parts(run(), pictures, [0, 3], tolerance=0.1)
    expected = torch.zeros(CROP, CROP, dtype=torch.bool)
    for row in range(CROP):
        for column in range(CROP):
            expected[row, column] = (column + 0.5 - 4) ** 2 + (row + 0.5 - 4) ** 2 <= (0.1 * CROP) ** 2
    assert torch.equal(near, torch.stack([expected, expected]))


def test_every_pair_of_every_seed_is_measured_and_the_first_is_shown(run, tmp_path):
    GRAD_CAM.data([run(0), run(1)], OPTIONS).to_csv(tmp_path / "data.csv", index=False)
    frame = pd.read_csv(tmp_path / "data.csv")
    pairs = frame[frame["panel"] == "pairs"]
    assert len(pairs) == len(pairs.groupby(["seed", "question", "method"])) == 2 * len(QUESTIONS) * len(METHODS)
    assert (pairs["pairs"] == OPTIONS.triplets).all()
    assert pairs["object_area"].tolist() == pytest.approx([1 / 6] * len(pairs))
    assert pairs["on_object"].dropna().between(0, 1).all()
    assert pairs["hit"].notna().any()
    hits = 2 * OPTIONS.triplets * pairs["hit"].dropna()
    assert hits.map(float.is_integer).all()  # of a pair neither picture, one or both
    assert frame.loc[frame["panel"] == "classifier", "accuracy"].gt(0.9).all()  # the classes differ in colour
    for panel, many in (("picture", 2 * len(QUESTIONS)), ("map", 2 * len(QUESTIONS) * len(METHODS))):
        shown = frame[frame["panel"] == panel]
        assert set(shown["seed"]) == {0}
        kinds = ["question", "side"] + ["method"] * (panel == "map")
        assert len(shown.groupby(kinds)) == many
    GRAD_CAM.draw(frame).savefig(tmp_path / "picture.png", dpi=50)
    told = [check.says for check in GRAD_CAM.checks(frame)]
    mean = 100 * pairs[(pairs["question"] == "similar") & (pairs["method"] == "attention")]["on_object"].mean()
    assert f"more than Grad-CAM: {mean:.1f} %" in told[0] and told[0].endswith(f"over {OPTIONS.triplets} pairs")


@pytest.mark.parametrize("more", [0.1, -0.1])
def test_attention_is_held_against_grad_cam_seed_by_seed(more):
    rows = [{"panel": "classifier", "accuracy": 0.5}]
    for seed, noise in enumerate((-0.001, 0.0, 0.001)):
        for question in QUESTIONS:
            for method in METHODS:
                share = 0.4 + (more + noise) * (method == "attention")
                row = {"panel": "pairs", "question": question, "method": method, "seed": seed, "pairs": 9}
                rows.append({**row, "on_object": share, "hit": share, "object_area": 0.3, "part_area": 0.3})
    checks = GRAD_CAM.checks(pd.DataFrame(rows))
    assert [so(check) for check in checks[:4]] == [more > 0] * 4
    assert checks[0].cases[0][0] == pytest.approx([100 * more - 0.1, 100 * more, 100 * more + 0.1])
    assert not checks[4].claimed and "50.0 % of the training pictures" in checks[4].says


def test_pictures_without_key_points_or_objects_are_refused(run):
    with pytest.raises(ValueError, match="birds of layout 'cars' has no key points, needed is cub"):
        GRAD_CAM.data([run(layout="cars")], OPTIONS)
    made = run()
    read_manifest(Path(made.manifest)).drop(columns=list(BOX)).to_csv(made.manifest, index=False)
    with pytest.raises(ValueError, match="neither masks nor boxes of the objects"):
        GRAD_CAM.data([made], OPTIONS)
