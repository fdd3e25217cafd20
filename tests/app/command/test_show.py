"""`lookalike show` prints a resolved recipe with the file and key of each value, or only what differs."""

import pytest
import yaml

from lookalike.app.command import main
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.files import read_yaml, yaml_text
from lookalike.workflow.settings.layers import merge
from projects import OVERLAY


def shown(capsys, *words):
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("recipe", "dataset", "scale"),
    [
        ("compared_proxy_anchor_avsl", "cub", "paper"),
        ("margin", "figurines_birds", "mini"),
        ("sam_segment_cars", "figurines_scenes", "mini"),
        ("avsl_edges_8", "figurines_vehicles", "mini"),
    ],
)
def test_what_is_shown_is_the_recipe_that_runs(capsys, recipe, dataset, scale):
    found = yaml.safe_load(shown(capsys, f"{recipe}@{dataset}", "--scale", scale))
    assert found == Plan(configuration(scale, [])).deciding(recipe, dataset)


def test_each_value_names_the_file_and_key_that_state_it(capsys):
    lines = shown(capsys, "compared_margin@figurines_birds").splitlines()
    assert "    name: tiny  # params/scales/mini.yaml, recipe" in lines
    assert any(line.endswith("# params/scales/mini.yaml, embedding_dims") and "dim:" in line for line in lines)
    lines = shown(capsys, "compared_margin@cub100", "--configfile", "params/overlays/birds.yaml").splitlines()
    assert any(line.endswith("# params/rates/birds.csv, embedder, margin") and "head:" in line for line in lines)


@pytest.mark.parametrize("file", ["1e5", "no", "a: b #c"])
def test_what_is_shown_of_an_overlay_is_the_recipe_that_runs(capsys, params, file):
    (params.parent / "pictures").mkdir()
    (params.parent / file).touch()
    overlay = params / "own.yaml"
    overlay.write_text(
        yaml_text(merge(yaml.safe_load(OVERLAY), {"recipe": {"train": {"backbone": {"weights": file}}}}))
    )
    text = shown(capsys, "compared_margin@pictures", "--configfile", str(overlay))
    (params / "shown.yaml").write_text(text)
    assert read_yaml(params / "shown.yaml")["train"]["backbone"]["weights"] == file


def test_against_another_recipe_only_what_differs_is_printed(capsys):
    out = shown(capsys, "compared_proxy_anchor_avsl@cub", "--scale", "paper", "--against", "compared_proxy_anchor")
    keys = [line.partition(":")[0] for line in out.splitlines()]
    plan = Plan(configuration("paper", []))
    ours, theirs = (plan.deciding(name, "cub") for name in ("compared_proxy_anchor_avsl", "compared_proxy_anchor"))
    assert {"train.method.name", "train.embedding.pooling", "evaluate.scoring.name"} <= {*keys}
    for key in keys:
        values = []
        for tree in (ours, theirs):
            for part in key.split("."):
                tree = tree.get(part) if isinstance(tree, dict) else None
            values.append(tree)
        assert values[0] != values[1], key
    assert shown(capsys, "margin@figurines_birds", "--against", "margin") == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["marginn@figurines_birds"], "unknown 'marginn', did you mean 'margin'?"),
        (
            ["margin@figurine_birds"],
            "data set of scale mini: unknown 'figurine_birds', did you mean 'figurines_birds'?",
        ),
        (["margin"], "'margin': a recipe is shown on a data set, as margin@figurines_birds"),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest(capsys, words, message):
    assert main(["show", *words]) == 2
    assert message in capsys.readouterr().err
