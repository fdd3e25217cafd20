"""Whoever picks a number of the papers finds it in the project's tables, unchanged, whatever ran."""

import csv

import pytest
import yaml

from lookalike.workflow.report.html import tables_html
from lookalike.workflow.report.tables.cells import baselines, read_cells, write_cells
from lookalike.workflow.report.tables.layout import for_readers
from lookalike.workflow.report.tables.render import latex, markdown
from measured_runs import planned, table_cells
from projects import ROOT

PARAMS = ROOT / "params"
PARTS = ("dataset", "setting", "embedding_dim", "backbone", "metric")


def entries():
    return {
        name: table
        for path in sorted((PARAMS / "tables").glob("*.yaml"))
        for name, table in yaml.load(path.read_text(), yaml.CSafeLoader).items()
    }


def printed():
    """Lines of the transcription by paper and table, read without the package."""
    tables = {}
    for path in sorted(PARAMS / "published" / f"{paper}.csv" for paper in ("avsl", "contextual", "diml", "sam")):
        with path.open(newline="") as stream:
            for line in csv.DictReader(stream):
                tables.setdefault((line["paper"], line["table"]), []).append(line)
    return tables


PRINTED = printed()
OF_FIGURES = {place: PRINTED.pop(place) for place in list(PRINTED) if place[1].startswith("Fig.")}
ENTRIES = {
    (table["published"]["paper"], table["published"]["table"]): name
    for name, table in entries().items()
    if "published" in table
}


def test_there_are_1785_numbers_in_23_tables():
    assert (sum(len(lines) for lines in PRINTED.values()), len(PRINTED)) == (1785, 23)


def test_the_number_that_a_text_says_of_a_figure_stands_beside_a_point_of_its_sweep():
    assert [(place, line["value"]) for place, (line,) in OF_FIGURES.items()] == [(("avsl", "Fig. 5b"), "88.4")]
    stated = yaml.load((PARAMS / "sweeps" / "ablations.yaml").read_text(), yaml.CSafeLoader)["avsl_size"]
    assert stated["published"]["128"]["table"] == {"paper": "avsl", "table": "Fig. 5b"}


@pytest.mark.parametrize("place", sorted(PRINTED), ids="-".join)
def test_every_number_of_a_printed_table_stands_in_ours_before_anything_ran(place, tmp_path):
    assert place in ENTRIES, f"no table of params/tables shows {place}"
    table = entries()[ENTRIES[place]]
    write_cells(tmp_path / "cells.csv", table_cells(table, []))
    with (tmp_path / "cells.csv").open(newline="") as stream:
        cells = [line for line in csv.DictReader(stream) if line["printed"]]
    meant = table["published"].get("read_as", {})  # where a caption is wrong
    lines = [{**line, "metric": meant.get(line["metric"], line["metric"])} for line in PRINTED[place]]
    expected = sorted((*(line[part] for part in PARTS), line["value"], line["std"]) for line in lines)
    found = sorted((*(cell[part] for part in PARTS), cell["printed"], cell["printed_std"]) for cell in cells)
    assert found == expected
    for cell in cells:
        assert float(cell["published"]) == float(cell["printed"])


@pytest.mark.parametrize("place", sorted(PRINTED), ids="-".join)
def test_every_number_of_a_printed_table_can_be_read_in_each_form(place, tmp_path):
    name = ENTRIES[place]
    write_cells(tmp_path / "cells.csv", table_cells(entries()[name], []))
    shown = for_readers(name, planned(entries()[name]), read_cells(tmp_path / "cells.csv"), "nothing")
    form = {"md": markdown(shown), "tex": latex(shown), "html": tables_html([shown], scale="nothing", legend={})}
    plain = form["html"].replace("<b>", "").replace("</b>", "")
    grids = [grid for section in shown.sections for grid in (section.measured, section.quoted) if grid]
    cells = [cell.text for grid in grids for row in grid.rows for cell in row.cells]
    for line in PRINTED[place]:
        text = line["value"] + (f" ± {line['std']}" if line["std"] else "")
        assert text in cells
        assert f" {text} " in form["md"] or f"**{text}**" in form["md"]
        assert text.replace("±", r"$\pm$") in form["tex"]
        assert f"<td>{text}</td>" in plain


@pytest.mark.parametrize("name", entries())
def test_baselines_and_notes_of_a_table_name_what_is_there(name):
    table = entries()[name]
    baselines(planned(table))
    if isinstance(table.get("notes"), dict):
        paper, number = table["published"]["paper"], table["published"]["table"]
        assert table["notes"].keys() <= {line["dataset"] for line in PRINTED[paper, number]}
