"""A number says how its run departs from the paper, and how to make it again."""

import json
import shlex

import pandas as pd
import pytest

from lookalike.plan.fidelity import departures
from lookalike.plan.origin import DEPARTURES, origin, rebuilding_options
from lookalike.plan.plan import Plan
from lookalike.settings.call import Configuration, configuration, read_overlay
from lookalike.settings.files import read
from projects import ROOT


def plan(**values):
    return Plan({**read("params/config.yaml", Configuration).dump(), **values})


def of(plan, recipe, dataset, trivial=False):
    run = {"recipe": recipe, "dataset": dataset, "published": dataset, "comparable": False, "trivial": trivial}
    return origin(plan, run, "results/x/metrics/a/b/seed0.json")


def beside_print(plan, table):
    """Of every run of a table, by label and data set: its marks, and the points that it rests on."""
    listed = departures(**{key: plan.table(table)["published"][key] for key in ("paper", "table")})
    found = {
        (run["label"], run["dataset"]): origin(plan, run, "", listed) for run in plan.runs_of(table).to_dict("records")
    }
    return {key: (each["departs"], each["rests_on"]) for key, each in found.items()}


@pytest.fixture(scope="module")
def mini():
    return plan(scale="mini")


@pytest.fixture(scope="module")
def paper():
    return plan(scale="paper")


def test_a_run_as_the_paper_made_it_has_no_marks(paper):
    for recipe in ("margin_diml", "avsl_proxy_anchor", "contextual", "sam_triplet"):
        assert of(paper, recipe, "cub")["departs"] == ""


def test_a_small_run_on_drawn_pictures_departs_in_all(mini):
    assert of(mini, "margin", "figurines_birds")["departs"] == "DBS"
    assert set("DOBSFCM1") == set(DEPARTURES)


def test_a_row_that_no_paper_has_departs_from_none(mini):
    assert of(mini, "chance", "figurines_birds", trivial=True)["departs"] == ""


def test_each_departure_has_its_own_mark():
    datasets = {"birds": {"layout": "folder", "folder": "birds", "stands_for": "cub"}}
    own = {"name": "own", "datasets": datasets, "tables": ["comparison"]}
    for recipe, marks in (
        ({}, ""),
        ({"train": {"backbone": {"name": "resnet18", "weights": None, "batch_norm": "trained"}}}, "B"),
        ({"train": {"batch_size": 8}}, "S"),
        ({"evaluate": {"count_query_in_r": False}}, "S"),
    ):
        assert of(plan(**own, recipe=recipe), "margin", "birds")["departs"] == f"D{marks}"


def test_equal_settings_have_equal_digests_and_others_do_not(mini):
    digest = {recipe: of(mini, recipe, "figurines_birds")["settings"] for recipe in ("margin", "compared_margin")}
    assert mini.shared("evaluate", "compared_margin", "figurines_birds") == "compared_margin"
    assert digest["margin"] != digest["compared_margin"]
    assert all(len(each) == 12 for each in digest.values())
    assert of(mini, "margin", "figurines_birds")["settings"] == digest["margin"]


def test_how_r_counts_is_that_of_the_recipe(mini):
    assert of(mini, "margin", "figurines_birds")["query_in_r"] is True
    assert of(mini, "contextual", "figurines_birds")["query_in_r"] is False


def test_a_rebuilding_call_names_its_scale_unless_that_is_the_default(mini, paper):
    assert of(mini, "margin", "figurines_birds")["options"] == ""
    assert of(paper, "margin", "cub")["options"] == " --config scale=paper"
    assert rebuilding_options(plan(selection="held_out")) == " --config selection=held_out"
    assert rebuilding_options(plan(scale="ci", suffix="again")) == " --config scale=ci suffix=again"


def overlaid(*files, **values):
    return rebuilding_options(Plan({**configuration(None, list(files)), **values}))


def test_a_rebuilding_call_names_the_files_of_its_overlay_as_a_shell_takes_them(tmp_path):
    overlay = {"name": "own", "datasets": {"birds": {"layout": "folder", "folder": "birds"}}}
    mine, trial = tmp_path / "my pictures.yaml", tmp_path / "trial.yaml"
    mine.write_text(json.dumps(overlay))
    trial.write_text("name: own_trial\n")
    assert overlaid(mine) == f" --configfile '{mine}'"
    assert shlex.split(overlaid(mine, trial)) == ["--configfile", str(mine), str(trial)]
    assert overlaid(mine, name="renamed") == f" --configfile '{mine}' --config name=renamed"
    seeds = tmp_path / "seeds.yaml"
    seeds.write_text("seeds: [0, 1]\n")
    assert overlaid(seeds, scale="ci") == f" --configfile {seeds} --config scale=ci"


def test_a_rebuilding_call_of_a_study_is_that_of_its_header():
    birds, long = (f"params/overlays/{name}.yaml" for name in ("birds", "birds_long"))
    assert overlaid(ROOT / birds) == f" --configfile {birds}"
    assert overlaid(ROOT / birds, ROOT / long) == f" --configfile {birds} {long}"


def test_every_committed_line_names_the_overlay_of_its_results():
    for study, files in (("birds", ["birds"]), ("birds_long", ["birds", "birds_long"])):
        given = " ".join(f"params/overlays/{name}.yaml" for name in files)
        for table in (ROOT / "results" / study / "tables").glob("*.csv"):
            lines = pd.read_csv(table)["rebuild"].dropna()
            assert len(lines), table
            assert all(line.partition(" --configfile ")[2] == given for line in lines), table
    assert "your overlay" not in (ROOT / "results/birds/tables.html").read_text()


def test_overlays_do_not_say_themselves_in_which_files_they_are(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("overlays: [other.yaml]\n")
    with pytest.raises(ValueError, match=r"mine.yaml, overlays: files are given by --configfile; leave the key out"):
        read_overlay([mine])


# Table, row and data set, and a word of the point of params/fidelity that the row rests on, if there is one.
RESTS_ON = [
    ("diml_1", "Arcface", "cub", "ArcFace"),
    ("diml_1", "Arcface + DIML", "cub", "ArcFace"),
    ("diml_1", "Quadruplet", "sop", "quadruplet"),
    ("diml_1", "Margin", "cub", ""),
    ("diml_1", "Margin + DIML", "cars", "Sinkhorn"),
    ("diml_4", "Margin, 64", "cub", "distance-weighted"),
    ("diml_4", "Margin + DIML, 512", "cars", "distance-weighted"),
    ("diml_4", "MS, 64", "cub", ""),
    ("contextual_2", "Roadmap", "cub", "ROADMAP"),
    ("contextual_2", "Contextual, 512", "cub", ""),
    ("contextual_4", "Contextual", "inat", "contrastive part"),
    ("contextual_9", "Contextual", "cub", "trials"),
    ("contextual_10", "Contrastive, k = 16", "cars", "trials"),
    ("sam_1", "Triplet + SAM", "cub", "weight is a constant"),
    ("sam_4", "SAM, trained on CUB", "pascal5i", "GrabCut"),
    ("avsl_1", "ProxyAnchor", "sop", "Proxy Anchor baseline on SOP"),
    ("avsl_1", "ProxyAnchor-AVSL", "cub", ""),
]


@pytest.mark.parametrize(("table", "label", "dataset", "word"), RESTS_ON)
def test_a_row_at_paper_names_the_listed_departures_that_it_rests_on(paper, table, label, dataset, word):
    marks, points = beside_print(paper, table)[label, dataset]
    assert word in points
    assert (marks, bool(points)) == (("F", True) if word else ("", False))


def test_a_recipe_that_follows_the_released_code_after_all_is_not_marked(paper):
    (arcface,) = (each for each in departures("diml", "T1") if "ArcFace" in each.point)
    assert arcface.concerns(paper.deciding("arcface", "cub"), "cub")
    assert not arcface.concerns(paper.deciding("fidelity_arcface_margin_released", "cub"), "cub")


def test_stand_ins_have_no_difference_and_no_such_mark(mini):
    assert not any("F" in marks for marks, _ in beside_print(mini, "diml_1").values())
