"""Two lists of runs beside each other."""

from dataclasses import dataclass

import pytest
import torch

from lookalike.app.command import main
from lookalike.app.command.comparison import pairs, settings_of
from lookalike.app.own.run_names import Names
from lookalike.base.files import write_json, write_tensors
from tried_results import write_results


@pytest.fixture
def results(params):
    return write_results(params)


@dataclass(frozen=True)
class Run:
    dataset: str
    seed: int


def run(seed=0, dataset="birds"):
    return Run(dataset, seed)


def test_runs_are_paired_by_data_set_and_seed_and_the_others_are_named():
    first = [run(0), run(2), run(1), run(0, "shop"), run(0, "wild")]
    second = [run(1), run(3), run(2), run(0, "shop")]
    birds, shop = pairs(first, second)
    assert [[each.seed for each in side] for side in birds[:2]] == [[1, 2], [1, 2]]
    assert birds[2] == [0, 3]
    assert [each.dataset for side in shop[:2] for each in side] == ["shop", "shop"]


def test_two_single_runs_are_a_pair_whatever_their_data_set_and_seed():
    assert list(pairs([run(0)], [run(1, "shop")])) == [([run(0)], [run(1, "shop")], [])]


@pytest.mark.parametrize(
    ("second", "message"),
    [([run(0, "shop"), run(0, "wild")], "no data set in common"), ([run(1), run(2)], "no seed in common: 0 and 1, 2")],
)
def test_runs_that_do_not_belong_together_are_refused(second, message):
    with pytest.raises(ValueError, match=message):
        list(pairs([run(0)], second))


def test_settings_are_those_that_the_model_was_trained_with(results):
    settings = {"loss": {"name": "margin", "margin": 0.75}}
    path = results / "models/margin/figurines_birds/seed0.safetensors"
    write_tensors(path, {"x": torch.zeros(1)}, {"settings": settings, "weights": None})
    found = settings_of(*Names(None).runs("margin@figurines_birds#0"))
    assert {key: value for key, value in found.items() if key.startswith("train.")} == {
        "train.loss.name": "margin",
        "train.loss.margin": "0.75",
    }
    assert found["evaluate.scoring.name"] == "cosine"


def test_two_runs_are_printed_with_what_differs(results, capsys):
    assert main(["compare", "tried:Margin", "tried:Margin + DIML"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "A  tried:Margin: margin on figurines_birds, seeds 0, 1"
    assert lines[1] == "B  tried:Margin + DIML: margin_diml on figurines_birds, seeds 0, 1"
    assert "  evaluate.scoring.name               cosine  structural_matching" in lines
    assert not any("train.loss.name" in line for line in lines)
    # differences 0.2 and 0.1: mean 0.15, Student's interval 12.7062 * 0.05 either side
    assert lines[-2].split() == ["R@1", "0.5500", "0.7000", "+0.1500", "-0.4853", "to", "+0.7853", "2"]
    assert "margin_diml@figurines_vehicles#0 is not finished" in printed.err


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"best": {}}',
        '{"last": {}}',
        *(f'{{"last": {{"R@1": {each}}}}}' for each in ('"x"', '"nan"', "NaN", "true")),
    ],
)
def test_a_seed_that_cannot_be_read_is_left_out_by_name(results, capsys, content):
    (results / "metrics/margin/figurines_birds/seed1.json").write_text(content)
    assert main(["compare", "margin@figurines_birds", "margin_diml@figurines_birds"]) == 1
    told = capsys.readouterr()
    fault = next(line for line in told.err.splitlines() if "left out" in line)
    assert fault.startswith("margin@figurines_birds#1 is left out: ") and "seed1.json" in fault
    assert "Remove it, and the next call makes it again" in fault
    assert "A  margin@figurines_birds: margin on figurines_birds, seed 0\n" in told.out


def test_a_model_that_cannot_be_read_leaves_its_seed_out(results, capsys):
    model = results / "models/margin/figurines_birds/seed1.safetensors"
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes(b"x" * 9)
    assert main(["compare", "margin@figurines_birds", "margin_diml@figurines_birds"]) == 1
    told = capsys.readouterr()
    assert "margin@figurines_birds#1 is left out: " in told.err and "is no whole safetensors file" in told.err
    assert "seed 0\n" in told.out


def test_what_is_equal_is_printed_when_asked_for(results, capsys):
    assert main(["compare", "margin@cub#0", "margin_diml@cub#0", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["train.loss.name", "margin", "margin"] for line in lines)
    assert any(line.split() == ["*", "evaluate.scoring.name", "cosine", "structural_matching"] for line in lines)


def test_metrics_that_one_side_lacks_are_named_and_cut_offs_stand_in_order(results, capsys):
    for recipe, scores in (("margin", {"R@10": 0.9, "R@2": 0.6, "mAP": 0.3}), ("margin_diml", {"R@10": 1, "R@2": 1})):
        path = results / "metrics" / recipe / "figurines_birds" / "seed0.json"
        write_json(path, {"best": scores, "last": scores})
    assert main(["compare", "margin@cub#0", "margin_diml@cub#0"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines if line and line[0].startswith("R@")] == ["R@2", "R@10"]
    assert ["only", "A:", "mAP"] in lines


def test_metrics_that_not_every_seed_has_are_named(results, capsys):
    path = results / "metrics/margin/figurines_birds/seed1.json"
    write_json(path, {"best": {"R@1": 0.6}, "last": {"R@1": 0.6}})
    assert main(["compare", "margin@figurines_birds", "margin_diml@figurines_birds"]) == 0
    assert "  left out, as not every seed has it: MAP@R\n" in capsys.readouterr().out
