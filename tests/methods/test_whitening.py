"""Whitening and relevant component analysis are what their formulas say, on any embeddings or refused by name."""

import numpy as np
import pytest
import torch
from sklearn.covariance import OAS
from sklearn.decomposition import PCA

from lookalike.base.tensors import unit
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.model import DIML
from lookalike.methods.whitening import (
    SHRINKAGES,
    chosen_shrinkage,
    held_out_recall,
    mapped,
    relevant_components,
    whitening,
)
from lookalike.models.backbones import Tiny
from lookalike.models.embedder import Embedder
from projects import ROOT
from trainings import batch

ARCHIVES = next(
    (each for each in (ROOT / "data" / "archives", ROOT.parent / "shared" / "data") if (each / "cars98.tar").exists()),
    None,
)


def drawn(images=60, dim=7, classes=6, seed=0):
    """Embeddings of classes that vary by other axes within than between them."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(images) % classes
    within = torch.randn(dim, dim, generator=generator, dtype=torch.float64)
    centres = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    embeddings = centres[labels] + torch.randn(images, dim, generator=generator, dtype=torch.float64) @ within + 3
    return embeddings, labels


def slow_cosine(x, y, mean, covariance):
    """Cosine of two embeddings under the inverse of a covariance."""
    inverse = np.linalg.inv(covariance)
    x, y = x - mean, y - mean
    return (x @ inverse @ y) / np.sqrt((x @ inverse @ x) * (y @ inverse @ y))


def slow_covariance(rows, labels, shrinkage):
    """Of N rows about the mean of their class, shrunk; all are one class without labels."""
    labels = np.zeros(len(rows), dtype=int) if labels is None else labels
    total = np.zeros((rows.shape[1],) * 2)
    for row, label in zip(rows, labels, strict=True):
        off = row - rows[labels == label].mean(axis=0)
        total += np.outer(off, off) / len(rows)
    return (1 - shrinkage) * total + shrinkage * np.trace(total) / len(total) * np.eye(len(total))


def cosines(linear_map, embeddings):
    units = torch.nn.functional.normalize(linear_map(embeddings))
    return (units @ units.T).numpy()


@pytest.mark.parametrize("shrinkage", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_cosine_after_a_map_is_that_under_the_inverse_covariance(shrinkage, by_class):
    embeddings, labels = drawn()
    rows, classes = embeddings.numpy(), labels.numpy() if by_class else None
    found = (
        relevant_components(embeddings, labels, shrinkage=shrinkage)
        if by_class
        else whitening(embeddings, shrinkage=shrinkage)
    )
    covariance = slow_covariance(rows, classes, shrinkage)
    for one, other in ((0, 1), (2, 30), (17, 17)):
        expected = slow_cosine(rows[one], rows[other], rows.mean(axis=0), covariance)
        assert cosines(found, embeddings)[one, other] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dim", [None, 7, 3])
def test_whitening_without_shrinkage_is_that_of_scikit_learn(dim):
    embeddings, _ = drawn()
    theirs = PCA(n_components=dim, whiten=True, svd_solver="full").fit_transform(embeddings.numpy())
    found = cosines(whitening(embeddings, shrinkage=0, dim=dim), embeddings)
    units = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(found, units @ units.T, atol=1e-9)


def test_the_shrinkage_of_whitening_is_that_of_oracle_approximating_shrinkage():
    embeddings, _ = drawn(images=12)
    assert whitening(embeddings).shrinkage == pytest.approx(OAS().fit(embeddings.numpy()).shrinkage_)


def test_fewer_numbers_are_the_leading_axes_of_the_mapped_embeddings_and_not_of_the_variance_within_classes():
    embeddings, labels = drawn()
    whole, few = (relevant_components(embeddings, labels, shrinkage=0.1, dim=dim) for dim in (None, 3))
    theirs = PCA(n_components=3).fit_transform(whole(embeddings).numpy())
    np.testing.assert_allclose(np.abs(few(embeddings).numpy()), np.abs(theirs), atol=1e-9)
    assert (few.weight.shape, few.bias.shape) == ((3, 7), (3,))
    every = relevant_components(embeddings, labels, shrinkage=0.1, dim=7)
    np.testing.assert_allclose(cosines(every, embeddings), cosines(whole, embeddings), atol=1e-9)


def test_neither_the_order_of_pictures_nor_names_of_classes_nor_a_shift_or_scale_move_a_cosine():
    embeddings, labels = drawn()
    expected = cosines(relevant_components(embeddings, labels), embeddings)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    for moved, named in ((embeddings, 40 - labels * 3), (5 * embeddings - 2, labels)):
        found = relevant_components(moved[order], named[order])
        np.testing.assert_allclose(cosines(found, moved), expected, atol=1e-9)


def test_a_shrinkage_is_chosen_by_first_hits_of_classes_that_the_map_has_not_seen():
    embeddings, labels = drawn(images=240, dim=12, classes=12)
    chosen = chosen_shrinkage(embeddings, labels)
    assert chosen in SHRINKAGES
    assert relevant_components(embeddings, labels).shrinkage == chosen
    # What varies within classes is alike in all of them: little shrinkage is best where there are enough images.
    assert chosen_shrinkage(embeddings, labels, (0.01, 1.0)) == 0.01
    far = 100 * torch.eye(12)[labels] + 0.01 * embeddings
    assert chosen_shrinkage(far, labels, (0.1, 0.5)) == 0.5  # equal ones: the largest


def slow_first_hits(embeddings, labels):
    """Share of images whose nearest other one by the cosine is of their class."""
    cosine = unit(embeddings.double()) @ unit(embeddings.double()).T
    cosine.fill_diagonal_(-2)
    return float((labels[cosine.argmax(dim=1)] == labels).double().mean())


def test_recall_of_classes_held_out_is_that_of_two_halves_mapped_by_each_other():
    embeddings, labels = drawn(images=240, dim=12, classes=12)
    halves = np.array_split(np.random.default_rng(0).permutation(12), 2)
    before, after = [], []
    for tested, seen in (halves, halves[::-1]):
        fitted, rest = (np.isin(labels.numpy(), half) for half in (seen, tested))
        linear_map = relevant_components(embeddings[fitted], labels[fitted], shrinkage=0.1)
        before += [slow_first_hits(embeddings[rest], labels[rest])] * rest.sum()
        after += [slow_first_hits(linear_map(embeddings[rest]), labels[rest])] * rest.sum()
    assert held_out_recall(embeddings, labels, 0.1) == pytest.approx((np.mean(before), np.mean(after)))
    assert held_out_recall(embeddings[:4], torch.tensor([0, 0, 1, 2]), 0.1) is None


def test_fewer_images_than_numbers_a_constant_number_and_classes_of_one_image_are_mapped_with_shrinkage():
    embeddings, labels = drawn(images=9, dim=20, classes=5)
    embeddings[:, 4] = 1.5  # the fifth class has one image
    for found in (whitening(embeddings), relevant_components(embeddings, labels, shrinkage=0.2)):
        assert torch.isfinite(found(embeddings)).all()
    rows = embeddings.numpy()
    covariance = slow_covariance(rows, labels.numpy(), 0.2)
    expected = slow_cosine(rows[0], rows[1], rows.mean(axis=0), covariance)
    assert cosines(found, embeddings)[0, 1] == pytest.approx(expected, abs=1e-9)


def test_one_class_is_whitened():
    embeddings, _ = drawn()
    one = relevant_components(embeddings, torch.zeros(60, dtype=torch.int64), shrinkage=0.2)
    torch.testing.assert_close(one.weight, whitening(embeddings, shrinkage=0.2).weight)


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"shrinkage": 1.5}, r"shrinkage=1\.5 is outside \[0, 1\]"),
        ({}, {"shrinkage": 0.2, "dim": 8}, r"dim=8 is outside \[1, 7\], the size of the embeddings"),
        (
            {"images": 6, "classes": 2},
            {"shrinkage": 0.0},
            r"shrinkage=0: 6 embeddings vary within classes along 4 of 7 axes",
        ),
        (
            {"images": 6, "classes": 2},
            {"shrinkage": 0.2, "dim": 6},
            "dim=6: 6 embeddings of 7 numbers vary along 5 axes",
        ),
        ({"images": 6, "classes": 6}, {"shrinkage": 0.2}, "no two embeddings of one class differ: there is nothing"),
        (
            {"images": 6, "classes": 6},
            {},
            "chosen on classes held out, which needs 4 of two images or more, not 0; give",
        ),
        ({"images": 6, "classes": 1}, {}, "which needs 4 of two images or more, not 1; give one, such as 0.2"),
    ],
)
def test_what_no_map_can_be_taken_from_is_refused_in_a_line(change, options, said):
    with pytest.raises(ValueError, match=said):
        relevant_components(*drawn(**change), **options)


def test_embeddings_that_are_none_are_refused():
    embeddings, labels = drawn()
    with pytest.raises(ValueError, match="the embeddings do not vary"):
        whitening(torch.full((5, 3), 0.1), shrinkage=0.2)
    with pytest.raises(ValueError, match=r"embeddings have shape \(0, 3\), they must be \(N, D\)"):
        whitening(torch.ones(0, 3))
    with pytest.raises(ValueError, match="embeddings hold NaN or infinity"):
        whitening(embeddings * torch.nan)
    with pytest.raises(ValueError, match=r"labels have shape \(59,\), torch.int64; they must be \(60,\) int64"):
        relevant_components(embeddings, labels[1:])


def tiny(**options):
    torch.manual_seed(0)
    backbone = {"name": "tiny", "weights": None, "batch_norm": "trained"}
    return Embedder(backbone, **{"pooling": "average", "dim": 8, **options}).eval()


@pytest.mark.parametrize("dim", [None, 8])
def test_a_mapped_embedder_maps_what_the_embedder_gives_by_one_layer(dim):
    embedder, images = tiny(dim=dim), batch()[0]
    with torch.no_grad():
        before = embedder(images)
        linear_map = whitening(before, shrinkage=0.3, dim=4)
        found = mapped(embedder, linear_map)
        torch.testing.assert_close(found(images), linear_map(before), rtol=1e-4, atol=1e-4)
        assert torch.equal(embedder(images), before)
    assert found.trunk is embedder.trunk
    assert (found.dim, found.training) == (4, False)
    DIML(found, "trunk")  # which refuses two linear layers


def test_models_without_one_vector_and_one_linear_head_are_not_mapped():
    linear_map = whitening(drawn(dim=8)[0], shrinkage=0.2)
    with pytest.raises(
        ValueError, match="AVSL: only an Embedder, which compares one vector of a picture, can be mapped"
    ):
        mapped(AVSL(Tiny(), ("stage1", "stage2", "stage3"), 8, image_size=24, k=4), linear_map)
    with pytest.raises(ValueError, match="DIML: only an Embedder"):
        mapped(DIML(tiny(), "trunk"), linear_map)
    with pytest.raises(ValueError, match="StripeHead of pooling 'stripes': a map can only be joined to a linear head"):
        mapped(tiny(pooling="stripes", parts=2), linear_map)
    with pytest.raises(ValueError, match="the map takes embeddings of 8 numbers, the embedder's have 96"):
        mapped(tiny(dim=None), linear_map)


@pytest.mark.nightly
@pytest.mark.sampled(3)
@pytest.mark.skipif(ARCHIVES is None, reason="photographs that may not be passed on are not here")
@pytest.mark.parametrize("dataset", ["birds", "cars", "products"])
def test_first_hits_on_photographs_are_those_that_another_hand_found(dataset, tmp_path, monkeypatch):
    """One network: all cells are told by `python benchmarks/whitening.py`."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from whitening import FOUND, embedded, fitted, recall

    halves = embedded(dataset, "squeezenet1_1", ARCHIVES, tmp_path)
    known = FOUND[dataset, "squeezenet1_1"]
    assert recall(halves["test"]) == pytest.approx(known.start[0], abs=0.5)
    for kind, expected in (("whitened", known.whitened), ("rca", known.rca)):
        assert recall(halves["test"], fitted(kind, halves["train"], 0.2)) == pytest.approx(expected[0], abs=0.5)
