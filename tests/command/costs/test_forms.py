"""Bytes of smaller copies and of decoded pictures."""

import numpy as np
import pytest
from PIL import Image

from lookalike.command.costs.forms import copies_bytes, decoded_bytes
from lookalike.command.costs.jobs import distinct_jobs
from lookalike.plan.plan import Plan
from lookalike.training.images import Decoder
from lookalike.training.roles import read_role

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True, "decoded_gb": 20}


def test_test_pictures_of_the_papers_are_counted_as_their_crops(params):
    plan = Plan({**PAPER, "tables": ["diml_1"]})
    jobs = [job for job in distinct_jobs(plan) if job.dataset == "cub"]
    found = decoded_bytes(plan, jobs)
    assert found.test_bytes == 5924 * 224 * 224 * 3  # one view, one split, however many runs
    assert (found.training_bytes, found.unknown, found.beyond) == (20 * 10**9, 1, 0)  # of originals that are not here


def test_what_is_over_the_limit_is_decoded_whenever_it_is_read(params):
    jobs = [job for job in distinct_jobs(Plan(PAPER)) if job.dataset == "cub"]
    found = decoded_bytes(Plan({**PAPER, "decoded_gb": 0.5}), jobs)
    assert found.test_bytes == 0
    assert found.beyond == 4  # crops of 224 and 256 px, training pictures resized for a random crop, and represented


def test_copies_are_counted_where_a_data_set_or_the_call_asks_for_them(params):
    plan = Plan(PAPER)
    found = copies_bytes(plan, ["cub", "inat"])
    assert found.keys() == {"inat"}
    assert 5e9 < found["inat"] < 10e9
    everywhere = Plan({**PAPER, "picture_cache": {"shorter_side_px": 256, "encoding": "png", "broken": "stop"}})
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
    plan = Plan({**PAPER, "scale": "mini", "tables": ["diml_1"]})
    jobs = [job for job in distinct_jobs(plan) if job.dataset == "figurines_birds"]
    train = plan.deciding("margin", "figurines_birds")["train"]

    def written(role, view):
        paths = read_role(manifest, root, role).paths
        Decoder(str(root.parent / "decoded"), 20).pictures(paths, view, manifest=manifest, root=root)
        return sum(path.stat().st_size for path in (root.parent / "decoded").rglob("pixels.bin"))

    found = decoded_bytes(plan, jobs)
    assert found.training_bytes == pytest.approx(written("train", train["image"]), rel=0.02)
    assert found.test_bytes == 30 * 3 * train["test_image"]["crop_px"] ** 2
