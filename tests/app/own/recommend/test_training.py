"""Networks at hand, and the overlay by which each is trained: rows of one training stand together."""

import json

import pandas as pd
import pytest
import torch
from torchvision.models import alexnet, squeezenet1_1

from lookalike.app.own.models import open_model
from lookalike.app.own.recommend.classes import Classes, split_classes
from lookalike.app.own.recommend.schedule import ORDER, Budget
from lookalike.app.own.recommend.training import (
    DATASET,
    UNTRAINED,
    Network,
    _kept_schedule,
    networks_at_hand,
    usable,
    works_of,
)
from lookalike.base.files import write_text
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import configuration, read_overlay
from lookalike.workflow.settings.files import yaml_text
from projects import ROOT

CLASSES = [f"class{place:02}" for place in range(12)]


def work_on(tmp_path, names):
    """On a folder of some classes, from the project's own network."""
    rows = [(f"{name}/{number}.png", name) for name in names for number in range(4)]
    frame = pd.DataFrame(rows, columns=["path", "class_name"])
    frame["role"] = frame["class_name"].map(split_classes(frame["class_name"].unique().tolist()))
    for path in frame["path"]:
        (tmp_path / "own" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / path).touch()
    view = {"resize_px": 32, "crop_px": 24}
    network = Network("tiny", {"name": "tiny", "weights": None, "batch_norm": "frozen"}, view)
    (found,) = works_of(Classes(tmp_path / "own", frame, False, (), (), None), [network], size_px=24)
    return found


@pytest.fixture
def work(tmp_path):
    return work_on(tmp_path, CLASSES)


@pytest.mark.parametrize("odd", [["1e5", "7e2"], ["no", "010"], ["Tee\x85", "a: b #c"]], ids=ascii)
def test_an_overlay_is_read_as_it_was_written_whatever_classes_are_called(tmp_path, odd):
    work = work_on(tmp_path, [*CLASSES, *odd])
    write_text(tmp_path / "own.yaml", yaml_text(work.overlay()))
    overlay = read_overlay([tmp_path / "own.yaml"])
    assert overlay.pop("overlays")
    assert overlay == work.overlay()
    chosen = configuration(None, [tmp_path / "own.yaml"])["datasets"][DATASET]["classes"]
    assert {*odd} <= {*chosen["train"], *chosen["test"]}
    assert Plan(configuration(None, [tmp_path / "own.yaml"])).runs["dataset"].eq(DATASET).all()


def test_rows_that_share_a_training_stand_together_and_all_are_known_to_the_order(work):
    methods = work.methods(work.plan())
    assert [way.label for way in methods["ProxyAnchor"]] == ["ProxyAnchor", "ProxyAnchor + DIML"]
    assert [way.label for way in methods["ProxyAnchor-AVSL"]] == ["ProxyAnchor-AVSL"]
    assert tuple(methods) == ORDER


def test_the_untrained_rows_are_recipes_of_one_training_that_differ_in_matching(work):
    plan = work.plan()
    assert len({plan.shared("train", way.recipe, DATASET) for way in UNTRAINED}) == 1
    settings = [plan.deciding(way.recipe, DATASET) for way in UNTRAINED]
    assert [each["train"]["loss"] for each in settings] == [None] * 4
    assert [each["evaluate"]["scoring"]["name"] for each in settings] == [*["cosine"] * 3, "structural_matching"]
    assert [each["embed"]["representation"]["name"] for each in settings[:3]] == ["own", "whitened", "relevant"]


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


def test_a_broken_download_is_left_out_by_name_and_the_others_stay(weights, capsys):
    kept = weights.parent / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"half of it")
    found, refused = usable(networks_at_hand([f"squeezenet1_1={weights}"], size_px=128))
    assert [each.name for each in found] == ["squeezenet1_1"]
    assert refused.keys() == {"resnet18"}
    assert str(kept) in refused["resnet18"]
    assert capsys.readouterr().err == f"lookalike: resnet18 is left out: {refused['resnet18']}\n"


@pytest.mark.parametrize("content", ["{", "{}", '{"asked": {"hours": 1}, "budget": 1, "chosen": [], "left_out": {}}'])
def test_a_schedule_that_cannot_be_read_is_told_and_chosen_anew(tmp_path, capsys, content):
    (tmp_path / "schedule.json").write_text(content)
    assert _kept_schedule(tmp_path / "schedule.json", {"hours": 1}) is None
    told = capsys.readouterr().err
    assert told.startswith(f"lookalike: {tmp_path}/schedule.json is no schedule of an earlier call (")
    write_text(tmp_path / "schedule.json", json.dumps({"asked": {"hours": 2}}))
    assert _kept_schedule(tmp_path / "schedule.json", {"hours": 1}) is None
    assert capsys.readouterr().err == ""


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


def test_work_on_a_folder_and_weights_with_the_longest_names_has_names_of_its_own(weights, work):
    network = Network("w" * 250, {"name": "squeezenet1_1", "weights": str(weights)}, {"resize_px": 28, "crop_px": 24})
    folder = weights.parent / ("f" * 250)
    folder.mkdir()
    (folder / "0.png").touch()
    (found,) = works_of(Classes(folder, work.classes.rows, False, (), (), None), [network], size_px=24)
    assert found.folder.startswith("own_fff")
    assert len(f".{found.file.name}.4194304.part") <= 255
