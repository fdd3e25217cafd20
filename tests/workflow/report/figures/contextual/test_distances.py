"""Histograms of the distances of embeddings, beside an even distribution over the sphere."""

import math

import numpy as np
import pytest
import torch

from figure_checks import so
from lookalike.base.files import write_tensors
from lookalike.workflow.report.figures.contextual.distances import UNIFORM, Options, checks, data, even_density
from lookalike.workflow.report.figures.parts.form import Run


def run(folder, variant, embeddings, seed=0, role="test"):
    path = folder / f"{variant}{seed}.safetensors"
    labels = torch.zeros(len(embeddings), dtype=torch.int64)
    write_tensors(path, {f"last/{role}/embedding": embeddings, f"labels/{role}": labels}, {})
    return Run(variant, "cub", "birds", seed, "embeddings", str(path), {"variant": variant})


def normal(rows, dim, seed=0):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dim", [3, 4, 16, 512])
def test_the_even_density_integrates_to_one(dim):
    middles = (np.arange(20000) + 0.5) / 10000
    assert even_density(middles, dim).mean() * 2 == pytest.approx(1, abs=1e-5)


def test_the_even_density_is_that_of_random_points():
    points = torch.nn.functional.normalize(normal(3000, 5), dim=1)
    counted, edges = np.histogram(torch.pdist(points).numpy(), 20, range=(0, 2), density=True)
    assert np.abs(counted - even_density((edges[1:] + edges[:-1]) / 2, 5)).max() < 0.03


def test_less_than_three_dimensions_have_no_even_density():
    with pytest.raises(ValueError, match="dim=2 is below 3"):
        even_density(np.array([1.0]), 2)


def test_a_histogram_counts_every_pair_of_unit_vectors_once(tmp_path):
    embeddings = normal(6, 4)
    frame = data([run(tmp_path, "one", embeddings)], Options(bins=8))
    distances = []
    for i in range(6):
        for j in range(i):
            cosine = float(embeddings[i] @ embeddings[j] / embeddings[i].norm() / embeddings[j].norm())
            distances.append(math.sqrt(2 - 2 * cosine))
    own = frame[frame["variant"] == "one"]
    for row in own.itertuples():
        inside = sum(row.distance - 0.125 <= distance < row.distance + 0.125 for distance in distances)
        assert row.density == pytest.approx(inside / len(distances) / 0.25)
    assert own["mean"].iloc[0] == pytest.approx(np.mean(distances), abs=1e-6)
    assert own["sd"].iloc[0] == pytest.approx(np.std(distances), abs=1e-6)
    assert frame[frame["variant"] == UNIFORM]["seed"].isna().all()


def test_the_verdict_compares_the_mean_distances(tmp_path):
    narrow, wide = normal(20, 8) + 5, normal(20, 8)
    runs = [run(tmp_path, "M+ only", narrow), run(tmp_path, "both", wide)]
    assert so(checks(data(runs, Options(bins=10)))[0])
    assert not so(checks(data(runs[::-1], Options(bins=10)))[0])


def test_files_that_do_not_fit_are_named(tmp_path):
    said = r"x0\.safetensors holds no last/test/embedding; it holds labels/query, last/query"
    with pytest.raises(ValueError, match=said):
        data([run(tmp_path, "x", normal(4, 4), role="query")], Options(bins=4))
    with pytest.raises(ValueError, match=r"sizes \[4, 8\]"):
        data([run(tmp_path, "x", normal(4, 4)), run(tmp_path, "y", normal(4, 8))], Options(bins=4))
