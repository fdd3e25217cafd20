"""Figures of attributions, on small models and pictures: what their data hold, and what is checked."""

from dataclasses import replace
from typing import get_type_hints

import pandas as pd
import pytest
import torch

from figure_checks import mean
from lookalike.base.files import write_tensors
from lookalike.methods.avsl.graph import relative_change
from lookalike.workflow.report.figures.avsl.fluctuation import FLUCTUATION, independent_change
from lookalike.workflow.report.figures.avsl.graph import GRAPH
from lookalike.workflow.report.figures.avsl.histograms import HISTOGRAMS
from lookalike.workflow.report.figures.avsl.triplet import TRIPLET
from lookalike.workflow.report.figures.diml.transport import TRANSPORT
from lookalike.workflow.report.figures.parts.caption import findings
from lookalike.workflow.report.figures.parts.form import NoOptions, Run
from lookalike.workflow.report.figures.sam import domains
from lookalike.workflow.report.figures.sam.domains import DOMAINS
from trainings import batch, learner, section, write_dataset

OPTIONS = {"triplets": 6, "pairs": 8, "seed": 0, "reliable": 0.5, "nodes": 2, "below": 2, "shown": 2, "side": 2}
OPTIONS |= {"bins": 5, "pictures": 4, "unreliable": 0.5, "near_zero": 0.1}


@pytest.fixture
def run(tmp_path):
    """A run with a model of a method that has seen one batch, in a folder of pictures."""
    manifest = write_dataset(tmp_path / "pictures", {"train": 2, "test": 4})

    def make(method, seed=0, dataset="small"):
        learning = learner(method, seed=seed)
        learning(*batch())  # from which AVSL takes its edges
        state = {f"last/{name}": value for name, value in learning.state_dict().items()}
        about = {"settings": section(method).dump(), "best_epoch": 1, "epochs": 1}
        path = tmp_path / f"{method}{seed}.safetensors"
        write_tensors(path, state, about)
        root = str(manifest.parent)
        return Run(method, "cub", dataset, seed, "model", str(path), manifest=str(manifest), root=root)

    return make


def options_of(figure):
    """Those of `OPTIONS` that a figure has."""
    kind = get_type_hints(figure.data)["options"]
    return kind(**{name: OPTIONS[name] for name in kind.model_fields})


def written(figure, runs, folder):
    """Data of a figure as they are read again, once it could be drawn from them."""
    figure.data(runs, options_of(figure)).to_csv(folder / "data.csv", index=False)
    frame = pd.read_csv(folder / "data.csv")
    figure.draw(frame).savefig(folder / "picture.png", dpi=50)
    return frame


def test_the_fluctuation_is_read_from_the_histories(tmp_path):
    runs = []
    for momentum, change in ((0.0, 0.6), (0.5, 0.2)):
        path = tmp_path / f"{momentum}.csv"
        pd.DataFrame({"epoch": [1, 2], "loss": [2.0, 1.0], "edge_change": [change, change / 2]}).to_csv(path)
        runs.append(Run("avsl", "cars", "cars", 0, "history", str(path), {"momentum": momentum}))
    frame = written(FLUCTUATION, runs, tmp_path)
    assert frame["edge_change"].tolist() == [0.6, 0.3, 0.2, 0.1]
    less, against_chance = FLUCTUATION.checks(frame)
    assert mean(less) == pytest.approx(2 / 3)
    assert not against_chance.claimed
    swapped = frame.assign(momentum=0.5 - frame["momentum"])
    assert mean(FLUCTUATION.checks(swapped)[0]) == pytest.approx(-2.0)


def test_a_history_without_the_change_of_edges_is_refused(tmp_path):
    pd.DataFrame({"epoch": [1]}).to_csv(tmp_path / "h.csv", index=False)
    run = Run("avsl", "cars", "cars", 0, "history", str(tmp_path / "h.csv"), {"momentum": 0.0})
    with pytest.raises(ValueError, match="no column edge_change; it has epoch"):
        FLUCTUATION.data([run], NoOptions())


def test_an_average_of_independent_batches_changes_as_predicted():
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(20000, generator=generator, dtype=torch.float64)
    state, steps = torch.zeros((), dtype=torch.float64), []
    for draw in draws:
        after = 0.5 * state + 0.5 * draw
        steps.append(after - state)
        state = after
    measured = torch.stack(steps).std() / draws.diff().std()
    assert float(measured) == pytest.approx(independent_change(0.5), rel=0.03)


def test_the_change_of_edges_is_relative_and_of_each_level():
    before, after = torch.tensor([[[1.0, -2.0]], [[0.0, 0.0]]]), torch.tensor([[[2.0, -2.0]], [[0.0, 0.0]]])
    assert relative_change(before, after).tolist() == [0.25, 0.0]
    with pytest.raises(ValueError, match="before has shape"):
        relative_change(before, after[0])


def test_the_learner_reports_the_change_of_its_edges_and_starts_anew_each_epoch():
    learning = learner("avsl")
    images, labels = batch()
    learning.set_epoch(0)
    learning(images, labels)
    assert learning.measures() == {}  # the first edges are copied
    before = learning.model.edge_states.clone()
    learning(images.flip(0) * 2, labels)
    after = learning.model.edge_states
    expected = [float((new - old).abs().mean() / new.abs().mean()) for old, new in zip(before, after, strict=True)]
    assert learning.measures()["edge_change"] == pytest.approx(sum(expected) / len(expected), rel=1e-5)
    learning.set_epoch(1)
    assert learning.measures() == {}


def test_histograms_hold_all_pairs_and_all_nodes(run, tmp_path):
    frame = written(HISTOGRAMS, [run("avsl")], tmp_path)
    sums = frame.groupby(["quantity", "level"])["share"].sum()
    assert sums.tolist() == pytest.approx([1.0] * 4)
    low = frame[frame["quantity"] == "coefficient"].groupby("level")["below"].first()
    assert low.tolist() == [0.0, 0.0]  # they start at 1


def test_nodes_of_the_triplet_are_ranked_by_their_difference(run, tmp_path):
    frame = written(TRIPLET, [run("avsl")], tmp_path)
    for _, nodes in frame[frame["panel"] == "node"].groupby("pair"):
        assert len(nodes) == 4  # half of eight
        assert nodes.sort_values("rank")["delta"].is_monotonic_decreasing
    assert len(frame[frame["panel"] == "spread"]) == 2 * 6


def test_the_sums_of_the_attribution_graph_are_those_of_property_one(run, tmp_path):
    frame = written(GRAPH, [run("avsl")], tmp_path)
    shares = frame[frame["panel"] == "level"]["share"]
    assert shares.sum() == pytest.approx(1)
    assert [check.holds for check in GRAPH.checks(frame)][-2:] == [True, True]
    nodes = frame[frame["panel"] == "node"].set_index(["part", "order"])
    assert nodes.loc["alike"]["delta"].max() <= nodes.loc["unlike"]["delta"].min()
    assert nodes.loc["unreliable"]["reliability"].iloc[0] <= nodes.loc["alike"]["reliability"].min()


def test_plans_of_all_pairs_have_a_mass_of_one_and_arrows_fit_the_grid(run, tmp_path):
    frame = written(TRANSPORT, [run("embedder")], tmp_path)
    assert frame["mass_error"].max() < 1e-5
    marginals = frame[frame["panel"] == "map"].groupby(["pair", "side"])["value"].sum()
    assert marginals.tolist() == pytest.approx([1.0] * 4, abs=1e-5)
    arrows = frame[frame["panel"] == "arrow"]
    assert arrows[["start", "end"]].max().max() < 4
    assert TRANSPORT.checks(frame)[-1].holds


def test_every_model_looks_at_every_data_set(run, tmp_path):
    frame = written(DOMAINS, [run("embedder", dataset="one"), run("sam", dataset="two")], tmp_path)
    maps = frame[frame["panel"] == "map"].groupby(["trained", "tested"])["role"].nunique()
    assert maps.to_dict() == {(a, b): 3 for a in ("one", "two") for b in ("one", "two")}


def test_no_model_looks_at_pictures_of_classes_that_it_has_learned(run, tmp_path, monkeypatch):
    first, second, listed = run("embedder"), run("embedder", seed=1), tmp_path / "pictures" / "second.csv"
    rows = pd.read_csv(first.manifest)
    rows.assign(role=rows["role"].map({"train": "test", "test": "train"})).to_csv(listed, index=False)
    looked, of_each = [], domains.of_each

    def looking(compute, pictures, places, device):
        looked.append(set(pictures.rows["label"]))
        return of_each(compute, pictures, places, device)

    monkeypatch.setattr(domains, "of_each", looking)
    frame = domains.data([first, replace(second, manifest=str(listed))], options_of(DOMAINS))
    assert looked == [set(rows.loc[rows["role"] == role, "label"]) for role in ("test", "train")]
    assert len(frame[frame["panel"] == "picture"]) == 3  # of the first seed


def test_attention_as_even_as_chance_is_small():
    row = {"panel": "share", "trained": "a", "tested": "a", "object_area": 0.334}
    for share, verdict in ((0.335, "small"), (0.36, "yes"), (0.30, "no")):
        shares = [share - 0.001, share, share + 0.001]
        rows = [{**row, "seed": seed, "on_object": value} for seed, value in enumerate(shares)]
        [check] = DOMAINS.checks(pd.DataFrame(rows))
        assert findings([check])[0].verdict == verdict
        assert f"{100 * share:.1f} % of the attention lies on them, which are 33.4 % of the area" in check.says


@pytest.mark.parametrize(("figure", "method", "panel"), [
    (TRIPLET, "avsl", "spread"),
    (GRAPH, "avsl", "level"),
    (TRANSPORT, "embedder", "difference"),
])  # fmt: skip
def test_examples_are_of_the_first_seed_and_numbers_of_all(figure, method, panel, run, tmp_path):
    frame = written(figure, [run(method), run(method, seed=1)], tmp_path)
    assert set(frame.loc[frame["panel"] == panel, "seed"]) == {0, 1}
    assert set(frame.loc[frame["panel"] == "picture", "seed"]) == {0}
    random = [check for check in figure.checks(frame) if check.holds is None and check.claimed]
    assert random and all(len(check.cases[0][0]) == 2 for check in random)


def test_a_model_of_another_method_is_refused(run):
    with pytest.raises(ValueError, match="holds Embedder, this figure needs AVSL"):
        TRIPLET.data([run("embedder")], options_of(TRIPLET))
