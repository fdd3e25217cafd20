"""Figures of segmented episodes: which are shown, and that their tiles come back as they were."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from figure_checks import so
from lookalike.base.paths import episodes_of
from lookalike.segmentation.cuts import TRIVIAL
from lookalike.segmentation.episodes import read_episodes
from lookalike.workflow.data.readers.pascal5i import CLASSES, read_mask
from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.report.figures.sam.segmentations import SEGMENTATIONS, Options, class_names, lengths, region
from lookalike.workflow.settings.recipes import Segment
from lookalike.workflow.stages.segment import segment
from segmented import GRABCUT, SETTINGS, write_segmented


@pytest.fixture
def runs(tmp_path):
    """Model and metrics of two recipes, with one and two supports of two classes."""
    paths = write_segmented(tmp_path)
    listed = Path(paths["episodes"]).read_text()
    for ways in (1, 2):
        Path(episodes_of(paths["manifest"], ways)).write_text(listed)
    paths["episodes"] = episodes_of(paths["manifest"], ways=2)
    made = []
    for shots in (1, 2):
        found = str(tmp_path / f"found{shots}.json")
        segment(Segment(**{**SETTINGS, "ways": 2, "shots": shots}), **{**paths, "segmentations": found})
        place = {"ways": 2, "shots": shots, "cut": GRABCUT}
        of_recipe = Run(f"shots_{shots}", "pascal5i", "small", 0, "model", paths["model"], place)
        of_recipe = replace(of_recipe, manifest=paths["manifest"], root=paths["root"])
        made += [replace(of_recipe, reads="metrics", path=found), of_recipe]
    for name in TRIVIAL:
        found = str(tmp_path / f"{name}.json")
        segment(Segment(**{**SETTINGS, "ways": 2, "cut": {"name": name}}), **{**paths, "segmentations": found})
        made.append(replace(made[0], recipe=name, path=found, place={"cut": {"name": name}}))
    return made


def test_the_first_episodes_of_each_fold_are_shown(runs, tmp_path):
    SEGMENTATIONS.data(runs, Options(per_fold=2)).to_csv(tmp_path / "data.csv", index=False)
    frame = pd.read_csv(tmp_path / "data.csv")
    SEGMENTATIONS.draw(frame).savefig(tmp_path / "picture.png", dpi=50)
    queries = frame[frame["tile"] == "query"]
    drawn = read_episodes(Path(episodes_of(runs[0].manifest, ways=2)), ways=2, shots=1, episodes=1, draws=1)
    assert [Path(path).name for path in queries["picture"]] == [each.query for each in drawn] * 2
    assert queries["line"].tolist() == ["fold 0, 1-shot", "fold 1, 1-shot", "fold 0, 2-shot", "fold 1, 2-shot"]
    assert frame["tile"].dropna().unique().tolist() == [
        *("query", "support 1", "support 2", "attention 1", "attention 2", "found", "true"),
    ]
    measured = [json.loads(Path(run.path).read_text())["last"] for run in runs if run.reads == "metrics"]
    checks = SEGMENTATIONS.checks(frame)
    trivial = measured[2:]
    for ours, check in zip(measured[:2], checks, strict=True):
        for ratio in ("mean_iou_mean", "binary_iou_mean"):
            assert all(f"{100 * each[ratio]:.1f} %" in check.says for each in (ours, *trivial))
        more = all(ours[f"{r}_mean"] > max(each[f"{r}_mean"] for each in trivial) for r in ("mean_iou", "binary_iou"))
        assert so(check) == more


def test_classes_and_the_iou_of_every_row_stand_under_its_tiles(runs, tmp_path):
    frame = SEGMENTATIONS.data(runs, Options(per_fold=2))
    episode = read_episodes(tmp_path / "manifest.episodes.csv", ways=2, shots=1, episodes=1, draws=1)[0]
    words = frame[(frame["line"] == "fold 0, 1-shot") & frame["words"].notna()].groupby("tile")["words"].first()
    first, second = (CLASSES[label - 1] for label in episode.labels)
    assert (words["support 1"], words["support 2"]) == (first, second)
    shown = CLASSES[int(episode.query[0]) - 1]  # pictures of the test are named after the one class that they show
    assert words["query"] == shown
    assert words["found"].startswith("IoU ")
    mask = read_mask(tmp_path / f"mask-{episode.query}")
    everything = [100 * (mask == label).sum() / (mask != 255).sum() for label in episode.labels]
    assert words["true"] == f"all: {everything[0]:.0f}, {everything[1]:.0f} %"


def test_figurines_have_names_of_their_own(tmp_path):
    assert class_names(tmp_path)[:2] == ["aeroplane", "bicycle"]
    (tmp_path / "traits.csv").write_text("class_id,figurine\n1,fan\n2,Tees_Tanks\n")
    assert class_names(tmp_path) == ["fan", "tees tanks"]


def test_of_one_way_the_attention_on_the_support_is_shown_too(runs):
    one_way = [replace(run, place={**run.place, "ways": 1}) for run in runs[:2]]
    tiles = SEGMENTATIONS.data(one_way, Options(per_fold=1))["tile"].dropna().unique().tolist()
    assert tiles == ["query", "support", "attention on query", "attention on support", "found", "true"]


def test_a_cut_with_many_candidates_is_refused(runs):
    many = [replace(run, place={**run.place, "cut": {"name": "threshold"}}) for run in runs[:4]]
    with pytest.raises(ValueError, match="only 'grabcut' is shown"):
        SEGMENTATIONS.data(many, Options(per_fold=2))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_regions_come_back_from_their_lengths(share):
    drawn = np.random.default_rng(0).random((7, 9)) < share
    assert (region(lengths(drawn), (7, 9)) == drawn).all()
