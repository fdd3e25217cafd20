"""Both checkpoints get metrics, of test pictures and where they are kept of training pictures."""

import json

import pandas as pd
import pytest
import torch

from lookalike.base.files import write_tensors
from lookalike.metrics.clustering import nmi
from lookalike.metrics.retrieval import retrieval_metrics
from lookalike.metrics.search import over_classes
from lookalike.workflow.plan.timings import seconds
from lookalike.workflow.settings.recipes import Embed, Evaluate
from lookalike.workflow.stages.evaluate import evaluate
from trainings import learner, section, write_dataset

LABELS = {"test": [0, 0, 1, 1, 1], "train": [4, 5, 4, 5], "query": [0, 1, 2], "gallery": [1, 0, 0, 2]}
SIDES = ("query", "gallery")
EMBEDDED = Embed.model_validate({"batch_size": 4, "representation": {"name": "own"}, "training_pictures": False})
SETTINGS = {"count_query_in_r": False, "nmi": False, "scoring": {"name": "cosine"}}


def rows(seed, count):
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(seed))


def evaluated(folder, roles, *, best_epoch, settings=SETTINGS, recall_at=(1, 2), levels=None, also=None, more=None):
    """Metrics of drawn embeddings, and the embeddings with what else is said of the pictures."""
    kept = ("last",) if best_epoch == 2 else ("last", "best")
    states = {f"last/{name}": tensor for name, tensor in learner("embedder").state_dict().items()}
    states |= {f"best/{name}": tensor for name, tensor in learner("embedder").state_dict().items()}
    about = {"best_epoch": best_epoch, "epochs": 2, "seed": 0, "code": "c", "data": "d"}
    write_tensors(folder / "model", states, {"settings": section("embedder").dump(), **about})
    tensors = {f"labels/{role}": torch.tensor(LABELS[role]) for role in roles}
    tensors |= {name: torch.tensor(numbers) for name, numbers in (also or {}).items()}
    tensors |= {
        f"{kind}/{role}/embedding": rows(10 * place + number, len(LABELS[role]))
        for place, kind in enumerate(kept)
        for number, role in enumerate(roles)
    }
    files = {name: str(folder / name) for name in ("model", "metrics", "classes")}
    data = {"manifest": "split.csv", "root": "", "levels": levels, **files}
    with pytest.MonkeyPatch.context() as patch:
        drawn = {**tensors, **(more or {})}, about, 0.0
        patch.setattr("lookalike.workflow.stages.evaluate.represented", lambda *asked, **more: drawn)
        evaluate(Evaluate(**settings), embedded=EMBEDDED, recall_at=recall_at, **data)
    return json.loads((folder / "metrics").read_text()), tensors


def expected(tensors, kind, query, gallery, ks=(1, 2), counted=False, **more):
    left, right = (tensors[f"{kind}/{role}/embedding"].double() for role in (query, gallery))
    cosine = left / left.norm(dim=1, keepdim=True) @ (right / right.norm(dim=1, keepdim=True)).T
    labels = [tensors[f"labels/{role}"] for role in (query, gallery)]
    found = retrieval_metrics(cosine, *labels, ks=ks, self_match=query == gallery, count_query_in_r=counted, **more)
    return pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("counted", [False, True])
def test_both_checkpoints_are_scored(tmp_path, counted):
    settings = {**SETTINGS, "count_query_in_r": counted}
    metrics, tensors = evaluated(tmp_path, ["test"], best_epoch=1, settings=settings)
    for kind in ("best", "last"):
        assert metrics[kind] == expected(tensors, kind, "test", "test", counted=counted)
    assert metrics["best"] != metrics["last"]
    assert (metrics["queries"], metrics["gallery"], metrics["best_epoch"]) == (5, 4, 1)


def test_map_is_of_trapezoids_where_a_recipe_asks_for_it(tmp_path):
    settings = {**SETTINGS, "average_precision": "trapezoids"}
    metrics, tensors = evaluated(tmp_path, ["query", "gallery"], best_epoch=2, settings=settings)
    assert metrics["best"] == expected(tensors, "last", *SIDES, average_precision="trapezoids")
    assert metrics["best"] != expected(tensors, "last", *SIDES)


def test_what_a_query_takes_lies_beside_the_metrics_and_not_in_them(tmp_path):
    evaluated(tmp_path, ["test"], best_epoch=1)
    manifest = str(write_dataset(tmp_path / "pictures", {"train": 1, "test": 2}))
    files = {name: str(tmp_path / name) for name in ("model", "metrics", "classes", "timing")}
    data = {"manifest": manifest, "root": str(tmp_path / "pictures")}
    evaluate(Evaluate(**SETTINGS), embedded=EMBEDDED, recall_at=[1], **data, **files)
    whole, before, warm = (seconds(files["timing"], part) for part in ("s", "embed_s", "ms"))
    assert whole > before > 0 < warm < 1000 * whole
    assert "ms" not in (tmp_path / "metrics").read_text()


def test_one_checkpoint_fills_both(tmp_path):
    metrics, tensors = evaluated(tmp_path, ["test"], best_epoch=2)
    assert metrics["best"] == metrics["last"] == expected(tensors, "last", "test", "test")


def test_training_pictures_get_metrics_of_their_own(tmp_path):
    metrics, tensors = evaluated(tmp_path, ["test", "train"], best_epoch=1)
    for kind in ("best", "last"):
        own = {name.removeprefix("train_"): value for name, value in metrics[kind].items() if name.startswith("train_")}
        assert own == expected(tensors, kind, "train", "train")
        others = {name: value for name, value in metrics[kind].items() if not name.startswith("train_")}
        assert others == expected(tensors, kind, "test", "test")


def of_classes(folder, metrics, checkpoint):
    """What the rows of classes come to, under the names of the metrics; and their labels."""
    table = pd.read_csv(folder / "classes")
    found = {}
    for (kind, pictures), means in table.groupby(["checkpoint", "pictures"]):
        if kind == checkpoint:
            means = over_classes(means, ["R@1", "RP", "MAP@R", "mAP"])
            found |= {f"{'train_' if pictures == 'train' else ''}{name}": value for name, value in means.items()}
    return found, pytest.approx({name: metrics[checkpoint][name] for name in found}, abs=1e-5), table


def test_the_classes_of_each_checkpoint_and_of_the_training_pictures_add_up_to_the_metrics(tmp_path):
    metrics, _ = evaluated(tmp_path, ["test", "train"], best_epoch=1)
    for kind in ("best", "last"):
        found, sums, table = of_classes(tmp_path, metrics, kind)
        assert found == sums
        assert {"R@1", "train_R@1"} <= found.keys()
    repeated = [label for label in set(LABELS["test"]) if LABELS["test"].count(label) > 1]
    listed = table[(table["checkpoint"] == "last") & (table["pictures"] == "test")]["label"]
    assert sorted(listed) == sorted(repeated)


def test_no_unlabelled_picture_is_among_the_classes(tmp_path):
    metrics, _ = with_unlabelled(tmp_path / "with", ["test"])
    found, sums, table = of_classes(tmp_path / "with", metrics, "last")
    assert found == sums
    assert (table["label"] >= 0).all()
    assert set(table["checkpoint"]) == {"last"}  # and not a second time as the best, which it is


def test_training_pictures_beside_a_query_and_a_gallery_search_each_other(tmp_path):
    metrics, tensors = evaluated(tmp_path, ["query", "gallery", "train"], best_epoch=2)
    found = metrics["best"]
    assert {name: found[name] for name in ("R@1", "R@2", "P@1", "RP", "MAP@R", "mAP")} == expected(
        tensors, "last", "query", "gallery"
    )
    assert {name.removeprefix("train_"): found[name] for name in found if name.startswith("train_")} == expected(
        tensors, "last", "train", "train"
    )
    assert (metrics["queries"], metrics["gallery"]) == (3, 4)


def test_cut_offs_beyond_a_gallery_are_left_out_for_it_alone(tmp_path, capsys):
    metrics, tensors = evaluated(tmp_path, ["test", "train"], best_epoch=2, recall_at=(1, 4, 1000))
    assert "R@1000 is in no metric: " in capsys.readouterr().out
    recalls = {name for name in metrics["best"] if "R@" in name and "MAP" not in name}
    assert recalls == {"R@1", "R@4", "train_R@1"}
    assert metrics["best"]["R@4"] == 1.0
    assert len(tensors["labels/train"]) - 1 < 4


def test_nmi_is_measured_where_a_recipe_asks_for_it(tmp_path):
    metrics, tensors = evaluated(tmp_path, ["test", "train"], best_epoch=1, settings={**SETTINGS, "nmi": True})
    for kind in ("best", "last"):
        assert metrics[kind]["NMI"] == nmi(tensors[f"{kind}/test/embedding"], tensors["labels/test"])
        assert metrics[kind]["train_NMI"] == nmi(tensors[f"{kind}/train/embedding"], tensors["labels/train"])
    without, _ = evaluated(tmp_path, ["test", "train"], best_epoch=1, settings={**SETTINGS, "nmi": False})
    others = {name: value for name, value in metrics["best"].items() if not name.endswith("NMI")}
    assert without["best"] == others


def test_nmi_of_a_query_and_a_gallery_is_that_of_the_gallery(tmp_path):
    settings = {**SETTINGS, "nmi": True}
    metrics, tensors = evaluated(tmp_path, ["query", "gallery"], best_epoch=2, settings=settings)
    assert metrics["best"]["NMI"] == nmi(tensors["last/gallery/embedding"], tensors["labels/gallery"])


def test_one_line_says_that_nmi_is_not_defined_where_no_vectors_are_compared(tmp_path, capsys):
    settings = {"count_query_in_r": False, "scoring": {"name": "shared_neighbours", "k": 2}, "nmi": True}
    metrics, _ = evaluated(tmp_path, ["test"], best_epoch=1, settings=settings)
    assert "NMI" not in metrics["best"]
    assert capsys.readouterr().out == (
        "NMI is not defined for scoring 'shared_neighbours', which compares no vectors: left out\n"
    )


COARSE = {"levels/family/test": [0, 0, 0, 0, 1], "levels/order/test": [0, 0, 0, 0, 0]}


def test_levels_named_by_the_data_set_are_scored_for_test_pictures_alone(tmp_path):
    metrics, tensors = evaluated(
        tmp_path, ["test", "train"], best_epoch=1, levels={"mid": "family", "coarse": "order"}, also=COARSE
    )
    pairs = {name: (tensors[f"levels/{level}/test"],) * 2 for name, level in (("mid", "family"), ("coarse", "order"))}
    for kind in ("best", "last"):
        found = {name: value for name, value in metrics[kind].items() if not name.startswith("train_")}
        assert found == expected(tensors, kind, "test", "test", levels=pairs)
        assert metrics[kind]["mAP_coarse"] == 1.0
        assert metrics[kind]["mAP_mid"] < 1.0
        assert not {"train_mAP_mid", "train_mAP_coarse"} & metrics[kind].keys()


def test_coarser_labels_that_the_data_set_does_not_name_are_not_scored(tmp_path):
    metrics, _ = evaluated(tmp_path, ["test"], best_epoch=2, also=COARSE)
    assert metrics["best"].keys() == {"R@1", "R@2", "P@1", "RP", "MAP@R", "mAP"}


@pytest.mark.parametrize(
    ("also", "columns"), [(COARSE, "coarse_family, coarse_order"), ({}, r"no coarse_<level>")], ids=["other", "none"]
)
def test_a_level_without_a_column_is_refused(tmp_path, also, columns):
    message = rf"levels\.mid of the data set is 'genus', but split\.csv has no column coarse_genus; it has {columns}$"
    with pytest.raises(ValueError, match=message):
        evaluated(tmp_path, ["test"], best_epoch=2, levels={"mid": "genus"}, also=also)
    assert not (tmp_path / "metrics").exists()


def test_pictures_of_the_same_camera_are_junk_in_every_search(tmp_path):
    also = {"cameras/query": [0, 0, 1], "cameras/gallery": [0, 0, 1, 1], "cameras/train": [0, 0, 1, 1]}
    metrics, tensors = evaluated(tmp_path, ["query", "gallery", "train"], best_epoch=2, also=also)
    for query, gallery, prefix in (("query", "gallery", ""), ("train", "train", "train_")):
        cameras = {
            f"{side}_cameras": tensors[f"cameras/{role}"] for side, role in zip(SIDES, (query, gallery), strict=True)
        }
        names = ("R@1", "R@2", "P@1", "RP", "MAP@R", "mAP", "rank1")
        found = {name: metrics["best"][f"{prefix}{name}"] for name in names}
        assert found == expected(tensors, "last", query, gallery, **cameras)


UNLABELLED = {"labels/unlabelled": [-1, -1, -1]}


def with_unlabelled(folder, roles, *, also=None, levels=None):
    """Metrics with three unlabelled pictures, and all tensors."""
    extra = {"last/unlabelled/embedding": rows(77, 3)}
    folder.mkdir(exist_ok=True)
    metrics, tensors = evaluated(
        folder, roles, best_epoch=2, levels=levels, also={**UNLABELLED, **(also or {})}, more=extra
    )
    return metrics, {**tensors, **extra}


def slowly(tensors, query, gallery):
    """R@1, R@2, MAP@R and mAP of labelled queries by loops; gallery pictures without a label are never right."""
    unit = {
        role: torch.nn.functional.normalize(tensors[f"last/{role}/embedding"].double(), dim=1)
        for role in (query, gallery, "unlabelled")
    }
    everything = torch.cat([unit[gallery], unit["unlabelled"]])
    labels = [*tensors[f"labels/{gallery}"].tolist(), None, None, None]
    found = {"R@1": [], "R@2": [], "MAP@R": [], "mAP": []}
    for number, (vector, label) in enumerate(zip(unit[query], tensors[f"labels/{query}"].tolist(), strict=True)):
        scores = (everything @ vector).tolist()
        order = sorted(range(len(labels)), key=lambda item: -scores[item])
        right = [labels[item] == label for item in order if not (query == gallery and item == number)]
        if not (total := sum(right)):
            continue
        precisions = [sum(right[: rank + 1]) / (rank + 1) for rank in range(len(right)) if right[rank]]
        within = [sum(right[: rank + 1]) / (rank + 1) for rank in range(total) if right[rank]]
        for name, value in (
            ("R@1", right[0]),
            ("R@2", any(right[:2])),
            ("MAP@R", sum(within) / total),
            ("mAP", sum(precisions) / total),
        ):
            found[name].append(float(value))
    return {name: sum(values) / len(values) for name, values in found.items()}


@pytest.mark.parametrize(("query", "gallery"), [("test", "test"), ("query", "gallery")])
def test_unlabelled_pictures_lie_in_the_gallery_and_are_never_right_nor_a_query(tmp_path, query, gallery):
    roles = list(dict.fromkeys((query, gallery)))
    metrics, tensors = with_unlabelled(tmp_path / "with", roles)
    expected_means = slowly(tensors, query, gallery)
    assert {name: metrics["best"][name] for name in expected_means} == pytest.approx(expected_means, abs=1e-6)
    plain, _ = evaluated(tmp_path, roles, best_epoch=2)
    assert metrics["best"]["mAP"] < plain["best"]["mAP"]
    assert metrics["queries"] == plain["queries"]
    assert metrics["gallery"] == plain["gallery"] + 3
    assert metrics["searched"] == plain["queries"] + (3 if query == gallery else 0)


def test_unlabelled_pictures_have_no_coarser_class_either(tmp_path):
    also = {**COARSE, "levels/family/unlabelled": [-1, -1, -1], "levels/order/unlabelled": [-1, -1, -1]}
    metrics, _ = with_unlabelled(tmp_path, ["test"], also=also, levels={"coarse": "order"})
    assert metrics["best"]["mAP_coarse"] < 1.0  # which it is where all pictures are of one order


def test_queries_without_a_positive_are_counted_where_there_are_such(tmp_path, capsys):
    (tmp_path / "apart").mkdir()
    (tmp_path / "alike").mkdir()
    metrics, _ = with_unlabelled(tmp_path / "apart", ["query", "gallery"])
    assert "queries_without_positive" not in metrics
    labels = {"labels/query": [0, 1, 7]}
    metrics, _ = evaluated(tmp_path / "alike", SIDES, best_epoch=2, also=labels)
    assert (metrics["queries_without_positive"], metrics["queries"]) == (1, 3)
    assert "1 of 3 queries are in no metric: no other picture of their class is searched" in capsys.readouterr().out
