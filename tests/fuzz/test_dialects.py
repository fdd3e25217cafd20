"""What is written here is read here as it was, for each name that a disk takes; or it is refused in a line."""

import itertools
import os
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from lookalike.base.files import packed_names, read_json, unpacked_names, write_json
from lookalike.base.text import in_shell
from lookalike.workflow.data.manifest import check_listable, manifest_hash, read_manifest, write_manifest
from lookalike.workflow.report.html import as_html, tables_html
from lookalike.workflow.report.tables.cells import COLUMNS, TEXT, read_cells, write_cells
from lookalike.workflow.report.tables.layout import Cell, Grid, ReaderTable, Row, Section
from lookalike.workflow.report.tables.render import markdown
from lookalike.workflow.settings.files import read_yaml, yaml_text, yaml_value
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.tables import Row as StatedRow
from spoiled import examples, read_or_refused

ODD = [*"\r\n\t\v\f\b\x07\x1b\x1c\x1f\x7f\x85\xa0\u2028\u2029\u200b\ufeff\ufffe", "\udcff", "\U0001f98a", "\u0301"]
SIGNS = [*ODD, *" '\"`,;:|\\&<>#%*_~![](){}$?=-+@^", *"019eExXoNaAyn."]
NUMBERS = ["1e5", "7e2", "1E5", "1.e5", "010", "1_000", "12:30", "NA", "nan", "2024-01-01"]
OTHERS = ["yes", "no", "null", "~", "<<", "=", "- a", "? a", "a: b", "a #b", "%TAG", "!x", "&a", "*a", "---", "..."]
WORDS = [*NUMBERS, *OTHERS, "{a}", "[a]", " a", "a ", "-a", "http:a", "__x__", "[a](b)"]


def on_disk(name):
    """Whether a file may be called so on Linux."""
    return 0 < len(os.fsencode(name)) < 256 and name not in (".", "..") and not {"/", "\0"} & {*name}


BYTES = st.binary(min_size=1, max_size=8).map(os.fsdecode)
NAMES = (st.sampled_from(WORDS) | st.text(st.sampled_from(SIGNS), min_size=1, max_size=6) | BYTES).filter(on_disk)
READABLE = NAMES.filter(lambda name: name.encode(errors="ignore").decode() == name)  # else refused
numbers = itertools.count()


@examples(0.1)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_an_overlay_names_classes_as_they_are_called(tmp_path_factory, names):
    tree = {"title": names[0], "datasets": {"pictures": {"classes": {"train": names}}}, names[0]: {"a": 1e-5}}
    text = read_or_refused(lambda: yaml_text(tree))
    assume(text is not None)
    file = tmp_path_factory.getbasetemp() / f"{next(numbers)}.yaml"  # a name for each, as files are read once
    file.write_text(text, encoding="utf-8")
    assert read_yaml(file) == tree
    assert yaml.safe_load(text) == tree | {names[0]: {"a": 1e-5}}  # as Snakemake reads it
    file.unlink()


@examples(0.05)
@given(st.lists(NAMES, min_size=1, max_size=3) | NAMES)
def test_a_value_is_shown_in_one_line_as_yaml_reads_it(value):
    text = read_or_refused(lambda: yaml_value(value))
    assume(text is not None)
    assert len(text.splitlines()) == 1
    assert yaml.safe_load(f"key: {text}  # params/x.yaml, a key") == {"key": value}


@examples(0.1)
@given(st.lists(READABLE, min_size=1, max_size=4, unique=True))
def test_a_manifest_lists_pictures_as_they_are_called(tmp_path_factory, names):
    rows = pd.DataFrame({"path": [f"a/{name}" for name in sorted(names)], "label": range(len(names)), "role": "train"})
    assume(read_or_refused(lambda: check_listable(rows["path"]) is None))
    file = tmp_path_factory.getbasetemp() / "manifest.csv"
    digest = write_manifest(rows, file)
    read = read_manifest(file)
    assert read.to_dict("list") == rows.to_dict("list")
    assert manifest_hash(read) == digest


def label_of(name):
    """A row's label, ``None`` for what is refused as one."""
    row = read_or_refused(lambda: checked(StatedRow, {"recipe": "margin", "label": name}, "tables"))
    return row and row.label


@examples(0.05)
@given(st.lists(READABLE, min_size=1, max_size=3))
def test_the_cells_of_a_table_hold_labels_as_they_are_stated(tmp_path_factory, names):
    labels = [label_of(name) for name in names]
    assume(None not in labels)
    columns = {name: [""] * len(names) if name in TEXT else [None] * len(names) for name in COLUMNS}
    file = tmp_path_factory.getbasetemp() / "cells.csv"
    write_cells(file, pd.DataFrame({**columns, "label": labels}))
    assert read_cells(file)["label"].tolist() == labels


@examples(0.05)
@given(st.lists(NAMES, min_size=1, max_size=3))
def test_json_and_tensors_hold_names_as_they_are(tmp_path_factory, names):
    file = tmp_path_factory.getbasetemp() / "names.json"
    write_json(file, {"names": names, names[0]: 1})
    assert read_json(file) == {"names": names, names[0]: 1}
    assert unpacked_names(packed_names(names)) == names


class Cells(HTMLParser):
    """Texts of the cells of a page's tables, and all of its text."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.text, self.inside = [], "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside &= tag not in ("td", "th")

    def handle_data(self, data):
        self.text += data
        if self.inside:
            self.cells[-1] += data


def table_of(names, remark=""):
    grid = Grid(("row", "R@1"), tuple(Row((Cell(name), Cell("1.0"))) for name in names))
    return ReaderTable("t", "title", [], [Section("d", "heading", "", (remark,), measured=grid)])


@examples(0.1)
@given(st.lists(READABLE.filter(label_of), min_size=1, max_size=3))
def test_a_table_in_markdown_shows_what_its_cells_say(names):
    cells = Cells(as_html(markdown(table_of(names)), "t")).cells
    assert cells == ["row", "R@1", *itertools.chain.from_iterable((name, "1.0") for name in names)]


@examples(0.1)
@given(READABLE, READABLE)
def test_a_page_shows_names_and_lines_as_they_are(name, other):
    line = f"lookalike recommend {in_shell(Path(name))}"
    page = Cells(tables_html([table_of([other], line)], scale="s", legend={}))
    assert other in page.cells
    assert line in page.text


@pytest.mark.parametrize("kind", [str, Path])
def test_a_line_for_a_shell_names_each_file_as_it_is(kind, tmp_path):
    found = []

    @examples(0.2)
    @given(NAMES)
    def collect(name):
        found.append(name)
        assert in_shell(kind(name)).isprintable()
        assert "`" not in in_shell(kind(name))

    collect()
    script = "printf '%s\\0' " + " ".join(in_shell(kind(name)) for name in found)
    told = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.split(b"\0")[:-1]
    if kind is str:
        assert told == list(map(os.fsencode, found))
    assert [Path(os.fsdecode(word)) for word in told] == [Path(name) for name in found]
    if kind is Path:
        assert not any(word.startswith(b"-") for word in told)
