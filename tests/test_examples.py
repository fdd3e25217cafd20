"""The examples run as they stand and show what they say; the page on the methods leads to them."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from pytorch_metric_learning import losses, trainers
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

import lookalike
from lookalike import ContextualLoss

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "methods.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def run(capsys):
    """Names that an example leaves behind, and its numbers printed after a word."""

    def run(name):
        with torch.random.fork_rng():
            left = runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return left, capsys.readouterr().out

    return run


def printed(output, before):
    return [float(number) for number in re.findall(rf"{before} (-?\d+\.\d+)", output)]


def test_the_contextual_example_learns_its_batch(run):
    left, output = run("contextual_loss.py")
    values = printed(output, "loss")
    assert len(values) == 8
    assert values[-1] < values[0] / 2
    assert printed(output, "R@1 on the batch it has seen:") == [pytest.approx(left["metrics"]["R@1"], abs=0.005)]
    assert left["metrics"]["R@1"] > 0.9


def test_the_avsl_example_learns_and_its_nodes_add_up_to_the_distance(run):
    left, output = run("avsl.py")
    values, (distance,) = printed(output, "loss"), printed(output, "distance")
    assert values[-1] < values[0] / 2
    assert left["distance"].shape == (1, 15)
    assert distance == pytest.approx(left["distance"].min().item(), abs=1e-4)
    assert sum(printed(output, "nodes add")) == pytest.approx(distance, abs=3e-4)  # printed with four places
    assert left["model"].edges_initialised
    for side in ("query_map", "gallery_map"):
        assert left[side].shape == (1, 1, 64, 64)
        assert left[side].max() > 0


def test_the_diml_example_reorders_the_first_and_explains_the_similarity(run):
    left, output = run("diml.py")
    ranking = left["ranking"]
    assert torch.equal(ranking.sort(dim=1).values, torch.arange(16).expand(16, 16))
    assert torch.equal(ranking[:, -1], torch.arange(16))  # the query itself
    vectors = left["gallery"].global_vector
    by_cosine = (vectors @ vectors.T).fill_diagonal_(-2).argsort(dim=1, descending=True)
    assert torch.equal(ranking[:, 5:], by_cosine[:, 5:])
    assert not torch.equal(ranking[:, :5], by_cosine[:, :5])
    (similarity,) = printed(output, "structural similarity")
    assert left["contributions"].shape == (16, 16)
    assert left["contributions"].sum().item() == pytest.approx(similarity, abs=1e-4)
    assert left["query_map"].shape == left["gallery_map"].shape == (1, 1, 128, 128)
    assert left["embedder"].conv1.weight.grad.abs().sum() > 0  # the step reached the network
    assert left["loss"].term.boundaries.grad.abs().sum() > 0


def test_the_attention_example_trains_through_the_maps_and_gives_one_for_every_role(run):
    left, output = run("similarity_attention.py")
    assert len(printed(output, "loss")) == 3
    assert 0 < printed(output, "mean of the steps:")[0] < 2  # a difference of distances of unit vectors
    explanation, maps = left["explanation"], left["maps"]
    assert maps.shape == (3, 1, 2, 2)
    assert explanation.maps.shape == (3, 1, 64, 64)
    assert explanation.features.shape == (3, 1, 64)
    lively = maps.amax(dim=(-2, -1)) > 0
    assert lively.any()
    torch.testing.assert_close(explanation.maps.amax(dim=(-2, -1))[lively], torch.ones(int(lively.sum())))
    assert re.findall(r"^(\w+): the warmest place", output, re.MULTILINE) == ["anchor", "positive", "negative"]


def test_the_example_with_pytorch_metric_learning_trains_in_both_loops(run):
    left, output = run("with_pytorch_metric_learning.py")
    assert len(printed(output, "own loop: loss")) == len(left["sampler"]) * 2 == 4
    assert len(printed(output, "trainer: loss")) == 2 * 3  # two batches of 16 in each of three epochs
    assert all(0 < value < 2 for value in printed(output, "loss"))
    steps = {int(state["step"]) for state in left["optimiser"].state.values()}
    assert steps == {10}  # both loops trained the same network


def test_the_contextual_loss_trains_in_the_trainer_of_pytorch_metric_learning():
    generator = torch.Generator().manual_seed(0)
    vectors, labels = torch.randn(8, 6, generator=generator), torch.arange(4).repeat_interleave(2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        trunk = nn.Linear(6, 4)
        start = trunk(vectors).detach()
        loss = ContextualLoss(2, 0.05, 0.4, 0.1, 0.3, 0.75, 0.6)
        seen = []
        trainer = trainers.MetricLossOnly(
            models={"trunk": trunk, "embedder": nn.Identity()},
            optimizers={"trunk_optimizer": torch.optim.SGD(trunk.parameters(), lr=0.5)},
            batch_size=8,
            loss_funcs={"metric_loss": loss},
            dataset=TensorDataset(vectors, labels),
            dataloader_num_workers=0,
            data_device=torch.device("cpu"),
            end_of_iteration_hook=lambda trainer: seen.append(trainer.losses["total_loss"].item()),
        )
        trainer.train(num_epochs=20)
    assert seen[0] == pytest.approx(loss(start, labels).item(), rel=1e-5)  # the same batch, in another order
    assert len(seen) == 20
    assert seen[-1] < seen[0]


def test_the_contextual_loss_stands_beside_a_loss_of_pytorch_metric_learning():
    embeddings = F.normalize(torch.randn(8, 6, generator=torch.Generator().manual_seed(0)))
    labels = torch.arange(4).repeat_interleave(2)
    ours, theirs = ContextualLoss(2, 0.05, 0.4, 0.1, 0.3, 0.75, 0.6), losses.MultiSimilarityLoss()
    together = losses.MultipleLosses([ours, theirs], weights=[0.5, 2.0])
    expected = 0.5 * ours(embeddings, labels) + 2.0 * theirs(embeddings, labels)
    torch.testing.assert_close(together(embeddings, labels), expected)


@pytest.mark.parametrize(
    "page", [*DOCUMENTS, ROOT / "results" / "reference" / "mini" / "figures.md"], ids=lambda page: page.name
)
def test_links_of_documents_lead_to_files(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", prose) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_page_on_the_methods_leads_to_every_example_and_names_every_public_name():
    page = PAGE.read_text()
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+)\)", prose)
    assert {f"../examples/{name}" for name in EXAMPLES} <= set(links)
    assert not [name for name in lookalike._modules() if not re.search(rf"\b{name}\b", page)]


def test_the_pieces_of_the_page_run_one_after_the_other():
    names = {}
    with torch.random.fork_rng():
        for piece in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            exec(piece, names)
    assert names["distance"].shape == (1, 15)
    total = sum(level.sum(dim=-1) for level in names["contributions"])
    torch.testing.assert_close(total, names["distance"], rtol=1e-4, atol=1e-5)
    assert names["ranking"].shape == (2, 14)
    assert names["flow"].shape == (2, 14, 4, 4)
    assert names["maps"].shape == (3, 2, 64, 64)
    assert 0 <= names["maps"].min() <= names["maps"].max() <= 1
