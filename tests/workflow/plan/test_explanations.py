"""Rows of the table of explanations are read and checked before any job starts."""

from types import SimpleNamespace as Names

import pytest
import yaml

from lookalike.explanations.quality import cells
from lookalike.explanations.quality.measures import CONTROLS as MEASURED_CONTROLS
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.explanations import (
    CONTROLS,
    Explanations,
    check_explainer,
    explainers,
    explanation_rows,
    read_explanations,
)
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings import pages
from lookalike.workflow.settings.files import read
from projects import spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
BIRDS = {"layout": "folder", "folder": "x"}


def rows_of(**values):
    plan = Plan({**MINI, **values})
    return explanation_rows(plan, read_explanations(plan))


def explanations_of(**values):
    return Explanations(Evidence(Inputs(Plan({**MINI, **values})), lambda file: True))


def test_every_row_is_measured_with_every_seed_on_what_stands_for_cub():
    settings = read("params/explanations.yaml", pages.Explanations)
    expected = {(block.title, row.label) for block in settings.blocks for row in block.rows}
    for scale, dataset in (("mini", "figurines_birds"), ("paper", "cub")):
        rows = rows_of(scale=scale)
        assert {(row.block, row.label) for row in rows} == expected
        assert {row.dataset for row in rows} == {dataset}
        assert len(rows) == 3 * len(expected)
    assert {row.seed for row in rows_of(seeds=[4, 7])} == {4, 7}


def test_every_explainer_and_every_control_is_in_the_table():
    assert {row.explainer for row in rows_of()} == set(explainers())
    assert CONTROLS == MEASURED_CONTROLS
    assert {f"{name.removesuffix('s')}_maps" for name in CONTROLS} <= set(dir(cells))


def test_a_scale_lays_its_own_over_the_protocol_and_a_row_has_seeds_of_its_own():
    row = {"label": "it", "recipe": "untrained", "explainer": "activation", "seeds": [5]}
    own = {"triplets": 7, "datasets": ["street"], "blocks": [{"title": "one", "rows": [row]}]}
    overlay = {"name": "mine", "datasets": {"street": BIRDS}, "explanations": own}
    plan = Plan({**MINI, **overlay})
    settings = read_explanations(plan)
    assert (settings.triplets, settings.grid) == (7, 14)
    assert [(each.dataset, each.seed) for each in explanation_rows(plan, settings)] == [("street", 5)]
    with pytest.raises(ValueError, match=r"the overlay, explanations: unknown key 'triplet', did you mean 'triplets'"):
        read_explanations(Plan({**MINI, **overlay, "explanations": {"triplet": 7}}))


REFUSED = [
    (
        "recipe: compared_triplet_sam",
        "recipe: compared_triplet_sma",
        r"blocks\.1, row 'Triplet \+ SAM, attention', recipe",
    ),
    ("explainer: graph", "explainer: grpah", r"explainer: unknown 'grpah', did you mean 'graph'"),
    ("substitutes: [blur, mean]", "substitutes: [blur, grey]", r"substitutes: unknown 'grey'"),
    ("recipe: untrained", "recipe: untraind", r"neutral\.recipe: unknown 'untraind', did you mean 'untrained'"),
    ("steps: 16", "steps: 200", r"steps: 200 is more than the 196 cells of the grid"),
    (
        'label: "control: centre", recipe: compared_proxy_anchor, explainer: centre',
        'label: "control: random", recipe: untrained, explainer: random',
        r"blocks\.0: two rows 'control: random' by random; each needs a label of its own",
    ),
    ("triplets: 300", "triplets: 1", r"triplets: 1 is less than the minimum of 2"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_cannot_be_is_refused_when_it_is_read(params, old, new, message):
    spoil(params / "explanations.yaml", old, new)
    with pytest.raises(ValueError, match=rf"^params/explanations\.yaml, .*{message}"):
        read_explanations(Plan(MINI))


def test_a_recipe_without_that_explainer_is_refused_in_one_line(params):
    spoil(params / "explanations.yaml", "explainer: graph", "explainer: structure")
    message = (
        r"^params/explanations\.yaml, row 'ProxyAnchor-AVSL, graph': explainer 'structure' does not explain recipe "
        r"compared_proxy_anchor_avsl, which trains avsl; these do: graph, random, centre, edges$"
    )
    with pytest.raises(ValueError, match=message):
        rows_of()


def test_a_file_that_was_asked_for_by_name_is_checked_too():
    found = explanations_of()
    job = Names(recipe="margin", dataset="figurines_birds", explainer="graph", seed="0")
    with pytest.raises(ValueError, match="explainer 'graph' does not explain recipe margin, which trains embedder"):
        found.model(job)
    job.explainer = "structure"
    assert found.model(job) == "results/mini/models/margin/figurines_birds/seed0.safetensors"
    check_explainer(Plan(MINI), "margin", "figurines_birds", "edges")


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({"street": BIRDS}, r"datasets: no data set of scale mine is or stands for 'cub'; it has street"),
        (
            {"street": {**BIRDS, "stands_for": "cub", "self_match": False}},
            r"datasets: street has queries and a gallery",
        ),
    ],
)
def test_data_on_which_nothing_can_be_drawn_is_refused_for_this_target_alone(datasets, message):
    found = explanations_of(name="mine", datasets=datasets)
    with pytest.raises(ValueError, match=rf"^params/explanations\.yaml, {message}"):
        found.measures(None)


def test_rows_of_one_training_share_what_was_measured():
    found = explanations_of()
    files = found.measures(None)
    assert len(set(files)) < len(files)
    # DIML without training explains the model of ProxyAnchor.
    assert "results/mini/explanations/compared_proxy_anchor/figurines_birds/structure-seed1.json" in files
    assert not [file for file in files if "compared_proxy_anchor_diml" in file]
    assert len(found.metrics(None)) == len(files)
    assert found.triplets(None) == ["results/mini/explanations/figurines_birds.triplets.csv"]
    job = Names(dataset="figurines_birds")
    assert found.neutral_embeddings(job) == "results/mini/embeddings/untrained/figurines_birds/seed0.safetensors"


def test_a_models_explanations_are_measured_again_where_their_own_code_changed():
    found = explanations_of()

    def code(explainer, recipe="compared_margin"):
        return found.code(Names(recipe=recipe, dataset="figurines_birds", explainer=explainer))

    assert len({code(explainer) for explainer in ("activation", "structure", "attention", "gradient")}) == 4
    assert code("activation") == code("activation", "compared_margin_diml")
    assert yaml.safe_dump(found.protocol)  # survives as a job's parameter
