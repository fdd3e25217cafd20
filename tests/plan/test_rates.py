"""Rates are chosen per kind of recipe, the same trials for each, and lie over all recipes of the kind."""

import pandas as pd
import pytest

from lookalike.plan import rates, scales
from lookalike.plan.plan import Plan
from lookalike.plan.rates import (
    COLUMNS,
    Kind,
    Trial,
    choose,
    chosen_rates,
    kind_of,
    rates_layers,
    trial_settings,
    trials,
)
from lookalike.tables.notes import notes_of, table_notes

GRID = [{"trunk": 1e-4, "head": 1e-3}, {"trunk": 3e-4, "head": 1e-3}, {"trunk": 1e-4, "head": 3e-3}]
CONFIG = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
OVERLAY = {
    **CONFIG,
    "name": "own",
    "datasets": {"pictures": {"layout": "folder", "folder": "pictures"}},
    "tables": ["comparison"],
    "rates": {"grid": GRID, "seeds": [100, 101], "train": {"budget": {"epochs": 1, "batches_per_epoch": 7}}},
}
LINE = "embedder,margin,compared_margin,pictures,0.0001,0.003,2,0.5,yes"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """File of the choices of the overlay `own`, in a project that has nothing else."""
    monkeypatch.setattr(rates, "project_root", lambda: tmp_path)
    path = tmp_path / "params" / "rates" / "own.csv"
    path.parent.mkdir(parents=True)
    return path


def write(path, *lines):
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")


def train(method="embedder", loss="margin"):
    return {
        "method": {"name": method},
        "loss": {"name": loss} if loss else None,
        "optimiser": {"algorithm": "adamw", "lr": {"trunk": 0.5, "head": 0.5, "proxies": 0.1}},
    }


def test_recipes_of_one_method_and_loss_are_of_a_kind_and_one_that_learns_nothing_of_none():
    plan = Plan(OVERLAY)
    assert kind_of(plan.settings("compared_margin", "pictures").train) == Kind("embedder", "margin")
    assert kind_of(plan.settings("untrained", "pictures").train) is None


def test_every_kind_of_the_scales_tables_gets_the_same_number_of_trials_on_one_recipe():
    tried = trials(Plan(OVERLAY))
    by_kind = {}
    for trial in tried:
        by_kind.setdefault(trial.kind, []).append(trial)
    assert [len(of_kind) for of_kind in by_kind.values()] == [len(GRID)] * len(by_kind)
    assert all(len({trial.recipe for trial in of_kind}) == 1 for of_kind in by_kind.values())
    assert Kind("sam", "triplet") in by_kind
    assert Kind("embedder", "margin") in by_kind
    # Matching at test time trains nothing of its own.
    assert by_kind[Kind("embedder", "margin")][0].recipe == "compared_margin"


def test_a_kind_is_tried_on_the_stand_in_for_cub_where_it_runs_there():
    plan = Plan({**CONFIG, "tables": ["methods"]})
    plan.rates = Plan(OVERLAY).rates
    tried = {trial.kind: trial for trial in trials(plan)}
    assert tried[Kind("embedder", "margin")].dataset == "figurines_birds"
    assert tried[Kind("sam", "part_cross_entropy")].dataset == "figurines_people"  # though the call asks for `methods`


def test_a_trial_is_the_recipe_at_the_scale_with_a_pair_of_rates_and_the_budget_of_trials():
    plan = Plan(OVERLAY)
    own = plan.deciding("compared_margin", "pictures")["train"]
    tried = trial_settings(plan, "compared_margin", "pictures", 2)
    assert tried["optimiser"]["lr"] == {**own["optimiser"]["lr"], **GRID[2]}
    assert tried["budget"]["batches_per_epoch"] == 7
    assert "MAP@R" in tried["budget"]["metrics"]
    assert {key: tried[key] for key in tried.keys() - {"optimiser", "budget"}} == {
        key: own[key] for key in own.keys() - {"optimiser", "budget"}
    }


def test_a_trial_beyond_the_grid_or_of_a_scale_without_one_is_refused():
    with pytest.raises(ValueError, match=r"^the overlay, rates\.grid has pairs 0 to 2, not 3$"):
        trial_settings(Plan(OVERLAY), "compared_margin", "pictures", 3)
    with pytest.raises(ValueError, match=r"^params/scales/paper\.yaml: has no key rates; its rates are those"):
        trials(Plan({**CONFIG, "scale": "paper", "tables": ["methods"]}))


def test_the_best_score_of_a_kind_is_chosen_and_of_equals_the_first():
    first, second = Kind("embedder", "margin"), Kind("avsl", "margin")
    tried = [Trial(kind, kind.method, "pictures", number) for kind in (first, second) for number in range(3)]
    found = choose(tried, [0.1, 0.3, 0.2, 0.4, 0.2, 0.4], Plan(OVERLAY).rates.grid, 2)
    assert list(found.columns) == list(COLUMNS)
    assert list(found["chosen"]) == ["", "yes", "", "yes", "", ""]
    assert found[["trunk", "head"]].to_dict("records") == GRID * 2


def test_what_was_chosen_lies_over_the_recipes_of_its_kind_and_over_no_other(file):
    before = Plan(OVERLAY)
    write(file, LINE)
    after = Plan(OVERLAY)
    for recipe in ("compared_margin", "compared_margin_diml"):
        lr = after.deciding(recipe, "pictures")["train"]["optimiser"]["lr"]
        assert (lr["trunk"], lr["head"]) == (1e-4, 3e-3)
        assert lr["proxies"] == before.deciding(recipe, "pictures")["train"]["optimiser"]["lr"]["proxies"]
    for recipe in ("compared_proxy_anchor_avsl", "compared_triplet", "untrained"):
        assert after.deciding(recipe, "pictures") == before.deciding(recipe, "pictures")


def test_a_table_says_that_its_rates_were_chosen(file):
    assert not [note for note in Plan(OVERLAY).table("comparison")["remarks"] if "held out" in note]
    write(file, LINE)
    (note,) = [note for note in Plan(OVERLAY).table("comparison")["remarks"] if "held out" in note]
    assert note.endswith(
        "(params/rates/own.csv). Where 'avsl' was not tried with a loss it has the rates of the loss alone."
    )


def test_a_table_whose_kinds_were_all_tried_says_no_more():
    (note,) = [note for note in Plan(CONFIG).table("avsl_1")["remarks"] if "held out" in note]
    assert note.endswith("(params/rates/mini.csv).")


def test_a_grid_says_which_methods_have_the_rates_of_a_loss_alone():
    (note,) = [note for note in Plan({**CONFIG, "tables": ["grid"]}).table("grid")["remarks"] if "held out" in note]
    assert note.endswith(". Where 'sam' was not tried with a loss it has the rates of the loss alone.")


def test_rates_that_were_chosen_leave_a_table_its_notes_on_single_data_sets():
    table = Plan(CONFIG).table("avsl_1")
    assert any("held out" in note for note in table["remarks"])
    assert any("no single model" in note for note in table["notes"]["cub"])
    nothing_run = pd.DataFrame(
        columns=["n", "printed", "seeds", "departs", "label", "rests_on", "dataset", "stand_in", "metric", "mean"],
        dtype=str,
    )
    assert table_notes(table, nothing_run, "mini")[1:] == table["remarks"]
    assert notes_of(table, "cub") == table["notes"]["cub"]


def test_the_rates_of_a_trial_do_not_follow_from_what_was_chosen(file):
    before = trial_settings(Plan(OVERLAY), "compared_margin", "pictures", 0)
    write(file, LINE)
    assert trial_settings(Plan(OVERLAY), "compared_margin", "pictures", 0) == before


def test_a_kind_that_was_not_tried_takes_the_rates_of_its_loss_alone():
    chosen = {
        Kind("embedder", "margin"): {"trunk": 1.0, "head": 2.0},
        Kind("sam", "triplet"): {"trunk": 3.0, "head": 4.0},
    }
    (layer,) = rates_layers(train("sam", "margin"), chosen, "mine")
    assert layer == ("params/rates/mine.csv", {"train": {"optimiser": {"lr": {"trunk": 1.0, "head": 2.0}}}})
    for without in (train("embedder", "triplet"), train(loss=None)):
        assert rates_layers(without, chosen, "mine") == []


def test_a_scale_with_a_grid_of_its_own_has_choices_of_its_own():
    own = Plan({**CONFIG, "scale": "small_squeezenet"})
    assert own.rates_of == "small_squeezenet"  # which is like `small`
    assert own.rates.train == Plan({**CONFIG, "scale": "small"}).rates.train


def test_the_choices_of_another_scale_are_taken_by_its_name(file, monkeypatch):
    write(file, LINE)
    monkeypatch.setattr(scales, "project_root", lambda: file.parents[2])
    longer = Plan({**OVERLAY, "name": "longer", "rates": "own"})
    assert longer.deciding("compared_margin", "pictures")["train"]["optimiser"]["lr"]["head"] == 3e-3
    assert not longer.rates  # and no trials of its own
    with pytest.raises(
        ValueError, match=r"^the overlay, rates \(choices below params/rates\): unknown 'owm', did you mean 'own'"
    ):
        Plan({**OVERLAY, "name": "longer", "rates": "owm"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINE.replace("0.0001", "fast")], r"own\.csv, line 2: trunk fast is no rate above 0$"),
        (["embedder,margin,compared_margin,pictures,0.1,-1,2,0.5,"], r"own\.csv, line 2: head -1 is no rate above 0$"),
        ([LINE, LINE], r"own\.csv, line 3: a second choice for embedder with margin, one is right$"),
    ],
)
def test_a_spoilt_file_is_named_with_its_line(file, lines, said):
    write(file, *lines)
    with pytest.raises(ValueError, match=said):
        chosen_rates("own")


@pytest.mark.parametrize(("text", "first"), [("method,loss\n", "recipe"), ("", "method")])
def test_a_file_without_a_column_is_named(file, text, first):
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"own\.csv: no column '{first}'; the target `rates` makes the file anew$"):
        chosen_rates("own")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"grid": [], "seeds": [1]}, r"rates\.grid"),
        ({"grid": [{"trunk": 0.0, "head": 1.0}], "seeds": [1]}, r"rates\.grid\.0\.trunk"),
        ({"grid": [{"trunk": 1e-3}], "seeds": [1]}, r"rates\.grid\.0"),
        ({"grid": GRID}, r"rates: 'seeds' is a required property"),
    ],
)
def test_a_grid_that_cannot_be_meant_is_refused(values, said):
    with pytest.raises(ValueError, match=rf"^the overlay, {said}"):
        Plan({**OVERLAY, "rates": values})


def test_a_call_says_where_chosen_rates_hold_in_place_of_those_that_an_overlay_states(file):
    stating = {**OVERLAY, "recipe": {"train": {"optimiser": {"lr": {"trunk": 1e-5, "proxies": 0.1}}}}}
    assert Plan(stating).notices == []  # nothing is chosen yet
    write(file, LINE)
    (notice,) = Plan(stating).notices
    assert notice.startswith("params/rates/own.csv: ") and notice.endswith("recipe.train.optimiser.lr (trunk)")
    assert Plan(OVERLAY).notices == []
