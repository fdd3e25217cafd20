"""Networks at hand, and the overlay by which each is trained: rows of one training stand together."""

import pandas as pd
import pytest
import torch
from torchvision.models import alexnet, squeezenet1_1

from lookalike.app.own.models import open_model
from lookalike.app.own.recommend.classes import Classes, split_classes
from lookalike.app.own.recommend.schedule import ORDER, Budget
from lookalike.app.own.recommend.training import DATASET, UNTRAINED, Network, networks_at_hand, works_of
from projects import ROOT


@pytest.fixture
def work(tmp_path):
    """On a folder of twelve classes, from the project's own network."""
    rows = [(f"class{place:02}/{number}.png", f"class{place:02}") for place in range(12) for number in range(4)]
    frame = pd.DataFrame(rows, columns=["path", "class_name"])
    frame["role"] = frame["class_name"].map(split_classes(frame["class_name"].unique().tolist()))
    for path in frame["path"]:
        (tmp_path / "own" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / path).touch()
    view = {"resize_px": 32, "crop_px": 24}
    network = Network("tiny", {"name": "tiny", "weights": None, "batch_norm": "frozen"}, view)
    (found,) = works_of(Classes(tmp_path / "own", frame, False, (), (), None), [network], size_px=24)
    return found


def test_rows_that_share_a_training_stand_together_and_all_are_known_to_the_order(work):
    methods = work.methods(work.plan())
    assert [way.label for way in methods["ProxyAnchor"]] == ["ProxyAnchor", "ProxyAnchor + DIML"]
    assert [way.label for way in methods["ProxyAnchor-AVSL"]] == ["ProxyAnchor-AVSL"]
    assert tuple(methods) == ORDER


def test_the_untrained_rows_are_recipes_of_one_training_that_differ_in_matching(work):
    plan = work.plan()
    assert len({plan.shared("train", way.recipe, DATASET) for way in UNTRAINED}) == 1
    settings = [plan.deciding(way.recipe, DATASET) for way in UNTRAINED]
    assert [each["train"]["loss"] for each in settings] == [None, None]
    assert [each["evaluate"]["scoring"]["name"] for each in settings] == ["cosine", "structural_matching"]


def test_the_overlay_gives_every_row_the_same_budget_and_a_batch_that_the_classes_fill(work):
    plan = work.plan(Budget(250, 3, 1))
    trains = [plan.deciding(ways[0].recipe, DATASET)["train"] for ways in work.methods(plan).values()]
    assert {train["batch_size"] for train in trains} == {work.batch} == {20}
    budgets = [{key: train["budget"][key] for key in ("epochs", "batches_per_epoch")} for train in trains]
    assert budgets == [{"epochs": 5, "batches_per_epoch": 50}] * len(trains)
    assert plan.seeds == [0, 1, 2]


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    torch.manual_seed(0)
    torch.save(squeezenet1_1(weights=None).state_dict(), tmp_path / "squeeze.pth")
    return tmp_path / "squeeze.pth"


TINY = f"tiny={ROOT / 'params' / 'starts' / 'tiny.safetensors'}"


def test_the_network_that_comes_with_the_package_is_always_there_and_comes_last(weights):
    (alone,) = networks_at_hand([], size_px=96)
    assert (alone.name, alone.model) == ("squeezenet1_1", "untrained:squeezenet1_1")
    first, last = networks_at_hand([TINY], size_px=96)
    assert (first.name, last.name) == ("tiny", "squeezenet1_1")
    assert first.view == {"resize_px": 64, "crop_px": 56}
    assert last.view == {"resize_px": 110, "crop_px": 96}
    assert [each.model for each in networks_at_hand([f"squeezenet1_1={weights}"], size_px=96)] == [
        f"untrained:squeezenet1_1={weights}"
    ]


def test_each_is_searched_with_as_it_was_measured(weights):
    for network in networks_at_hand([TINY], size_px=96):
        assert open_model(network.model, size_px=network.view["crop_px"]).view.dump() == network.view


def test_what_torchvision_has_kept_is_at_hand(weights, monkeypatch):
    folder = weights.parent / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "resnet18-f37072fd.pth").write_bytes(b"")
    first, _ = networks_at_hand([], size_px=96)
    assert (first.name, first.model) == ("resnet18", "untrained:resnet18")
    assert len(networks_at_hand([TINY, f"squeezenet1_1={weights}"], size_px=96)) == 3


def test_two_files_of_one_network_are_told_apart_and_any_classifier_gets_its_last_map(weights):
    other = weights.with_name("other.pth")
    torch.save(alexnet(weights=None).state_dict(), weights.with_name("alex.pth"))
    other.write_bytes(weights.read_bytes())
    given = [f"squeezenet1_1={weights}", f"squeezenet1_1={other}", f"alexnet={weights.with_name('alex.pth')}"]
    found = networks_at_hand(given, size_px=96)
    assert [each.name for each in found] == ["squeezenet1_1", "squeezenet1_1 (other)", "alexnet"]
    assert found[1].slug == "squeezenet1_1_other"
    (weights.parent / "more").mkdir()
    third = weights.parent / "more" / "other.pth"
    third.write_bytes(weights.read_bytes())
    names = [each.name for each in networks_at_hand([*given, f"squeezenet1_1={third}"], size_px=96)]
    assert names[3] == "squeezenet1_1 (other, 2)"
    assert found[2].backbone["stages"] == ["avgpool"]  # of 6 x 6 places


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("squeezenet1_1", "is NAME=FILE"),
        ("squeezenet={weights}", "unknown 'squeezenet', did you mean 'squeezenet1_[01]'"),
        ("squeezenet1_1=nowhere.pth", "there is no file nowhere.pth"),
        ("resnet18={weights}", "do not fit resnet18"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_in_a_line(weights, given, said):
    with pytest.raises(ValueError, match=said) as refused:
        networks_at_hand([given.format(weights=weights)], size_px=96)
    assert "\n" not in str(refused.value)
