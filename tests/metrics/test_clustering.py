"""NMI is 1 for classes that lie apart, near 0 for noise, and the same for the same seed."""

import math

import pytest
import torch
from sklearn.cluster import KMeans

from lookalike.metrics.clustering import nmi


def drawn(count, dim, seed=0):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def apart(classes=30, each=8):
    """Classes around directions that are far from each other."""
    labels = torch.arange(classes).repeat_interleave(each)
    return torch.eye(classes)[labels] + 0.02 * drawn(len(labels), classes), labels


def entropy(*parts):
    """Of the joint partition by some labels, in nats, counted with a loop."""
    counts = {}
    for key in zip(*(part.tolist() for part in parts), strict=True):
        counts[key] = counts.get(key, 0) + 1
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


@pytest.mark.parametrize("seed", range(5))
def test_classes_that_lie_apart_are_found_whatever_the_seed(seed):
    embeddings, labels = apart()
    assert nmi(embeddings, labels, seed=seed) == pytest.approx(1.0, abs=1e-12)


def test_the_length_of_an_embedding_counts_for_nothing():
    embeddings, labels = apart()
    lengths = torch.logspace(-3, 3, len(embeddings))[:, None]
    assert nmi(embeddings * lengths, labels, seed=0) == pytest.approx(1.0, abs=1e-12)


def test_it_is_the_mutual_information_over_the_mean_entropy():
    embeddings = torch.eye(2)[torch.tensor([0, 0, 0, 1, 1, 1])]  # two clusters, whatever the labels
    clusters, labels = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 1])
    mutual = entropy(clusters) + entropy(labels) - entropy(clusters, labels)
    expected = mutual / ((entropy(clusters) + entropy(labels)) / 2)
    assert nmi(embeddings, labels, seed=0) == pytest.approx(expected, abs=1e-12)


def test_names_of_the_labels_and_the_order_of_the_pictures_count_for_nothing():
    embeddings, labels = drawn(200, 8), torch.arange(200) % 10
    renamed = torch.randperm(10, generator=torch.Generator().manual_seed(1))[labels] * 7 + 3
    assert nmi(embeddings, renamed, seed=0) == pytest.approx(nmi(embeddings, labels, seed=0), abs=1e-12)
    embeddings, labels = apart()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(2))
    assert nmi(embeddings[order], labels[order], seed=0) == pytest.approx(1.0, abs=1e-12)


def test_a_seed_gives_one_number_and_leaves_the_global_generators_alone():
    embeddings, labels = drawn(300, 16), torch.arange(300) % 20
    before = torch.get_rng_state()
    found = [nmi(embeddings, labels, seed=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert torch.equal(before, torch.get_rng_state())


def test_clusters_are_about_as_good_as_those_of_another_implementation():
    embeddings, labels = apart(classes=12, each=20)
    blurred = torch.nn.functional.normalize(embeddings + 0.35 * drawn(*embeddings.shape, seed=3), dim=1)
    from sklearn.metrics import normalized_mutual_info_score

    other = KMeans(12, n_init=1, random_state=0).fit_predict(blurred.numpy())
    assert nmi(blurred, labels, seed=0) == pytest.approx(normalized_mutual_info_score(labels, other), abs=0.06)


def test_noise_has_little_of_it():
    embeddings, labels = drawn(2000, 16), torch.arange(2000) % 4
    assert nmi(embeddings, labels, seed=0) < 0.02


@pytest.mark.parametrize(
    ("embeddings", "labels", "message"),
    [
        (torch.ones(4, 2, 1), torch.arange(4), r"embeddings must be \(N, D\) float with N labels, not \(4, 2, 1\)"),
        (torch.ones(4, 2), torch.arange(3), r"with labels \(3,\)"),
        (torch.ones(4, 2, dtype=torch.int64), torch.arange(4), r"\(4, 2\) torch.int64"),
        (torch.ones(4, 2), torch.ones(4), r"labels must be int64, not torch.float32"),
        (torch.tensor([[1.0, 0.0], [math.nan, 1.0]]), torch.arange(2), r"embedding 1 holds NaN or infinity"),
        (torch.ones(4, 2), torch.zeros(4, dtype=torch.int64), r"at least 2 labels, not of 1"),
        (torch.ones(0, 2), torch.zeros(0, dtype=torch.int64), r"at least 2 labels, not of 0"),
    ],
    ids=["shape", "length", "integers", "float labels", "NaN", "one label", "none"],
)
def test_bad_input_is_refused(embeddings, labels, message):
    with pytest.raises(ValueError, match=message):
        nmi(embeddings, labels, seed=0)
