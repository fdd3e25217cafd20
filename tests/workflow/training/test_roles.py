"""Stages read pictures, labels, coarser labels and cameras of one role; data sets name the levels that are scored."""

import csv

import pytest
import torch

from lookalike.base.paths import project_root
from lookalike.workflow.data import load_specification
from lookalike.workflow.data.hierarchy import hierarchy_path, read_hierarchy
from lookalike.workflow.training.roles import pictures_of_super, read_role, split_facts
from lookalike.workflow.training.roles import test_roles as searched_roles  # pytest would take its name for a test

ROWS = """path,label,role,coarse_family,camera,note
a.png,3,query,1,2,x
b.png,3,gallery,1,5,x
c.png,4,gallery,0,2,x
"""


def written(folder, rows=ROWS):
    path = folder / "manifest.csv"
    path.write_text(rows)
    return path


def test_a_role_has_its_rows_with_coarser_labels_and_cameras(tmp_path):
    rows = read_role(written(tmp_path), tmp_path, "gallery")
    assert rows.paths == [tmp_path / "b.png", tmp_path / "c.png"]
    assert torch.equal(rows.labels, torch.tensor([3, 4]))
    assert rows.coarse.keys() == {"family"}
    assert torch.equal(rows.coarse["family"], torch.tensor([1, 0]))
    assert torch.equal(rows.cameras, torch.tensor([5, 2]))


def test_pictures_of_a_coarse_class_are_those_of_all_roles(tmp_path):
    rows = "path,label,role,coarse_super\na.png,1,train,3\nb.png,2,train,0\nc.png,3,test,3\n"
    found = pictures_of_super(written(tmp_path, rows), tmp_path, 3)
    assert found == [tmp_path / "a.png", tmp_path / "c.png"]
    with pytest.raises(ValueError, match=r"no pictures of coarse_super 5 \(strangers_super\); it has 0, 3$"):
        pictures_of_super(tmp_path / "manifest.csv", tmp_path, 5)
    with pytest.raises(ValueError, match=r"no pictures of coarse_super 3 .*; it has none$"):
        pictures_of_super(written(tmp_path), tmp_path, 3)


def test_without_a_column_there_are_no_cameras(tmp_path):
    rows = read_role(written(tmp_path, "path,label,role\na.png,3,test\n"), tmp_path, "test")
    assert rows.cameras is None
    assert rows.coarse == {}
    assert rows.chosen(torch.tensor([0, 0])).cameras is None


def test_chosen_rows_keep_what_is_known_of_them(tmp_path):
    rows = read_role(written(tmp_path), tmp_path, "gallery").chosen(torch.tensor([1]))
    assert rows.paths == [tmp_path / "c.png"]
    assert (rows.labels.item(), rows.coarse["family"].item(), rows.cameras.item()) == (4, 0, 2)


def test_queries_search_their_gallery_and_test_pictures_each_other(tmp_path):
    assert searched_roles(written(tmp_path)) == ("query", "gallery")
    assert searched_roles(written(tmp_path, "path,label,role\na.png,3,test\nb.png,1,train\n")) == ("test",)


def test_an_absent_role_is_refused_with_those_that_are_there(tmp_path):
    with pytest.raises(ValueError, match="has no role 'train'; it has gallery, query"):
        read_role(written(tmp_path), tmp_path, "train")


def test_every_level_that_contextual_table_9_prints_is_named_by_its_data_set():
    with (project_root() / "params" / "published" / "contextual.csv").open() as stream:
        printed = {(row["dataset"], row["metric"]) for row in csv.DictReader(stream) if row["table"] == "T9"}
    printed = {(dataset, metric) for dataset, metric in printed if metric.startswith("mAP_")}
    named = {
        (dataset, f"mAP_{name}") for dataset in ("cub", "cars", "sop") for name in load_specification(dataset).levels
    }
    assert printed == named
    assert len(printed) == 4


@pytest.mark.parametrize("dataset", ["cub", "cars"])
def test_levels_are_columns_of_the_data_sets_hierarchy(dataset, tmp_path):
    specification = load_specification(dataset)
    hierarchy = read_hierarchy(hierarchy_path(specification, tmp_path))
    assert set(specification.levels.values()) <= set(hierarchy.columns)


def test_a_split_tells_how_many_pictures_it_left_out_and_how_many_of_these_are_copies(tmp_path):
    head = "label,path,reason,role\n1,a,,train\n1,b,copy of a,left_out\n"
    (tmp_path / "few.csv").write_text(f"{head}2,c,same bytes as d,left_out\n")
    assert split_facts(tmp_path / "few.csv") == {"left_out": 2, "copies": 1}
    (tmp_path / "none.csv").write_text("label,path,role\n1,a,train\n")
    assert split_facts(tmp_path / "none.csv") == {}
