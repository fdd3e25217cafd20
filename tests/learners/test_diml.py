"""DIML as recipes train it."""

import pytest
import torch

from lookalike.learners.diml import DIMLLearner
from lookalike.methods.diml.head import mean_vector
from lookalike.tensors import unit


def learner(**method):
    torch.manual_seed(0)
    settings = {
        "backbone": {"name": "tiny", "weights": None, "batch_norm": "trained"},
        "embedding": {"pooling": "average", "dim": 8},
        "method": {"name": "diml", "side": 3, **method},
        "loss": {"name": "margin"},
        "mixed_precision": False,
        "acceleration": [],
    }
    return DIMLLearner(settings, classes=3).eval()


@pytest.fixture
def images():
    """Pictures with something in one corner: three locations a side weigh the positions there differently."""
    shown = torch.zeros(4, 3, 56, 56)
    shown[..., :20, :20] = 5 * torch.randn(4, 3, 20, 20, generator=torch.Generator().manual_seed(1))
    return shown


def global_vectors(trained, images):
    with torch.no_grad():
        return trained.represent(trained.model, images)["embedding"]


def test_the_vector_of_an_image_is_the_mean_of_its_locations_unless_told_otherwise(images):
    trained = learner()
    with torch.no_grad():
        expected = mean_vector(trained.model.regions(images))
    assert torch.allclose(global_vectors(trained, images), expected, atol=1e-6)
    assert torch.equal(global_vectors(learner(global_vector="locations"), images), global_vectors(trained, images))


def test_the_embedding_can_be_the_vector_of_an_image(images):
    trained = learner(global_vector="embedding")
    with torch.no_grad():
        expected = unit(trained.model.embedder(images))
    assert torch.allclose(global_vectors(trained, images), expected, atol=1e-6)
    assert not torch.allclose(global_vectors(trained, images), global_vectors(learner(), images), atol=1e-5)


def test_an_unknown_vector_is_refused_by_name():
    with pytest.raises(ValueError, match="global_vector: unknown 'mean'"):
        learner(global_vector="mean")
