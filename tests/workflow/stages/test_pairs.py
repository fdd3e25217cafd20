"""What a page shows of a run: the same queries for all runs, what each ranks first, and why."""

import pytest
import torch

from lookalike.base.files import read_json, read_tensors, unpacked_names
from lookalike.workflow.stages.pairs import drawn_queries
from shown_pages import DRAWN, ROWS, draw_birds, write_pairs


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    manifest = draw_birds(folder)
    paths = {label: write_pairs(folder, manifest, folder / "birds", label) for label in ROWS}
    return folder, {label: read_json(path) for label, path in paths.items()}


def test_all_rows_show_the_same_queries_from_different_classes(birds):
    queries = [[query["picture"] for query in found["queries"]] for found in birds[1].values()]
    assert all(each == queries[0] for each in queries)
    assert len(queries[0]) == DRAWN["queries"]
    assert len({query["label"] for query in birds[1]["Margin"]["queries"]}) == DRAWN["queries"]


def test_matches_are_the_nearest_without_the_query_and_marked_by_their_class(birds):
    folder, found = birds
    tensors, _ = read_tensors(folder / "Margin" / "embeddings")
    names = unpacked_names(tensors["names/test"])
    units = torch.nn.functional.normalize(tensors["last/test/embedding"].double(), dim=1)
    similarity = (units @ units.T).fill_diagonal_(-2)
    for query in found["Margin"]["queries"]:
        place = names.index(query["picture"])
        values, first = similarity[place].topk(DRAWN["matches"])
        assert [match["picture"] for match in query["matches"]] == [names[each] for each in first.tolist()]
        assert [match["score"] for match in query["matches"]] == pytest.approx(values.tolist(), abs=2e-4)
        for match, each in zip(query["matches"], first.tolist(), strict=True):
            assert match["right"] == bool(tensors["labels/test"][each] == tensors["labels/test"][place])


@pytest.mark.parametrize(
    ("label", "method", "evidence"),
    [
        ("Margin", "activation", {"places"}),
        ("Margin + DIML", "structure", {"places"}),
        ("AVSL", "graph", {"nodes"}),
        ("SAM", "attention", set()),
    ],
)
def test_each_row_is_explained_by_what_ranks_it(birds, label, method, evidence):
    found = birds[1][label]
    assert found["method"] == method
    for query in found["queries"]:
        assert len(query["matches"]) == DRAWN["matches"]
        for match in query["matches"]:
            assert {"places", "nodes"} & match.keys() == evidence
            assert len(match["maps"]) == 2
            if label == "Margin + DIML":
                assert match["places"]["grid"] == [3, 3]
            else:
                assert match["score"] == pytest.approx(match["value"], abs=2e-3)


def test_structural_matches_stand_in_the_order_of_the_sum_that_ranks_them(birds):
    folder, found = birds
    tensors, _ = read_tensors(folder / "Margin + DIML" / "embeddings")
    names, units = unpacked_names(tensors["names/test"]), tensors["last/test/embedding"].double()
    for query in found["Margin + DIML"]["queries"]:
        scores = [match["score"] for match in query["matches"]]
        assert scores == sorted(scores, reverse=True)
        for match in query["matches"]:
            cosine = float(units[names.index(query["picture"])] @ units[names.index(match["picture"])])
            assert match["score"] == pytest.approx(cosine + match["value"], abs=2e-3)


def test_queries_do_not_depend_on_the_order_of_pictures():
    names, labels = [f"{number:02}" for number in range(20)], torch.arange(20) % 4
    chosen = [names[place] for place in drawn_queries(names, labels, 6, 3)]
    back = drawn_queries(names[::-1], labels.flip(0), 6, 3)
    assert [names[::-1][place] for place in back] == chosen
    assert len({int(labels[int(name)]) for name in chosen}) == 4
    assert drawn_queries(names, labels, 6, 4) != drawn_queries(names, labels, 6, 3)
    assert len(drawn_queries(names, labels, 50, 0)) == 20
