"""The page's folder is whole, small, and holds what there is at the time."""

import json
import re

import pytest

from lookalike.files import read_json, write_json
from lookalike.stages.page import page
from lookalike.stages.thumbnails import thumbnails
from lookalike.tables.cells import table_cells, write_cells
from measured_runs import TABLE, run
from shown_pages import DRAWN, ROWS, write_page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page")).parent


def assigned(path):
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
    pictures = assigned(folder / "data" / "birds" / "pictures.js")
    for number, query in enumerate(dataset["queries"]):
        rows = assigned(folder / "data" / "birds" / f"{number}.js")
        assert [len(matches) for matches in rows] == [DRAWN["matches"]] * len(ROWS)
        for row, matches in zip(dataset["rows"], rows, strict=True):
            for name in [query["picture"], *(match["picture"] for match in matches)]:
                assert pictures[row["view"]][name].startswith("data:image/jpeg;base64,")
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


def test_a_page_without_pairs_and_without_documents_says_so(tmp_path):
    nothing = {
        "pairs": [],
        "metrics": [],
        "pictures": {},
        "tables": {},
        "cells": {},
        "other_settings": {},
        "documents": {},
    }
    page([], **nothing, scale="none", folder=str(tmp_path / "page"))
    text = (tmp_path / "page" / "index.html").read_text()
    assert "No pairs are shown at this scale" in text
    assert '<script src="data' not in text


def test_a_table_of_older_settings_says_so_and_a_document_which_target_wrote_it(folder, tmp_path):
    write_cells(tmp_path / "cells.csv", table_cells(TABLE, [run(row, 0, 0.5) for row in (0, 1)]))
    given = {"pairs": [], "metrics": [], "pictures": {}, "documents": {}, "scale": "none", "folder": str(tmp_path)}
    shown = {"tables": {"diml_1": TABLE}, "cells": {"diml_1": str(tmp_path / "cells.csv")}}
    older = "Older settings: 1 of 2 measured rows were made by settings that are not today's."
    for remarks, count in (({}, 0), ({"diml_1": "1 of 2"}, 1)):
        page([], **given, **shown, other_settings=remarks)
        assert (tmp_path / "tables.html").read_text().count(older.replace("'", "&#39;")) == count
    assert "As <code>snakemake --cores all claims</code> last left it" in (folder / "claims.html").read_text()


def test_rows_with_other_queries_are_refused(folder, tmp_path):
    source = folder.parent
    other = read_json(source / "AVSL" / "pairs.json")
    other["queries"] = other["queries"][1:]
    write_json(tmp_path / "pairs.json", other)
    row = {"recipe": "it", "dataset": "birds", "title": "Birds", "seed": 0}
    timings = dict.fromkeys(("train", "embed", "evaluate"), "nowhere")
    with pytest.raises(ValueError, match="it on birds has other queries than the rows before it; remove its pairs"):
        page(
            [row | {"label": label, "timings": timings} for label in ("one", "other")],
            pairs=[str(source / "Margin" / "pairs.json"), str(tmp_path / "pairs.json")],
            metrics=[str(source / "metrics.json")] * 2,
            pictures={"birds": str(source / "pictures.json")},
            tables={},
            cells={},
            other_settings={},
            documents={},
            scale="none",
            folder=str(tmp_path / "page"),
        )


def test_pictures_of_other_views_are_kept_apart(folder, tmp_path):
    source = folder.parent
    other = read_json(source / "AVSL" / "pairs.json") | {"view": {"resize_px": 40, "crop_px": 20}}
    write_json(tmp_path / "pairs.json", other)
    files = [str(source / "Margin" / "pairs.json"), str(tmp_path / "pairs.json")]
    thumbnails(pairs=files, root=str(source / "birds"), side=64, pictures=str(tmp_path / "pictures.json"))
    found = read_json(tmp_path / "pictures.json")
    assert list(found) == ["[28, 24]", "[40, 20]"]
    first = other["queries"][0]["picture"]
    assert found["[28, 24]"][first] != found["[40, 20]"][first]
