"""A table of terms says what its rows are trained with, what of it is not its own, and what it cost."""

import time

import pytest
import torch

from lookalike.workflow.plan.origin import terms_of
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.terms import RATES, TERMS, has_part, row_costs, warm_query_ms
from lookalike.workflow.plan.timings import PASSES, SHORT_S, warm_seconds, write_timing
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.training.methods import LEARNERS

OWN = {"name": "mine", "datasets": {"birds": {"layout": "folder", "folder": "birds"}}}
EMBEDDING = {"Untrained features": "as pooled", "Margin": "512", "Margin + DIML": "17 x 512", "Margin-AVSL": "3 x 512"}


def plan(**values):
    return Plan({**read("params/config.yaml", Configuration).dump(), **OWN, **values})


def notes(**values):
    return plan(**values).table("comparison").remarks


def test_all_rows_of_the_comparison_are_trained_on_equal_terms():
    for chosen in (plan(), plan(datasets={"birds": {**OWN["datasets"]["birds"], "stands_for": "sop"}})):
        sections = [chosen.deciding(row["recipe"], "birds")["train"] for row in chosen.tables["comparison"]["rows"]]
        for term in TERMS:
            assert all(section[term] == sections[0][term] for section in sections), term
    assert not [note for note in notes() if note.startswith("Differs")]
    assert notes()[0].startswith("Trained rows: adamw, weight decay 1e-4; batches of 40; 10 epochs of 50 batches;")


def test_rows_whose_layer_starts_otherwise_are_named():
    (note,) = (note for note in notes() if note.startswith("Not equal"))
    rows = [row.label for row in plan().table("comparison").rows]
    twins = [label for label in rows if "kaiming" in label]
    started = [label for label in rows if label in [*twins, "Margin-AVSL", "ProxyAnchor-AVSL", "Contextual"]]
    assert len(twins) == 3
    assert f"kaiming in {', '.join(started)}, default in all others." in note
    recipe = {"train": {"embedding": {"initialisation": "default"}}}
    assert not [note for note in notes(recipe=recipe) if note.startswith("Not equal")]


def test_a_rate_that_the_overlay_changes_is_said_under_the_table():
    recipe = {"train": {"optimiser": {"lr": {"trunk": 1e-5}}, "batch_size": 64}}
    changed = [note for note in notes(recipe=recipe) if note.startswith("Differs")]
    assert "Differs from the comparison's own terms, in all rows: optimiser.lr.trunk 1e-5 instead of 1e-4." in changed
    # A batch is cut to whole groups of classes: SAM takes five pictures of a class.
    alone = "Differs from the comparison's own terms, in Triplet, Triplet + SAM: batch_size 60 instead of 40."
    assert alone in changed
    assert len(changed) == 3


def test_a_network_or_an_embedding_size_that_the_overlay_changes_is_said():
    recipe = {
        "train": {"backbone": {"name": "tiny", "weights": None, "batch_norm": "trained"}, "embedding": {"dim": 8}}
    }
    (changed,) = (note for note in notes(recipe=recipe) if note.startswith("Differs") and "in all rows" in note)
    assert "backbone.name tiny instead of resnet50" in changed
    assert "embedding.dim 8 instead of 512" in changed


def test_a_rate_is_shown_where_the_training_has_such_parameters():
    seen = set()
    chosen = plan()
    for recipe in chosen.recipe_names:
        train = chosen.settings(recipe, "birds").train
        kind = train.method.name, str(train.loss and train.loss.name), train.projector is not None
        if train.loss is None or kind in seen:
            continue
        seen.add(kind)
        with torch.device("meta"):
            tiny = {"name": "tiny", "weights": None, "batch_norm": "trained"}
            backbone = train.backbone.model_copy(update=tiny)
            learner = LEARNERS[kind[0]](train.model_copy(update={"backbone": backbone}), classes=4)
        assert {part for part in RATES if has_part(train, part)} == learner.parts().keys(), kind
    assert len(seen) > 30


def test_only_tables_that_ask_for_it_show_terms():
    chosen = plan(tables=["comparison", "diml_1"])
    assert any("Milliseconds per query" in note for note in chosen.table("comparison").remarks)
    assert not any("Milliseconds per query" in note for note in chosen.table("diml_1").remarks)


def test_a_row_shows_its_rates_pooling_and_the_numbers_that_it_keeps():
    chosen = plan()
    runs = chosen.runs_of("comparison").to_dict("records")
    found = {run["label"]: terms_of(chosen, run, "results/mine") for run in runs}
    assert {label: found[label]["embedding"] for label in EMBEDDING} == EMBEDDING
    assert found["Untrained features"]["rates"] == "–"
    assert found["Margin"]["rates"] == "1e-4 / 1e-3 / – / – / 5e-3"
    assert found["ProxyAnchor"]["rates"] == "1e-4 / 1e-3 / – / 0.03 / –"
    assert found["Contextual"]["rates"] == "1e-4 / 1e-3 / 1e-3 / – / –"
    assert (found["Chance"]["embedding"], found["Chance"]["pooling"]) == ("64", "–")
    assert found["Contextual"]["pooling"] == "gem"
    timings = found["Margin + DIML"]["timings"]
    assert timings["train"] == "results/mine/timings/train/compared_margin-birds-seed0.tsv"  # which both rows share
    assert timings["evaluate"] == "results/mine/timings/evaluate/compared_margin_diml-birds-seed0.tsv"


@pytest.mark.parametrize(("best_epoch", "checkpoints"), [(2, 1), (1, 2)])
def test_costs_are_those_of_one_checkpoint_and_one_query(tmp_path, best_epoch, checkpoints):
    files = {}
    for stage, columns, took in (("train", "s\th:m:s", "90.5\t0:01:30"), ("evaluate", "s\tembed_s", "7.0\t4.0")):
        files[stage] = str(tmp_path / f"{stage}.tsv")
        (tmp_path / f"{stage}.tsv").write_text(f"{columns}\n{took}\n")
    found = {"best_epoch": best_epoch, "epochs": 2, "pictures": 100, "searched": 60}
    costs = row_costs(files, found)
    assert costs == {"query_ms": pytest.approx(1000 * (4.0 / 100 + 3.0 / 60) / checkpoints), "training_s": 90.5}


def test_what_nobody_has_measured_costs_nothing_known(tmp_path):
    files = {stage: str(tmp_path / stage) for stage in ("train", "evaluate")}
    assert row_costs(files, {"best_epoch": 0, "epochs": 0}) == {"query_ms": None, "training_s": None}


def test_a_warm_query_takes_what_its_evaluation_has_measured(tmp_path):
    files = {"evaluate": str(tmp_path / "timings" / "r-d-seed3.tsv")}
    assert warm_query_ms(files) is None
    write_timing(files["evaluate"], whole_s=7, represented_s=4, query_s=0.0025)
    assert warm_query_ms(files) == pytest.approx(2.5)
    assert row_costs({**files, "train": ""}, {"best_epoch": 2, "epochs": 2, "pictures": 100, "searched": 60}) == {
        "query_ms": pytest.approx(1000 * (4 / 100 + 3 / 60)),
        "training_s": None,
    }


def test_what_is_short_is_done_again_and_what_is_not_once():
    for takes, repeated, times in ((0.0, True, PASSES), (SHORT_S, True, 1), (0.0, False, 1)):
        done = []
        found, seconds = warm_seconds(
            lambda takes=takes, done=done: done.append(time.sleep(takes)) or "found", repeated=repeated
        )
        assert (found, len(done)) == ("found", times)
        assert seconds >= takes
