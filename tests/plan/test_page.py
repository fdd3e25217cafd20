"""Which runs and files the page shows is read and checked before any job starts."""

from types import SimpleNamespace as Names

import pandas as pd
import pytest

from lookalike.plan.evidence import Evidence
from lookalike.plan.inputs import Inputs
from lookalike.plan.page import Shown, page_rows, read_page
from lookalike.plan.plan import Plan
from lookalike.settings.layers import settings_digest
from projects import spoil

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
BIRDS = {"layout": "folder", "folder": "x"}
LOCATED = {"side": 4, "pooling": "resample", "global_vector": "embedding"}
MATCHED = {"marginal": "cross_correlation", "reg": 0.05, "tolerance": 1e-6, "solver": "sinkhorn"}
BY_STRUCTURE = {"name": "structure", **LOCATED, **MATCHED}


def shown_of(**values):
    return Shown(Evidence(Inputs(Plan({**MINI, **values})), lambda file: True))


def test_mini_shows_all_methods_and_the_untrained_network_but_not_chance():
    shown = shown_of(seeds=[3, 4])
    rows = page_rows(shown.plan, shown.settings)
    labels = [row["label"] for row in shown.plan.table("methods")["rows"]]
    assert [row["label"] for row in rows] == [label for label in labels if label != "Chance"]
    assert {row["dataset"] for row in rows} == {"figurines_birds"}
    assert {row["seed"] for row in rows if not row["recipe"].startswith("untrained")} == {3}


def test_own_pictures_show_the_comparison_and_may_choose_otherwise():
    overlay = {"name": "mine", "datasets": {"street": BIRDS}}
    rows = page_rows(shown_of(**overlay).plan, read_page(Plan({**MINI, **overlay})))
    assert {row["dataset"] for row in rows} == {"street"}
    assert len(rows) == 13
    plan = Plan({**MINI, **overlay, "page": {"queries": 5, "tables": []}})
    settings = read_page(plan)
    assert (settings["queries"], settings["matches"], page_rows(plan, settings)) == (5, 8, [])
    with pytest.raises(ValueError, match=r"the overlay, page: unknown key 'query', did you mean 'queries'"):
        read_page(Plan({**MINI, **overlay, "page": {"query": 5}}))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tables: [methods, ", "tables: [method, ", r"tables: unknown 'method', did you mean 'methods'"),
        ("queries: 24", "queries: 0", r"queries: 0 is less than the minimum of 1"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_read(params, old, new, message):
    spoil(params / "page.yaml", old, new)
    with pytest.raises(ValueError, match=rf"^params/page\.yaml, {message}"):
        read_page(Plan(MINI))


@pytest.mark.parametrize(
    ("recipe", "method"),
    [
        ("compared_margin", {"name": None}),
        ("compared_margin_diml", BY_STRUCTURE),
        ("margin_structure_uniform", {**BY_STRUCTURE, "marginal": "uniform"}),
        ("diml_trained_margin", {"name": "structure", **MATCHED}),
        ("compared_margin_avsl", {"name": "graph"}),
        ("compared_triplet_sam", {"name": "attention"}),
        ("untrained", {"name": None}),
    ],
)
def test_a_run_is_explained_by_what_ranks_it(recipe, method):
    assert shown_of().method(Names(recipe=recipe, dataset="figurines_birds")) == method


def test_files_lie_under_the_recipe_that_stands_for_all_of_equal_settings():
    shown = shown_of()
    files = shown.pairs(None)
    assert "results/mini/pairs/compared_margin_diml/figurines_birds/seed0.json" in files
    assert shown.pairs_of(Names(dataset="figurines_birds")) == files
    assert shown.pairs_of(Names(dataset="figurines_shop")) == []
    assert shown.pictures(None) == ["results/mini/pairs/figurines_birds.pictures.json"]
    assert len(shown.metrics(None)) == len(files)


def test_tables_and_documents_are_those_that_exist(params, monkeypatch):
    shown = shown_of()
    assert (shown.tables(), shown.documents(), shown.found()) == ({}, {}, {})
    results = params.parent / "results" / "mini"
    (results / "tables").mkdir(parents=True)
    for name in ("tables/avsl_1.csv", "claims.md"):
        (results / name).write_text("x")
    assert list(shown.tables()) == ["avsl_1"]
    assert shown.documents() == {"claims": "results/mini/claims.md"}
    found = shown.found()
    assert set(found) == {"results/mini/tables/avsl_1.csv", "results/mini/claims.md"}
    (results / "claims.md").write_text("y")
    assert shown.found()["results/mini/claims.md"] != found["results/mini/claims.md"]


def test_a_table_that_settings_of_another_day_made_is_told_by_its_number_of_rows(params):
    shown = shown_of()
    plan, table = shown.plan, params.parent / "results" / "mini" / "tables" / "avsl_edges.csv"
    runs = plan.runs_of("avsl_edges").drop_duplicates("recipe")
    rows = runs[["recipe", "dataset"]].itertuples(index=False, name=None)
    settings = [settings_digest(plan.deciding(*row, plan.last_stage(row[0]))) for row in rows]
    cells = runs[["recipe"]].assign(stand_in=runs["dataset"], settings=settings)
    quoted = pd.DataFrame({"recipe": [""], "stand_in": [""], "settings": [""]})
    table.parent.mkdir(parents=True)
    pd.concat([quoted, cells, cells]).to_csv(table, index=False)
    assert shown.other_settings() == {}
    cells.iloc[0, 2] = "0123456789ab"
    cells.iloc[1, 0] = "no_longer_there"
    pd.concat([quoted, cells, cells]).to_csv(table, index=False)
    assert shown.other_settings() == {"avsl_edges": f"2 of {len(cells)}"}
