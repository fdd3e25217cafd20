"""Segmentation end to end on a few pictures in the layout of PASCAL-5i's manifest."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lookalike.methods.sam.head import trunk_and_head
from lookalike.segmentation import iou_counts, mean_iou
from lookalike.segmentation.attention import episode_maps
from lookalike.segmentation.cuts import grabcut
from lookalike.segmentation.episodes import read_episodes
from lookalike.workflow.data import write_manifest
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers.pascal5i import read_mask
from lookalike.workflow.settings.recipes import Segment
from lookalike.workflow.stages.episodes import episodes
from lookalike.workflow.stages.segment import segment
from lookalike.workflow.training.images import DEVIATION, MEAN
from lookalike.workflow.training.model_file import load
from segmented import GRABCUT, SETTINGS, write_segmented
from trainings import CROP


@pytest.fixture
def paths(tmp_path):
    return write_segmented(tmp_path)


def run(paths, **changed):
    segment(Segment(**{**SETTINGS, **changed}), **paths)
    return json.loads(Path(paths["segmentations"]).read_text())


def test_scores_are_those_of_one_picture_at_a_time(paths, tmp_path):
    found = run(paths)
    trunk, head = trunk_and_head(load(paths["model"]))

    def features(name):
        square = read_picture(tmp_path / name).resize((CROP, CROP), Image.Resampling.BILINEAR)
        pixels = (np.asarray(square) / 255 - MEAN) / DEVIATION
        with torch.no_grad():
            return trunk(torch.from_numpy(pixels).permute(2, 0, 1)[None].float())

    sums = {}
    for episode in read_episodes(tmp_path / "list.csv", ways=1, shots=1, episodes=3, draws=2):
        ((support,),) = episode.supports
        maps, _ = episode_maps(features(episode.query), features(support)[:, None, None], head)
        heat = torch.nn.functional.interpolate(maps, size=(26, 34), mode="bilinear")[0]
        heat = (heat - heat.min()) / (heat.max() - heat.min())
        options = {key: value for key, value in GRABCUT.items() if key != "name"}
        region = grabcut(np.asarray(read_picture(tmp_path / episode.query)), heat, **options)[0, 0]
        mask = torch.from_numpy(read_mask(tmp_path / f"mask-{episode.query}").copy())
        target = torch.where(mask == 255, 255, (mask == episode.labels[0]).long())
        key = (episode.fold, episode.draw, episode.labels[0])
        sums[key] = torch.tensor(iou_counts(region, target)) + sums.get(key, 0)
    for fold in (0, 1):
        of_draws = [
            mean_iou(torch.stack([counts for (f, d, _), counts in sums.items() if (f, d) == (fold, draw)]))
            for draw in (0, 1)
        ]
        assert found["best"][f"mean_iou_fold{fold}"] == pytest.approx(sum(of_draws) / 2, abs=0.02)
    assert found["last"] == found["best"]
    facts = {"best_epoch": 2, "epochs": 2, "seed": 5, "queries": 12, "ways": 1, "shots": 1}
    assert facts.items() <= found.items()


@pytest.mark.parametrize("changed", [{}, {"ways": 2}, {"ways": 2, "shots": 2}, {"cut": {"name": "threshold"}}])
def test_every_kind_runs_and_says_the_same_twice_with_any_number_of_threads(paths, changed):
    first = run(paths, **changed)
    paths["workers"] = 2
    assert run(paths, **changed) == first
    scores = first["best"]
    assert all(0 <= value <= 1 for value in scores.values())
    assert ("threshold_fold0" in scores) == ("cut" in changed)


def test_trivial_answers_are_counted_on_the_same_episodes(paths, tmp_path):
    nothing, everything = (run(paths, cut={"name": name})["best"] for name in ("nothing", "everything"))
    assert nothing["mean_iou_mean"] == 0
    sums = {}
    for episode in read_episodes(tmp_path / "list.csv", ways=1, shots=1, episodes=3, draws=2):
        mask = read_mask(tmp_path / f"mask-{episode.query}")
        key, inside = (episode.fold, episode.draw, episode.labels[0]), mask == episode.labels[0]
        sums[key] = np.array([inside.sum(), (mask != 255).sum()]) + sums.get(key, 0)
    shares = {fold: [] for fold in (0, 1)}
    for fold, draw in ((0, 0), (0, 1), (1, 0), (1, 1)):
        of_draw = [area / pixels for (f, d, _), (area, pixels) in sums.items() if (f, d) == (fold, draw)]
        shares[fold].append(np.mean(of_draw))
    for fold in (0, 1):
        assert everything[f"mean_iou_fold{fold}"] == pytest.approx(np.mean(shares[fold]))
    assert nothing["binary_iou_mean"] > 0.4  # half of the share of the ground, with an object of a tenth


def test_supports_are_looked_at_without_their_masks(paths, tmp_path):
    listed = read_episodes(tmp_path / "list.csv", ways=1, shots=1, episodes=3, draws=2)
    before = run(paths)
    for name in {episode.supports[0][0] for episode in listed} - {episode.query for episode in listed}:
        (tmp_path / f"mask-{name}").unlink()
    assert run(paths) == before


def test_a_list_that_was_changed_by_hand_is_refused(paths, tmp_path):
    (tmp_path / "list.csv").write_text((tmp_path / "list.csv").read_text().replace("-0.png", "-1.png"))
    with pytest.raises(ValueError, match="is not the list whose digest"):
        run(paths)


def test_data_without_folds_have_no_episodes(paths, tmp_path):
    frame = pd.read_csv(paths["manifest"]).drop(columns="fold")
    write_manifest(frame, tmp_path / "flat.csv")
    with pytest.raises(ValueError, match="has no column fold"):
        episodes(manifest=str(tmp_path / "flat.csv"), listed="l", digest="d", longest={})
