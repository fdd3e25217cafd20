"""Every setting of a row that a paper ran itself is the one of `params/published/settings.csv`.

The file is written from notes on the papers and their released code. A line holds for the tables, rows and data sets
that it names (`*` is a wildcard, `;` parts several); of several lines on a key the last one holds. `absent` takes a key
back that an earlier line asks for. A value that stays empty is one that nothing reads, as its source then says.
"""

import csv
from fnmatch import fnmatchcase

import pytest
import yaml

from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.published import published_numbers
from lookalike.workflow.settings.files import _Loader
from projects import ROOT

FILE = ROOT / "params" / "published" / "settings.csv"
COLUMNS = ["paper", "table", "row", "dataset", "key", "value", "source"]
PAPERS = ("avsl", "diml", "contextual", "sam")
ABSENT, UNREAD, OPEN = "absent", "unread: ", "open: "


def read_lines():
    with FILE.open(newline="") as stream:
        reader = csv.DictReader(stream)
        assert reader.fieldnames == COLUMNS
        return [line | {"number": number} for number, line in enumerate(reader, start=2)]


LINES = read_lines()


def value_of(line):
    return yaml.load(line["value"], _Loader)


def leaves(settings, place=""):
    """Every value of a recipe by its dotted key."""
    found = {}
    for key, value in settings.items():
        found |= leaves(value, f"{place}{key}.") if isinstance(value, dict) else {f"{place}{key}": value}
    return found


def holds_for(line, cell):
    return all(
        any(fnmatchcase(cell[part], pattern) for pattern in line[part].split(";"))
        for part in ("paper", "table", "row", "dataset")
    )


def cells(plan):
    """Rows that a paper ran itself, per data set, with all settings as they resolve."""
    for name in plan.table_names:
        entry = plan.table(name)
        for run in plan.runs_of(name).itertuples() if entry.published else ():
            if entry.rows[run.row].published:
                place = {"paper": entry.published.paper, "table": entry.published.table}
                yield (
                    place
                    | {"row": run.label, "dataset": run.published}
                    | {"settings": leaves(plan.deciding(run.recipe, run.dataset))}
                )


def differences(cell):
    """What does not agree between a row and the lines that hold for it, and the lines that decided."""
    said = {line["key"]: line for line in LINES if holds_for(line, cell)}
    found, settings = [], cell["settings"]
    place = " ".join(cell[part] for part in ("paper", "table", "row", "dataset"))
    for key in settings.keys() - said.keys():
        found.append(f"{place}: {key} = {settings[key]!r} stands in no line")
    for key, line in said.items():
        if line["value"] == ABSENT:
            if key in settings:
                found.append(f"{place}: {key} = {settings[key]!r}, line {line['number']} takes it back")
        elif line["source"].startswith(UNREAD):
            continue
        elif key not in settings:
            found.append(f"{place}: no {key}, which line {line['number']} asks for")
        elif settings[key] != value_of(line):
            found.append(f"{place}: {key} = {settings[key]!r}, line {line['number']} has {line['value']}")
    return found, {line["number"] for line in said.values()}


@pytest.fixture(scope="module")
def paper():
    return Plan({"scale": "paper", "seeds": [0], "archives": "data/archives", "tracking": False})


@pytest.fixture(scope="module")
def compared(paper):
    return [(cell, *differences(cell)) for cell in cells(paper)]


@pytest.mark.parametrize("name", PAPERS)
def test_every_setting_of_a_row_that_a_paper_ran_is_the_published_one(compared, name):
    of_paper = [found for cell, found, _ in compared if cell["paper"] == name]
    assert len(of_paper) == {"avsl": 24, "diml": 168, "contextual": 251, "sam": 13}[name]
    assert [line for found in of_paper for line in found] == []


def test_every_line_decides_something(compared):
    deciding = set().union(*(numbers for _, _, numbers in compared))
    assert [line["number"] for line in LINES if line["number"] not in deciding] == []


def test_lines_have_a_source_and_only_what_nothing_reads_has_no_value():
    for line in LINES:
        assert line["source"].removeprefix(OPEN).removeprefix(UNREAD), line
        assert (line["value"] == "") == line["source"].startswith(UNREAD), line
    assert "settings" not in {line["paper"] for line in LINES}
    assert {line["paper"] for line in LINES} == {"*", *PAPERS}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train.optimiser.lr.trunk", 2e-5, "train.optimiser.lr.trunk = 2e-05, line "),
        ("train.schedule.step_epochs", None, "train.schedule.step_epochs = None, line "),
        ("train.loss.beta", 3.0, "train.loss.beta = 3.0 stands in no line"),
        ("train.method.name", ABSENT, "no train.method.name, which line "),
    ],
)
def test_a_setting_that_moves_without_its_line_is_found(paper, key, value, message):
    cell = next(each for each in cells(paper) if (each["table"], each["row"], each["dataset"]) == ("T3", "PA", "cars"))
    assert differences(cell)[0] == []
    settings = {**cell["settings"], key: value}
    if value == ABSENT:
        del settings[key]
    (found,) = differences({**cell, "settings": settings})[0]
    assert message in found


def test_the_file_is_no_paper_with_printed_numbers():
    with pytest.raises(ValueError, match=r"no published numbers of 'settings' .* known: avsl, contextual, diml, sam$"):
        published_numbers("settings")
