"""Bytes of archives, models, smaller copies and decoded pictures."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from described import described
from lookalike.app.command.costs import disk
from lookalike.app.command.costs.disk import archive_bytes, copies_bytes, decoded_bytes, model_bytes
from lookalike.app.command.costs.jobs import distinct_jobs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.plan.sizes import role_sizes
from lookalike.workflow.training.images import Decoder
from lookalike.workflow.training.roles import read_role
from projects import ROOT
from trainings import METHODS, learner, section

PAPER = {"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": True}
DECODED = {**PAPER, "decoded_gb": 20}


def dataset(**content):
    return Dataset("birds", "cub", described({"layout": "cub", **content}), False, "data")


def test_the_smallest_packaging_with_all_sizes_is_what_is_downloaded(params):
    sizes = {name: archive_bytes(each) for name, each in Plan(PAPER).datasets.items()}
    assert sizes["cub"] == 1150585339  # without the masks, which are optional
    assert sizes["cars"] == 979269282 + 977350468 + 330960 + 185758
    assert sizes["inshop"] is None


def test_what_is_on_disk_drawn_or_the_users_own_is_not_downloaded(params):
    archives = [{"file": "a.tgz", "creates": "a", "size": 5, "unverified": True}]
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


def test_a_network_is_built_once_for_all_that_is_asked_of_it():
    disk._numbers_of.cache_clear()
    alike = section("embedder", {"backbone": {"batch_norm": "frozen"}, "test_image": {"resize_px": 30}})
    assert model_bytes(alike) == model_bytes(section("embedder"))
    assert disk._numbers_of.cache_info().misses == 1


def test_a_plan_imports_torch_only_where_it_builds_a_network():
    program = "import sys, lookalike.app.command.costs.overview; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_test_pictures_of_the_papers_are_counted_as_their_crops(params):
    plan = Plan({**DECODED, "tables": ["diml_1"]})
    jobs = [job for job in distinct_jobs(plan) if job.dataset == "cub"]
    found = decoded_bytes(plan, jobs)
    assert found.test_bytes == 5924 * 224 * 224 * 3  # one view, one split, however many runs
    assert (found.training_bytes, found.unknown, found.beyond) == (20 * 10**9, 1, 0)  # of originals that are not here


def test_pictures_of_either_half_are_searched_where_seeds_train_on_both(params):
    crossed = {**DECODED, "scale": "mini", "tables": ["diml_1"], "halves": "crossed"}
    sizes = role_sizes(Plan(crossed).datasets["figurines_birds"])
    for seeds, roles in (([0, 2], ["test"]), ([0, 1, 2], ["test", "train"])):
        plan = Plan({**crossed, "seeds": seeds})
        jobs = [job for job in distinct_jobs(plan) if job.dataset == "figurines_birds"]
        pixels = plan.settings("margin", "figurines_birds").train.test_image.crop_px ** 2
        assert decoded_bytes(plan, jobs).test_bytes == 3 * pixels * sum(sizes[role][0] for role in roles)


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
    train = plan.settings("margin", "figurines_birds").train

    def written(role, view):
        paths = read_role(manifest, root, role).paths
        Decoder(str(root.parent / "decoded"), 20).pictures(paths, view, manifest=manifest, root=root)
        return sum(path.stat().st_size for path in (root.parent / "decoded").rglob("pixels.bin"))

    found = decoded_bytes(plan, jobs)
    assert found.training_bytes == pytest.approx(written("train", train.image), rel=0.02)
    assert found.test_bytes == 30 * 3 * train.test_image.crop_px**2
