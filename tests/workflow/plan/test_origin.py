"""A number says how its run departs from the paper, and how to make it again."""

import json
import shlex

import pandas as pd
import pytest

from lookalike.workflow.plan.fidelity import departures
from lookalike.workflow.plan.origin import DEPARTURES, mixed_runs, origin, reads_of, rebuilding_options, refuse_mixture
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import Configuration, configuration, read_overlay
from lookalike.workflow.settings.files import read
from projects import ROOT

PLAIN = {"data": "cub", "weights": "start.safetensors"}
NOISY = {**PLAIN, "data": "cub with sop"}


def plan(**values):
    return Plan({**read("params/config.yaml", Configuration).dump(), **values})


def of(plan, recipe, dataset, trivial=False):
    run = {"recipe": recipe, "dataset": dataset, "published": dataset, "comparable": False, "trivial": trivial}
    run["seed"] = 0
    return origin(plan, run, "results/x/metrics/a/b/seed0.json")


def beside_print(plan, table):
    """Of every run of a table, by label and data set: its marks, and the points that it rests on."""
    listed = departures(plan.table(table).published.paper, plan.table(table).published.table)
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
    only = rebuilding_options(plan(only=["figurines_birds", "figurines_people"]))
    assert shlex.split(only) == ["--config", "only=[figurines_birds,figurines_people]"]
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
        for table in (ROOT / "results" / "reference" / study / "tables").glob("*.csv"):
            lines = pd.read_csv(table)["rebuild"].dropna()
            assert len(lines), table
            assert all(line.partition(" --configfile ")[2] == given for line in lines), table
    assert "your overlay" not in (ROOT / "results/reference/birds/tables.html").read_text()


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


def reading(*reads):
    return [
        {"reads": each, "metrics_file": f"results/small/metrics/a/cub/seed{place}.json", "options": " --config seeds=1"}
        for place, each in enumerate(reads)
    ]


def test_runs_of_one_split_and_one_file_of_weights_are_no_mixture():
    said = [{"data": "1", "weights": "2"}, {"data": "1", "weights": "2"}, {"data": "3", "weights": "2"}]
    assert mixed_runs(reading(PLAIN, PLAIN, NOISY), said) == []
    refuse_mixture(reading(PLAIN, PLAIN, NOISY), said)


def test_a_run_that_does_not_say_what_it_read_is_in_no_group():
    assert mixed_runs(reading(PLAIN, PLAIN), [{"data": "1"}, {}]) == []
    assert mixed_runs([{}, {}], [{"data": "1"}, {"data": "2"}]) == []


@pytest.mark.parametrize(("kind", "words"), [("data", "on another split of cub"), ("weights", "from other weights of")])
def test_the_fewer_runs_are_to_be_made_anew_by_a_line_that_can_be_typed(kind, words):
    said = [{"data": "1", "weights": "2", kind: digest} for digest in ("new", "old", "new")]
    assert mixed_runs(reading(PLAIN, PLAIN, PLAIN), said) == [[0, 2, 1]]
    line = "`snakemake results/small/metrics/a/cub/seed1.json --cores all --config seeds=1 --forcerun train`"
    with pytest.raises(
        ValueError, match=rf"seed1\.json was trained {words}.*\(old\) than .*seed0\.json \(new\)"
    ) as refused:
        refuse_mixture(reading(PLAIN, PLAIN, PLAIN), said)
    assert line in str(refused.value)
    assert "--config mixed=true" in str(refused.value)


def test_a_run_reads_the_split_that_it_is_trained_on_and_the_weights_of_its_recipe():
    plan = Plan({"scale": "ci", "seeds": [0], "archives": "data/archives", "tracking": False})
    recipe, dataset = next(iter(plan.runs[["recipe", "dataset"]].itertuples(index=False, name=None)))
    read = reads_of(plan, recipe, dataset, 0)
    assert read == reads_of(plan, recipe, dataset, 1)
    assert read["data"].split(" with ")[0] in plan.datasets
    assert read["weights"] == str(plan.deciding(recipe, dataset, "train")["train"]["backbone"]["weights"])


def test_seeds_of_two_halves_read_two_splits():
    plan = Plan({"scale": "ci", "seeds": [0], "archives": "data/archives", "tracking": False, "halves": "crossed"})
    said = {seed: reads_of(plan, "margin", "figurines_few_birds", seed)["data"] for seed in range(4)}
    assert said[0] == said[2] == "figurines_few_birds"
    assert said[1] == said[3] == "the second half of figurines_few_birds"
    assert rebuilding_options(plan) == " --config scale=ci halves=crossed"
