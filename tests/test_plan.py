"""A plan holds what a call will run, and refuses what cannot be meant."""

import subprocess
import sys

import pytest

from lookalike import parameters
from lookalike.plan import Plan
from projects import ROOT, spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}


def overlay(**values):
    return {**MINI, "name": "mine", "datasets": {"pictures": {"layout": "folder", "folder": "x"}}, **values}


def test_every_recipe_of_every_scale_follows_its_schema():
    for scale in ("mini", "paper", "ci"):
        plan = Plan({**MINI, "scale": scale})
        assert len(plan.runs) > 0


def test_runs_are_rows_times_data_sets_times_seeds():
    plan = Plan({**MINI, "seeds": [0, 1, 2]})
    table = plan.tables["avsl_1"]
    assert len(plan.runs_of("avsl_1")) == len(table["rows"]) * len(table["datasets"]) * 3


def test_a_row_may_have_seeds_of_its_own(params):
    row = "- {label: Margin, recipe: margin,"
    spoil(params / "tables" / "diml.yaml", row, row + " seeds: [3, 4],")
    runs = Plan(MINI).runs_of("diml_1")
    assert set(runs.loc[runs["label"] == "Margin", "seed"]) == {3, 4}
    assert set(runs.loc[runs["label"] != "Margin", "seed"]) == {0}


def test_mini_lays_its_network_and_sizes_over_every_recipe():
    plan = Plan(MINI)
    settings = plan.settings("margin", "figurines_birds")
    assert settings["train"]["backbone"]["name"] == "tiny"
    assert settings["train"]["embedding"]["dim"] == 32
    assert settings["train"]["loss"] == {"name": "margin"}


def test_per_dataset_values_follow_the_data_set_that_is_stood_in_for():
    paper = Plan({**MINI, "scale": "paper"})
    rates = {name: paper.settings("softmax", name)["train"]["optimiser"]["lr"]["proxies"] for name in ("cub", "sop")}
    assert rates == {"cub": 1e-5, "sop": 2e-3}


def test_recipes_with_equal_sections_share_a_training_under_the_name_of_the_original(params):
    again = "again: {like: margin, evaluate: {count_query_in_r: false}}"
    spoil(params / "recipes" / "diml.yaml", "  margin: ", f"  {again}\n  margin: ")
    plan = Plan(MINI)
    assert plan.shared("train", "again", "figurines_birds") == "margin"
    assert plan.shared("embed", "again", "figurines_birds") == "margin"
    assert plan.shared("evaluate", "again", "figurines_birds") != plan.shared("evaluate", "margin", "figurines_birds")


def test_a_loss_does_not_inherit_the_values_of_another_one():
    base = {"loss": {"name": "margin", "margin": 0.3}}
    assert parameters.merge(base, {"loss": {"name": "npair"}}) == {"loss": {"name": "npair"}}
    assert parameters.merge(base, {"loss": {"margin": 0.2}}) == {"loss": {"name": "margin", "margin": 0.2}}


def test_an_overlay_gets_the_compact_comparison_of_its_own_data_sets():
    plan = Plan(overlay())
    assert plan.table_names == ["comparison"]
    assert set(plan.runs["dataset"]) == {"pictures"}
    assert not plan.runs_of("comparison")["comparable"].any()


def test_an_overlay_may_stand_in_for_a_published_data_set():
    datasets = {"birds": {"layout": "cub", "archive": "x.tar", "stands_for": "cub"}}
    plan = Plan(overlay(datasets=datasets, tables=["diml_1"]))
    assert set(plan.runs["published"]) == {"cub"}


def test_only_the_papers_own_set_up_is_compared_with_the_printed_numbers():
    assert not Plan(MINI).runs_of("diml_1")["comparable"].any()
    assert Plan({**MINI, "scale": "paper"}).runs_of("diml_1")["comparable"].all()


REFUSED = [
    ("recipes/diml", "name: npair", "name: npiar", r"train\.loss\.name: unknown 'npiar', did you mean 'npair'"),
    ("recipes/diml", "defaults:", "default:", r"diml\.yaml: unknown key 'default', did you mean 'defaults'"),
    ("recipes/diml", " batch_size: 112", " batch_sise: 112", r"unknown key 'batch_sise', did you mean 'batch_size'"),
    ("recipes/diml", "loss_weight_decay: 0.0", "loss_weight_decay: -1", r"optimiser\.loss_weight_decay: -1 is less"),
    ("recipes/diml", "  npair: ", "  margin: {}\n  npair: ", r"diml\.yaml, line \d+: 'margin' stands twice"),
    ("recipes/avsl", "  avsl_baseline_margin:", "  margin:", r"diml\.yaml: a recipe named 'margin' exists already"),
    (
        "recipes/comparison",
        "like: margin",
        "like: margins",
        r"untrained, like: unknown 'margins', did you mean 'margin'",
    ),
    ("tables/diml", "recipe: npair", "recipe: n_pair", r"diml_1, row 'NPair', recipe: unknown 'n_pair', did you mean"),
    (
        "scales/mini",
        "tables: [avsl_1",
        "tables: [avsl_9",
        r"mini\.yaml, tables: unknown 'avsl_9', did you mean 'avsl_\d'",
    ),
    ("scales/mini", "title:", "titel:", r"mini\.yaml: unknown key 'titel', did you mean 'title'"),
    ("scales/mini", "figurines_birds:", "figurine_birds:", r"datasets/figurine_birds\.yaml does not exist"),
    ("scales/mini", "{name: tiny,", "{name: teeny,", r"train\.backbone\.name: unknown 'teeny', did you mean 'tiny'"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused_with_file_key_and_what_would_be_right(params, file, old, new, message):
    spoil(params / f"{file}.yaml", old, new)
    with pytest.raises(ValueError, match=message):
        _ = Plan(MINI).runs


def test_values_of_the_command_line_are_read_as_they_are_meant():
    plan = Plan({**MINI, "seeds": ["0", "2"], "tracking": "false"})
    assert (plan.seeds, plan.tracking) == ([0, 2], False)
    with pytest.raises(ValueError, match=r"seeds\.1: 'x' is not of type 'integer'"):
        Plan({**MINI, "seeds": ["0", "x"]})


def test_unknown_configuration_is_refused():
    with pytest.raises(ValueError, match=r"configuration: unknown key 'sale', did you mean 'scale'"):
        Plan({**MINI, "sale": "mini"})
    with pytest.raises(ValueError, match=r"scales/minni\.yaml does not exist"):
        Plan({**MINI, "scale": "minni"})
    with pytest.raises(ValueError, match=r"datasets\.pictures: own data name their layout; found only folder"):
        Plan(overlay(datasets={"pictures": {"folder": "x"}}))


def test_planning_imports_neither_torch_nor_mlflow():
    program = (
        "import sys; from lookalike.plan import Plan; "
        f"plan = Plan({MINI!r}); plan.runs; plan.shared('train', 'margin', 'figurines_birds'); "
        "from lookalike.source import code_digest; "
        "code_digest(['lookalike.stages.train:train'], plan.settings('margin', 'figurines_birds')); "
        "print([name for name in ('torch', 'mlflow', 'dvc') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
