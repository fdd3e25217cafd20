"""Step times: measured for every method, or read from what finished trainings took."""

import pytest
import torch

from lookalike.costs.hours import finished_seconds, kind_of, picture_seconds
from lookalike.plan import Plan
from trainings import METHODS, section

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


@pytest.mark.parametrize("method", METHODS)
def test_a_step_of_every_method_can_be_measured(method):
    threads = torch.get_num_threads()
    assert picture_seconds(section(method), torch.device("cpu")) > 0
    assert torch.get_num_threads() == threads


def test_a_step_of_every_loss_of_all_tables_can_be_measured():
    plan = Plan(MINI)
    pairs = plan.runs[["recipe", "dataset"]].drop_duplicates().itertuples(index=False)
    sections = {str(train["loss"]): train for pair in pairs if (train := plan.settings(*pair)["train"])["loss"]}
    assert len(sections) > 20
    for train in sections.values():
        assert picture_seconds(train, torch.device("cpu")) > 0


def test_weights_are_not_downloaded_to_measure():
    backbone = {"backbone": {"name": "tiny", "weights": "no such weights", "batch_norm": "trained"}}
    assert picture_seconds(section("embedder", backbone), torch.device("cpu")) > 0


def test_a_kind_is_network_method_crop_and_precision_whatever_the_loss():
    assert kind_of(section("embedder")) == kind_of(section("proxies")) != kind_of(section("avsl"))
    assert str(kind_of(section("sam", {"mixed_precision": True}))) == "tiny, sam triplet, 24 px, mixed precision"


def test_a_crop_may_have_two_sides():
    train = section("embedder", {"image": {"crop_px": [24, 16]}})
    assert str(kind_of(train)) == "tiny, embedder, 24 x 16 px"
    assert picture_seconds(train, torch.device("cpu")) > 0


def test_finished_trainings_are_read_per_seed(params):
    folder = params.parent / "results" / "mini" / "timings" / "train"
    folder.mkdir(parents=True)
    for name, seconds in (("margin-birds-seed0", 2.5), ("margin-birds-seed1", 3.5), ("margin_64-birds-seed0", 9.0)):
        (folder / f"{name}.tsv").write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:02\t28.2\n")
    assert finished_seconds("mini", "margin", "birds") == [2.5, 3.5]
    assert finished_seconds("mini", "margin", "cars") == finished_seconds("paper", "margin", "birds") == []
