"""Bytes of archives, models, representations, smaller copies and decoded pictures."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.command.costs import disk
from lookalike.command.costs.disk import archive_bytes, copies_bytes, decoded_bytes, embeddings_bytes, model_bytes
from lookalike.command.costs.jobs import distinct_jobs
from lookalike.plan.plan import Plan
from lookalike.plan.scales import Dataset
from lookalike.settings.layers import merge
from lookalike.training.images import Decoder
from lookalike.training.roles import read_role
from projects import ROOT
from trainings import CROP, METHODS, learner, section

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True}
DECODED = {**PAPER, "decoded_gb": 20}


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
    disk._numbers_of.cache_clear()
    monkeypatch.setattr("lookalike.command.costs.disk.numbers_of", lambda *asked: built.append(asked) or (5, 7))
    sections = {"train": section("embedder"), "embed": {"representation": {"name": "own"}, "training_pictures": False}}
    counts = {"query": {"images": 2, "classes": 1}}
    assert embeddings_bytes(sections, dataset(counts=counts)) == 2 * 7 * 4 * 2
    alike = merge(sections["train"], {"backbone": {"batch_norm": "frozen"}, "test_image": {"resize_px": 30}})
    assert model_bytes(alike) == 5 * 4 * 2
    assert len(built) == 1
    disk._numbers_of.cache_clear()


def test_a_plan_imports_torch_only_where_it_builds_a_network():
    program = "import sys, lookalike.command.costs.overview; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_representations_of_uncounted_pictures_are_unknown(params):
    embed = {"representation": {"name": "own"}, "training_pictures": False}
    assert embeddings_bytes({"train": section("embedder"), "embed": embed}, dataset()) is None


def test_test_pictures_of_the_papers_are_counted_as_their_crops(params):
    plan = Plan({**DECODED, "tables": ["diml_1"]})
    jobs = [job for job in distinct_jobs(plan) if job.dataset == "cub"]
    found = decoded_bytes(plan, jobs)
    assert found.test_bytes == 5924 * 224 * 224 * 3  # one view, one split, however many runs
    assert (found.training_bytes, found.unknown, found.beyond) == (20 * 10**9, 1, 0)  # of originals that are not here


def test_what_is_over_the_limit_is_decoded_whenever_it_is_read(params):
    jobs = [job for job in distinct_jobs(Plan(DECODED)) if job.dataset == "cub"]
    found = decoded_bytes(Plan({**DECODED, "decoded_gb": 0.5}), jobs)
    assert found.test_bytes == 0
    assert found.beyond == 4  # crops of 224 and 256 px, training pictures resized for a random crop, and represented


def test_copies_are_counted_where_a_data_set_or_the_call_asks_for_them(params):
    plan = Plan(DECODED)
    found = copies_bytes(plan, ["cub", "inat"])
    assert found.keys() == {"inat"}
    assert 5e9 < found["inat"] < 10e9
    everywhere = Plan({**DECODED, "picture_cache": {"shorter_side_px": 256, "encoding": "png", "broken": "stop"}})
    assert copies_bytes(everywhere, ["cub", "inshop"]).keys() == {"cub", "inshop"}


def test_pictures_at_hand_take_what_is_written(params):
    root, splits = params.parent / "data" / "figurines_birds", params.parent / "data" / "splits"
    root.mkdir(parents=True)
    splits.mkdir()
    generator = np.random.default_rng(0)
    rows = ["path,label,role"]
    for number in range(60):
        shape = (70 + number % 3, 90 + number % 5, 3)
        Image.fromarray(generator.integers(0, 255, shape, dtype=np.uint8)).save(root / f"{number}.png")
        rows.append(f"{number}.png,{number % 4},{'train' if number % 2 else 'test'}")
    manifest = splits / "figurines_birds.csv"
    manifest.write_text("\n".join(rows) + "\n")
    plan = Plan({**DECODED, "scale": "mini", "tables": ["diml_1"]})
    jobs = [job for job in distinct_jobs(plan) if job.dataset == "figurines_birds"]
    train = plan.deciding("margin", "figurines_birds")["train"]

    def written(role, view):
        paths = read_role(manifest, root, role).paths
        Decoder(str(root.parent / "decoded"), 20).pictures(paths, view, manifest=manifest, root=root)
        return sum(path.stat().st_size for path in (root.parent / "decoded").rglob("pixels.bin"))

    found = decoded_bytes(plan, jobs)
    assert found.training_bytes == pytest.approx(written("train", train["image"]), rel=0.02)
    assert found.test_bytes == 30 * 3 * train["test_image"]["crop_px"] ** 2
