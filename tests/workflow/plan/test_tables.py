"""Every table of retrieval has a row of chance and one of untrained features; every recipe has an untrained start."""

import pytest

from lookalike.workflow.plan.plan import Plan
from projects import spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": True}
LABELS = ["Chance", "Untrained features", "Whitened", "Whitened, s = 0.2", "RCA", "RCA, s = 0.2"]
PROTOCOL = [("train", "test_image"), ("embed", "training_pictures"), ("evaluate", "count_query_in_r")]


@pytest.fixture(scope="module")
def paper():
    return Plan({**MINI, "scale": "paper"})


def test_every_table_of_retrieval_has_them_and_none_of_segmentation(paper):
    for name in [*paper.table_names, "comparison", "methods", "ci_recipes", "ci_levels", "ci_cameras"]:
        rows = paper.table(name).rows
        expected = [] if name in ("sam_4", "sam_5") else LABELS
        assert [row.label for row in rows if row.trivial and row.label in LABELS] == expected, name
        assert [row.label for row in rows[len(rows) - len(expected) :]] == expected


def test_they_are_measured_as_the_first_row_of_their_table_is(paper):
    for name in paper.table_names:
        runs = paper.runs_of(name)
        first = runs.iloc[0]["recipe"]
        for run in runs[runs["label"].isin(LABELS)].itertuples():
            theirs, ours = (paper.deciding(recipe, run.dataset) for recipe in (first, run.recipe))
            assert [ours[stage][key] for stage, key in PROTOCOL] == [theirs[stage][key] for stage, key in PROTOCOL]
            assert ours["train"]["backbone"]["name"] == theirs["train"]["backbone"]["name"]
            assert (ours["train"]["loss"], ours["evaluate"]["scoring"]) == (None, {"name": "cosine"})


def test_the_network_of_a_table_with_one_of_its_own_is_looked_at_untrained(paper):
    [run] = paper.runs_of("sam_3").query("label == 'Untrained features'").itertuples()
    train = paper.deciding(run.recipe, run.dataset)["train"]
    assert (train["backbone"]["last_stride"], train["test_image"]["crop_px"]) == (1, [384, 128])


def test_they_have_the_map_of_their_table(params):
    spoil(params / "recipes" / "sam.yaml", "  pcb:\n", "  pcb:\n    evaluate: {average_precision: trapezoids}\n")
    plan = Plan(MINI)
    for run in plan.runs_of("sam_3").itertuples():
        assert plan.deciding(run.recipe, run.dataset)["evaluate"]["average_precision"] == "trapezoids"
    assert "average_precision" not in plan.deciding("margin", "figurines_birds")["evaluate"]


def test_their_results_are_shared_and_cost_one_training_per_data_set_at_mini():
    plan = Plan(MINI)
    trivial = plan.runs[plan.runs["label"].isin(LABELS)]
    stored = {
        stage: {(plan.shared(stage, run.recipe, run.dataset), run.dataset) for run in trivial.itertuples()}
        for stage in ("train", "embed", "evaluate")
    }
    assert {recipe for recipe, _ in stored["train"]} == {"untrained"}
    assert len(stored["train"]) == trivial["dataset"].nunique() == 6
    assert {recipe.partition("_")[0] for recipe, _ in stored["evaluate"]} == {"chance", "untrained"}
    assert len(stored["evaluate"]) == 60
    assert len(trivial) > 2 * len(stored["evaluate"])


@pytest.mark.parametrize(
    "recipe", ["margin", "margin_diml", "contextual", "contextual_reranked_16", "contrastive_256_seen"]
)
def test_the_start_of_a_recipe_pools_and_compares_as_it_does_and_learns_nothing(paper, recipe):
    paper.check_run(f"start_of_{recipe}", "cub")
    ours, theirs = (paper.deciding(name, "cub") for name in (f"start_of_{recipe}", recipe))
    assert (ours["train"]["loss"], ours["train"]["embedding"]["dim"]) == (None, None)
    assert ours["train"]["embedding"]["pooling"] == theirs["train"]["embedding"]["pooling"]
    assert ours["train"]["test_image"] == theirs["train"]["test_image"]
    assert ours["embed"]["representation"] == theirs["embed"]["representation"]
    assert ours["evaluate"]["scoring"] == theirs["evaluate"]["scoring"]


def test_the_start_of_a_method_that_compares_by_what_it_learns_is_compared_by_the_cosine(paper):
    paper.check_run("start_of_avsl_margin", "cub")
    start = paper.settings("start_of_avsl_margin", "cub")
    assert (start.train.method.name, start.evaluate.scoring.name) == ("embedder", "cosine")
    assert start.train.embedding.pooling == "average_max"


def test_starts_share_results_with_recipes_and_with_each_other_and_take_none_from_sweeps():
    plan = Plan(MINI)
    names = [plan.shared("evaluate", f"start_of_{recipe}", "figurines_birds") for recipe in ("margin", "triplet_hinge")]
    assert names == ["untrained", "untrained"]
    of_gem = {f"start_of_{recipe}" for recipe in ("contextual", "contrastive_224", "contrastive_seen")}
    assert {plan.shared("evaluate", name, "figurines_birds") for name in of_gem} == {"start_of_contextual"}
    point = "untrained_features_diml_at_g_4"
    assert plan.shared("evaluate", point, "figurines_birds") == point


def test_own_pictures_get_them_too():
    pictures = {"pictures": {"layout": "folder", "folder": "x"}}
    plan = Plan({**MINI, "name": "mine", "datasets": pictures})
    runs = plan.runs_of("comparison")
    assert list(runs.loc[runs["trivial"], "label"]) == LABELS
    assert plan.shared("train", "comparison_chance", "pictures") == "untrained"


def test_a_sweep_gets_rows_but_no_points():
    plan = Plan({**MINI, "tables": ["grid"]})
    assert list(plan.runs_of("grid")["label"][-len(LABELS) :]) == LABELS
    assert "grid_chance" not in {point.name for point in plan.sweeps["grid"].points}
    assert plan.shared("evaluate", "grid_untrained", "figurines_birds") == "untrained_counted"


def test_a_table_that_names_such_a_row_itself_is_refused(params):
    spoil(
        params / "tables" / "comparison.yaml", "rows: &rows\n", "rows: &rows\n    - {label: Chance, recipe: margin}\n"
    )
    with pytest.raises(
        ValueError, match=r"table comparison, row 'Chance': params/trivial\.yaml gives every table this"
    ):
        Plan(MINI)


def test_a_recipe_that_does_not_exist_is_refused(params):
    spoil(params / "trivial.yaml", "recipe: chance", "recipe: chanse")
    with pytest.raises(ValueError, match=r"params/trivial\.yaml, row 'Chance', recipe: unknown 'chanse', did you mean"):
        Plan(MINI)
