"""A cosine is the sum of what its pairs of locations add, for every pooling that is a sum."""

import pytest
import torch

from lookalike.explanations.activation import by_activation, location_vectors
from trainings import CROP, learner


def embedder(pooling, dim=8):
    return learner("embedder", {"embedding": {"pooling": pooling, "dim": dim}}).model.eval()


@pytest.mark.parametrize("dim", [8, None])
@pytest.mark.parametrize("pooling", ["average", "max", "average_max"])
def test_locations_sum_to_the_embedding(pooling, dim):
    model = embedder(pooling, dim)
    images = torch.randn(3, 3, CROP, CROP, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        vectors = location_vectors(model, model.trunk(images)[-1])
        torch.testing.assert_close(vectors.sum(dim=1).float(), model(images), atol=1e-6, rtol=1e-5)


def test_pairs_are_the_products_of_two_loops():
    model = embedder("average")
    images = torch.randn(2, 1, 3, CROP, CROP, generator=torch.Generator().manual_seed(1))
    found = by_activation(model, images)
    with torch.no_grad():
        maps = [model.trunk(image)[-1][0].double() for image in images]
    height, width = maps[0].shape[1:]
    weight, bias = model.head.weight.double(), model.head.bias.double()
    vectors = [
        [(weight @ each[:, row, column] + bias) / (height * width) for row in range(height) for column in range(width)]
        for each in maps
    ]
    lengths = [sum(each).norm() for each in vectors]
    for i, one in enumerate(vectors[0]):
        for j, other in enumerate(vectors[1]):
            assert float(found.pairs[0, i, j]) == pytest.approx(
                float((one @ other / lengths[0] / lengths[1]).detach()), abs=1e-7
            )
    assert found.grid == (height, width)
    assert float(found.maps[0][0, 0, 1]) == pytest.approx(float(found.pairs[0, 1].sum()))


def test_with_a_negative_the_querys_map_sums_to_the_margin():
    model = embedder("average_max")
    images = torch.randn(3, 2, 3, CROP, CROP, generator=torch.Generator().manual_seed(2))
    found, other = by_activation(model, images), by_activation(model, images[[0, 2]])
    torch.testing.assert_close(found.maps[0].sum(dim=(1, 2)), found.value - other.value)
    torch.testing.assert_close(found.maps[2].sum(dim=(1, 2)), other.value)


@pytest.mark.parametrize("pooling", ["gem", "max_layer_norm"])
def test_a_pooling_that_is_no_sum_is_refused(pooling):
    with pytest.raises(ValueError, match=f"not '{pooling}' and Linear"):
        by_activation(embedder(pooling), torch.zeros(2, 1, 3, CROP, CROP))
