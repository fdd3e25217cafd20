"""What the page shows is checked before any job, and its folder is whole, small, and holds what there is."""

import json
import re
from base64 import b64decode
from io import BytesIO
from itertools import pairwise
from types import SimpleNamespace as Names

import pandas as pd
import pytest
from PIL import Image

from lookalike.base.files import read_json, write_json
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.page import Shown, assigned, called, colours, page, page_rows, read_page, view_key
from lookalike.workflow.report.tables.cells import write_cells
from lookalike.workflow.settings.layers import settings_digest
from lookalike.workflow.stages.thumbnails import thumbnails
from measured_runs import TABLE, run, table_cells
from projects import spoil
from shown_pages import DRAWN, ROWS, write_page

MINI = {"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False}
BIRDS = {"layout": "folder", "folder": "x"}
LOCATED = {"side": 4, "pooling": "resample", "global_vector": "embedding"}
MATCHED = {"marginal": "cross_correlation", "reg": 0.05, "tolerance": 1e-6, "solver": "sinkhorn"}
BY_STRUCTURE = {"name": "structure", **LOCATED, **MATCHED}


def shown_of(**values):
    return Shown(Evidence(Inputs(Plan({**MINI, **values})), lambda file: True))


def test_mini_shows_all_methods_and_the_untrained_network_but_neither_chance_nor_maps():
    shown = shown_of(seeds=[3, 4])
    rows = page_rows(shown.plan, shown.settings)
    labels = [row.label for row in shown.plan.table("methods").rows]
    left_out = ("Chance", "Whitened", "RCA")
    assert [row.label for row in rows] == [label for label in labels if not label.startswith(left_out)]
    assert {row.dataset for row in rows} == {"figurines_birds"}
    assert {row.seed for row in rows if not row.recipe.startswith("untrained")} == {3}


def test_own_pictures_show_the_comparison_and_may_choose_otherwise():
    overlay = {"name": "mine", "datasets": {"street": BIRDS}}
    rows = page_rows(shown_of(**overlay).plan, read_page(Plan({**MINI, **overlay})))
    assert {row.dataset for row in rows} == {"street"}
    assert len(rows) == 16
    plan = Plan({**MINI, **overlay, "page": {"queries": 5, "tables": []}})
    settings = read_page(plan)
    assert (settings.queries, settings.matches, page_rows(plan, settings)) == (5, 8, [])
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page")).parent


def value_of(path):
    return json.loads(path.read_text().partition(" = ")[2].rstrip(";\n"))


def test_every_link_and_every_file_of_a_page_is_there_and_nothing_comes_from_elsewhere(folder):
    pages = sorted(path.name for path in folder.glob("*.html"))
    assert pages == ["claims.html", "figures.html", "index.html"]
    for name in pages:
        text = (folder / name).read_text()
        assert "://" not in text
        for address in re.findall(r'(?:src|href)="([^"#]+)"', text):
            assert address.startswith("data:") or (folder / address).is_file(), address
        assert re.findall(r'href="(\w+\.html)"', text) == ["index.html", "figures.html", "claims.html"]
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 500_000


def test_each_query_has_a_file_with_what_all_rows_found_and_each_picture_is_there(folder):
    shown = json.loads((folder / "data" / "index.js").read_text().partition("SHOWN = ")[2].rstrip(";\n"))
    dataset = shown["datasets"]["birds"]
    assert [row["label"] for row in dataset["rows"]] == list(ROWS)
    assert len(dataset["queries"]) == DRAWN["queries"]
    drawn = value_of(folder / "data" / "birds" / "pictures.js")
    for number, query in enumerate(dataset["queries"]):
        rows = value_of(folder / "data" / "birds" / f"{number}.js")
        assert [len(matches) for matches in rows] == [DRAWN["matches"]] * len(ROWS)
        for row, matches in zip(dataset["rows"], rows, strict=True):
            for name in [query["picture"], *(match["picture"] for match in matches)]:
                assert drawn["pictures"][name].startswith("data:image/jpeg;base64,")
                assert len(drawn["parts"][row["view"]][name]) == 4
    assert len(shown["colours"]) == 32


def test_figures_come_with_their_pictures_and_lost_ones_leave_no_hole(folder):
    text = (folder / "figures.html").read_text()
    assert '<img src="figures/one.png" alt="a curve" />' in text
    assert "two.png" not in text
    assert "<em>rises</em>" in text
    assert '<th scope="col"><button>claim</button></th>' in (folder / "claims.html").read_text()


def test_the_methods_say_how_good_they_are_and_a_dash_what_was_not_measured(folder):
    text = (folder / "index.html").read_text()
    lines = [line for line in text.splitlines() if line.startswith('<tr><th scope="row">')]
    assert len(lines) == len(ROWS)
    assert all("<td>50.0</td>" in line and line.count("&ndash;") == 2 for line in lines)


NO_PAIRS = {"pairs": [], "metrics": [], "datasets": [], "pictures": []}
NO_OTHERS = {"tables": {}, "cells": {}, "other_settings": {}, "documents": {}}


def test_a_page_without_pairs_and_without_documents_says_so(tmp_path):
    page([], **NO_PAIRS, **NO_OTHERS, scale="none", folder=str(tmp_path / "page"))
    text = (tmp_path / "page" / "index.html").read_text()
    assert "No pairs are shown at this scale" in text
    assert '<script src="data' not in text


def test_a_table_of_older_settings_says_so_and_a_document_which_target_wrote_it(folder, tmp_path):
    write_cells(tmp_path / "cells.csv", table_cells(TABLE, [run(row, 0, 0.5) for row in (0, 1)]))
    given = {**NO_PAIRS, "documents": {}, "scale": "none", "folder": str(tmp_path)}
    shown = {"tables": {"diml_1": TABLE}, "cells": {"diml_1": str(tmp_path / "cells.csv")}}
    older = "Older settings: 1 of 2 measured rows were made by settings that are not today's."
    for remarks, count in (({}, 0), ({"diml_1": "1 of 2"}, 1)):
        page([], **given, **shown, other_settings=remarks)
        assert (tmp_path / "tables.html").read_text().count(older.replace("'", "&#39;")) == count
    assert "As <code>snakemake --cores all claims</code> last left it" in (folder / "claims.html").read_text()


@pytest.mark.parametrize("content", [b"x", b"", b"row,label\n1,2,3\n", b"\xff\xfe,"])
def test_a_table_or_document_that_cannot_be_read_is_told_and_the_others_are_shown(params, tmp_path, caplog, content):
    write_cells(tmp_path / "cells.csv", table_cells(TABLE, [run(row, 0, 0.5) for row in (0, 1)]))
    (tmp_path / "broken.csv").write_bytes(content)
    (tmp_path / "claims.md").write_text("# Claims\n")
    (tmp_path / "figures.md").write_bytes(b"\xff")
    cells = {"diml_2": str(tmp_path / "broken.csv"), "diml_1": str(tmp_path / "cells.csv")}
    documents = {name: str(tmp_path / f"{name}.md") for name in ("figures", "claims")}
    given = {**NO_PAIRS, "tables": dict.fromkeys(cells, TABLE), "cells": cells, "documents": documents}
    page([], **given, other_settings={}, scale="none", folder=str(tmp_path / "page"))
    assert (tmp_path / "page" / "tables.html").read_text().count("<h2 id=") == 1
    assert (tmp_path / "page" / "claims.html").is_file() and not (tmp_path / "page" / "figures.html").exists()
    table, document = (record.getMessage() for record in caplog.records)
    assert table.startswith(f"{tmp_path}/broken.csv is left out of the page, it cannot be read (")
    assert table.endswith("remove it, and the target `tables` makes it again")
    assert document.startswith(f"{tmp_path}/figures.md is left out of the page") and "`figures` makes it" in document
    found = params.parent / "results" / "mini" / "tables" / "avsl_1.csv"
    found.parent.mkdir(parents=True)
    found.write_bytes(content)
    assert shown_of().other_settings() == {}


def test_rows_with_other_queries_are_refused(folder, tmp_path):
    source = folder.parent
    other = read_json(source / "AVSL" / "pairs.json")
    other["queries"] = other["queries"][1:]
    write_json(tmp_path / "pairs.json", other)
    row = {"recipe": "it", "dataset": "birds", "title": "Birds", "seed": 0}
    timings = dict.fromkeys(("train", "evaluate"), "nowhere")
    with pytest.raises(ValueError, match="it on birds has other queries than the rows before it; remove its pairs"):
        page(
            [row | {"label": label, "timings": timings} for label in ("one", "other")],
            pairs=[str(source / "Margin" / "pairs.json"), str(tmp_path / "pairs.json")],
            metrics=[str(source / "metrics.json")] * 2,
            datasets=["birds"],
            pictures=[str(source / "pictures.json")],
            **NO_OTHERS,
            scale="none",
            folder=str(tmp_path / "page"),
        )


def test_a_picture_stands_once_with_the_part_that_each_view_sees(folder, tmp_path):
    source = folder.parent
    other = read_json(source / "AVSL" / "pairs.json") | {"view": {"resize_px": 40, "crop_px": 20}}
    write_json(tmp_path / "pairs.json", other)
    files = [str(source / "Margin" / "pairs.json"), str(tmp_path / "pairs.json")]
    thumbnails(pairs=files, root=str(source / "birds"), side=64, pictures=str(tmp_path / "pictures.json"))
    found = read_json(tmp_path / "pictures.json")
    first = other["queries"][0]["picture"]
    width, height = Image.open(source / "birds" / first).size
    shown = Image.open(BytesIO(b64decode(found["pictures"][first].partition(",")[2])))
    assert shown.size == (64 * width // max(width, height), 64 * height // max(width, height))
    parts = {view: of_view[first] for view, of_view in found["parts"].items()}
    assert list(parts) == ["[28, 24]", "[40, 20]"]
    for share, part in zip((24 / 28, 20 / 40), parts.values(), strict=True):
        shorter = min(width, height)
        assert part[2:] == pytest.approx([share * shorter / width, share * shorter / height], abs=0.02)
        assert part[:2] == pytest.approx([(1 - part[2]) / 2, (1 - part[3]) / 2], abs=0.02)


def test_a_value_of_javascript_is_one_line_and_says_what_it_was_given():
    value = {"b": [1, None, True], "a": "line\nbreak \u2028 é"}
    line = assigned("const IT", value)
    assert line.startswith("const IT = ")
    assert line.isascii()
    assert line.count("\n") == 1
    assert json.loads(line.removeprefix("const IT = ").rstrip(";\n")) == value


def test_colours_grow_lighter_in_even_steps():
    light = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in colours()]
    assert light == sorted(light)
    assert max(after - before for before, after in pairwise(light)) < 12


def test_a_picture_is_called_as_its_file_and_a_view_by_its_sizes():
    assert called("a/b.c/Northern_Finch_01.jpg") == "Northern Finch 01"
    assert view_key({"resize_px": 28, "crop_px": 24}) == "[28, 24]"
    assert view_key({"crop_px": [96, 32]}) == "[null, [96, 32]]"
