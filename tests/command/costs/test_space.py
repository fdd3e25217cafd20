"""Bytes of archives, models and representations."""

import subprocess
import sys

import pytest
import torch

from lookalike.command.costs import space
from lookalike.command.costs.space import archive_bytes, embeddings_bytes, model_bytes
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset
from lookalike.settings.layers import merge
from projects import ROOT
from trainings import CROP, METHODS, learner, section

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True}


def dataset(**specification):
    return Dataset("birds", "cub", {"title": "birds", "layout": "cub", **specification}, False, "data")


def test_the_smallest_packaging_with_all_sizes_is_what_is_downloaded(params):
    sizes = {name: archive_bytes(each) for name, each in Plan(PAPER).datasets.items()}
    assert sizes["cub"] == 1150585339  # without the masks, which are optional
    assert sizes["cars"] == 979269282 + 977350468 + 330960 + 185758
    assert sizes["inshop"] is None


def test_what_is_on_disk_drawn_or_the_users_own_is_not_downloaded(params):
    archives = [{"file": "a.tgz", "creates": "a", "size": 5}]
    assert archive_bytes(dataset(archives=archives)) == 5
    assert archive_bytes(dataset(generator={"preset": "birds", "seed": 0})) == 0
    assert archive_bytes(dataset(folder="pictures")) == 0
    (params.parent / "data").mkdir()
    (params.parent / "data" / "birds.json").touch()
    assert archive_bytes(dataset(archives=archives)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_model_takes_four_bytes_a_number_and_two_checkpoints(method):
    numbers = sum(tensor.numel() for tensor in learner(method).model.state_dict().values())
    assert model_bytes(section(method)) == 2 * 4 * numbers


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("training_pictures", [False, True])
def test_representations_take_four_bytes_a_number_of_every_picture(params, method, training_pictures):
    built = learner(method).eval()
    with torch.no_grad():
        found = built.represent(built.model, torch.zeros(1, 3, CROP, CROP))
    numbers = sum(tensor.numel() for tensor in found.values())
    embed = {"representation": {"name": "own"}, "training_pictures": training_pictures}
    counts = {"train": {"images": 5, "classes": 1}, "query": {"images": 7, "classes": 1}}
    counts["gallery"] = {"images": 11, "classes": 1}
    expected = (7 + 11 + 5 * training_pictures) * numbers * 4 * 2
    assert embeddings_bytes({"train": section(method), "embed": embed}, dataset(counts=counts)) == expected


def test_a_network_is_built_once_for_all_that_is_asked_of_it(params, monkeypatch):
    built = []
    answers = {}

    def kept(question, find):
        if question not in answers:
            answers[question] = find()
        return answers[question]

    monkeypatch.setattr(space, "kept", kept)
    monkeypatch.setattr("lookalike.command.costs.built.numbers_of", lambda *asked: built.append(asked) or (5, 7))
    sections = {"train": section("embedder"), "embed": {"representation": {"name": "own"}, "training_pictures": False}}
    counts = {"query": {"images": 2, "classes": 1}}
    assert embeddings_bytes(sections, dataset(counts=counts)) == 2 * 7 * 4 * 2
    alike = merge(sections["train"], {"backbone": {"batch_norm": "frozen"}, "test_image": {"resize_px": 30}})
    assert model_bytes(alike) == 5 * 4 * 2
    assert len(built) == 1


def test_nothing_that_is_kept_needs_torch():
    program = "import sys, lookalike.command.costs.overview; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_representations_of_uncounted_pictures_are_unknown(params):
    embed = {"representation": {"name": "own"}, "training_pictures": False}
    assert embeddings_bytes({"train": section("embedder"), "embed": embed}, dataset()) is None
