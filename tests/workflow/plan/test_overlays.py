"""The overlays that the project itself brings resolve, and hold what they say they hold."""

import re

import pytest
import yaml

from lookalike.workflow.plan.claims import claim_runs, read_claims
from lookalike.workflow.plan.explanations import explainers, explanation_rows, read_explanations
from lookalike.workflow.plan.figures import figure_runs, read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import tried
from lookalike.workflow.settings.call import configuration
from projects import OVERLAYS, ROOT

OF_THEIR_OWN = [path for path in OVERLAYS if isinstance(yaml.safe_load(path.read_text()).get("rates"), dict)]


def plan_of(path):
    return Plan(configuration(None, [path]))


@pytest.mark.parametrize("path", OVERLAYS, ids=lambda path: path.stem)
def test_every_overlay_resolves_with_its_claims(path):
    plan = plan_of(path)
    assert plan.scale == path.stem
    assert len(plan.runs)
    assert claim_runs(plan, read_claims(plan))


@pytest.mark.parametrize("path", OF_THEIR_OWN, ids=lambda path: path.stem)
def test_every_overlay_that_chooses_rates_resolves_with_its_trials(path):
    plan = plan_of(path)
    assert tried(plan)


def test_no_species_whose_explanations_are_measured_is_learned_from():
    plan = plan_of(ROOT / "params" / "overlays" / "parts.yaml")
    explained = plan.datasets["cub10"].about
    assert explained.trained_on == "cub100"
    # Of cub100, whose classes are numbered in the order of all 200, the first four are among the ten.
    assert plan.datasets["cub100"].about.classes.train[0] == 5
    rows = explanation_rows(plan, read_explanations(plan))
    assert {row.dataset for row in rows} == {"cub10"}
    assert {row.explainer for row in rows if row.recipe == "untrained"} == set(explainers()) - {"graph"}
    seeds: dict[str, set[int]] = {}
    for row in rows:
        seeds.setdefault(row.recipe, set()).add(row.seed)
    assert {recipe for recipe, own in seeds.items() if own == {0, 1, 2}} == set(seeds) - {"untrained"}
    assert {"compared_proxy_anchor_avsl", "diml_trained_margin", "compared_triplet_sam"} <= set(seeds)


def test_models_that_are_explained_learn_by_the_rates_of_the_birds():
    birds, parts = (
        yaml.safe_load((ROOT / "params" / "overlays" / f"{name}.yaml").read_text())["recipe"]["train"]
        for name in ("birds", "parts")
    )
    for key in ("optimiser", "schedule", "image", "test_image", "backbone", "batch_size"):
        assert parts[key] == birds[key], key


def test_the_birds_fill_every_cub_column_of_every_table_of_the_papers():
    plan = plan_of(ROOT / "params" / "overlays" / "birds.yaml")
    papers = {name for path in (ROOT / "params" / "published").glob("*.csv") for name in [path.stem]}
    of_cub = {
        name
        for path in (ROOT / "params" / "tables").glob("*.yaml")
        if path.stem in papers
        for name, entry in yaml.safe_load(path.read_text()).items()
        if "cub" in entry["datasets"]
    }
    assert of_cub <= set(plan.table_names)
    assert "comparison" in plan.table_names


def test_the_birds_show_curves_over_batches():
    plan = plan_of(ROOT / "params" / "overlays" / "birds.yaml")
    figures = read_figures(plan)
    assert list(figures) == ["contextual_2", "contextual_14", "contextual_15"]
    assert all({run.dataset for run in figure_runs(plan, figure)} == {"cub100"} for figure in figures.values())


def test_the_birds_are_half_of_cub_and_no_seed_of_a_trial_is_reported():
    plan = plan_of(ROOT / "params" / "overlays" / "birds.yaml")
    birds = plan.datasets["cub100"].about
    assert birds.classes_by_role == {"train": [1, 50], "test": [51, 100]}
    assert not {seed for rung in plan.rates.rungs for seed in rung.seeds} & {0, 1, 2}
    assert plan.deciding("margin", "cub100")["train"]["budget"]["epochs"] * 200 == 1000


@pytest.mark.parametrize("path", OVERLAYS, ids=lambda path: path.stem)
def test_every_overlay_states_the_whole_digest_of_each_file_that_it_wants(path):
    text = path.read_text()
    wanted = set(re.findall(r"(?:archive|weights): (data/archives/\S+?)[,}\s]", text))
    stated = dict(map(reversed, re.findall(r"^#     ([0-9a-f]{64})  (\S+)$", text, re.MULTILINE)))
    assert wanted == stated.keys()
    assert not re.search(r"[0-9a-f]{6}\.\.\.", text)  # nor the ends of one


def photographs(*over):
    names = ("photographs", *over)
    return Plan(configuration(None, [ROOT / "params" / "overlays" / f"{name}.yaml" for name in names]))


def test_photographs_are_compared_where_they_are_searched_and_segmented_where_they_have_masks():
    plan = photographs()
    assert [each.name for each in plan.datasets_of("comparison")] == ["birds", "cars", "products"]
    assert [each.name for each in plan.datasets_of("sam_4")] == ["scenes"]
    assert {seed for seed in plan.runs_of("comparison")["seed"] if plan.half_of("cars", seed)} == {1, 3}


def test_the_network_is_all_that_two_studies_of_photographs_differ_in():
    one, other = photographs(), photographs("photographs_squeezenet")
    for dataset in ("birds", "cars"):
        lite, squeeze = (plan.before_rates("compared_proxy_anchor", dataset) for plan in (one, other))
        for settings in (lite, squeeze):
            del settings["train"]["backbone"], settings["train"]["optimiser"]["lr"]
        assert lite == squeeze
    assert one.runs_of("comparison").equals(other.runs_of("comparison"))
    backbones = [plan.settings("compared_margin", "cars").train.backbone for plan in (one, other)]
    assert [(each.name, each.trained_from) for each in backbones] == [
        ("tf_efficientnet_lite0", "blocks.4"),
        ("squeezenet1_1", None),
    ]


def test_cars_are_trained_for_longer_than_birds():
    plan = photographs()
    budgets = {name: plan.settings("compared_margin", name).train.budget for name in ("birds", "cars", "products")}
    batches = {name: budget.epochs * budget.batches_per_epoch for name, budget in budgets.items()}
    assert batches == {"birds": 400, "cars": 1000, "products": 400}


@pytest.mark.parametrize("over", [("room",), ("photographs_squeezenet", "room")], ids=" under ".join)
def test_room_to_learn_is_one_kind_of_plain_model_after_three_budgets_on_each_half(over):
    plan = photographs(*over)
    runs = plan.runs_of("room")
    trained = runs[runs["recipe"].map(lambda recipe: plan.settings(recipe, "cars").train.loss is not None)]
    for dataset in ("birds", "cars", "products"):
        budgets = [plan.settings(recipe, dataset).train.budget for recipe in dict.fromkeys(trained["recipe"])]
        assert [each.epochs * each.batches_per_epoch for each in budgets] == [200, 400, 1000]
    assert [(each.kind.loss, each.half) for each in tried(plan)] == [("proxy_anchor", ""), ("proxy_anchor", "second")]
    assert {*runs["seed"]} == {0, 1}
