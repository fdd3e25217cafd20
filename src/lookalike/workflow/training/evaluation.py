"""Evaluation of a model: the representation of test pictures, many at once, and their comparison.

`REPRESENTATIONS` and `SCORINGS` hold both by the names that recipes give them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from lookalike.methods.avsl.scoring import fixed_weights, graph
from lookalike.methods.contextual.retrieval import shared_neighbours
from lookalike.methods.diml.head import Pooling
from lookalike.methods.diml.model import GlobalVector, LocatedEmbedder
from lookalike.methods.diml.scoring import located, structural_matching
from lookalike.methods.whitening import LinearMap, chosen_shrinkage, relevant_components, whitening
from lookalike.metrics.search import Scoring, cosine
from lookalike.workflow.training.images import Loader, in_order
from lookalike.workflow.training.learner import Learner, Tensors

Represent = Callable[[nn.Module, Tensor], Tensors]
Fit = tuple[Tensors, Tensor]  # what a learner keeps of N training pictures, and their labels ``(N,)``
SCORINGS: dict[str, Scoring] = {
    "cosine": cosine,
    "fixed_weights": fixed_weights,
    "graph": graph,
    "shared_neighbours": shared_neighbours,
    "structural_matching": structural_matching,
}
# The others compare what was kept of the images, whatever network that was.
READ_THE_MODEL = frozenset({"fixed_weights", "graph"})
# These compare pictures by their neighbours, so that a part of the queries cannot be ranked alone.
NEED_ALL = frozenset({"shared_neighbours"})
SHRINKAGE_OF_FEW = 0.2
LOG = logging.getLogger(__name__)
SEARCHED_AT_ONCE = 256  # pictures of a search between epochs


def own(learner: type[Learner], *, seed: int) -> Represent:
    """Representation by the method itself."""
    return learner.represent


def locations(
    learner: type[Learner],
    *,
    seed: int,
    side: int = 4,
    pooling: Pooling = "resample",
    global_vector: GlobalVector = "embedding",
) -> Represent:
    """Embedding and regions of an embedder trained in any way, for structural matching.

    Args:
        learner: not read.
        seed: not read.
        side: G, as of `LocatedEmbedder`.
        pooling: as of `LocatedEmbedder`.
        global_vector: as of `LocatedEmbedder`.
    """

    @cache
    def around(model: nn.Module) -> LocatedEmbedder:
        return LocatedEmbedder(model, "trunk", side, pooling=pooling, global_vector=global_vector)

    return lambda model, images: located(around(model), images)


def random_vectors(learner: type[Learner], *, seed: int, dim: int) -> Represent:
    """A unit vector per picture, whatever it shows: the level of chance.

    Args:
        learner: not read.
        seed: seed of the vectors.
        dim: numbers of a vector.
    """
    generator = torch.Generator().manual_seed(seed)

    def represent(model: nn.Module, images: Tensor) -> Tensors:
        drawn = torch.randn(len(images), dim, generator=generator)
        return {"embedding": torch.nn.functional.normalize(drawn, dim=1)}

    return represent


def whitened(learner: type[Learner], *, seed: int, fit: Fit, shrinkage: float | None = None) -> Represent:
    """Embedding after whitening by those of the training pictures, without their labels.

    Args:
        learner: of a method that keeps one vector of a picture.
        seed: not read.
        fit: on what.
        shrinkage: as of `lookalike.methods.whitening.whitening`.
    """
    return _mapped(learner, whitening(fit[0]["embedding"], shrinkage=shrinkage))


def relevant(learner: type[Learner], *, seed: int, fit: Fit, shrinkage: float | None = None) -> Represent:
    """Embedding after relevant component analysis of those of the training pictures.

    Args:
        learner: of a method that keeps one vector of a picture.
        seed: not read.
        fit: on what.
        shrinkage: as of `lookalike.methods.whitening.relevant_components`; of too few classes to choose one it is
            `SHRINKAGE_OF_FEW`, and a warning says so.
    """
    embeddings, labels = fit[0]["embedding"], fit[1]
    if shrinkage is None:
        try:
            shrinkage = chosen_shrinkage(embeddings, labels)
        except ValueError as error:
            shrinkage = SHRINKAGE_OF_FEW
            LOG.warning("%s. Taken is %g", error, shrinkage)
    return _mapped(learner, relevant_components(embeddings, labels, shrinkage=shrinkage))


def _mapped(learner: type[Learner], linear_map: LinearMap) -> Represent:
    return lambda model, images: {"embedding": linear_map(learner.represent(model, images)["embedding"])}


REPRESENTATIONS: dict[str, Callable[..., Represent]] = {
    "own": own,
    "locations": locations,
    "random_vectors": random_vectors,
    "relevant": relevant,
    "whitened": whitened,
}


def represent_images(
    represent: Callable[[nn.Module, Tensor], Tensors],
    model: nn.Module,
    loader: Loader,
    *,
    batch_size: int,
) -> Tensors:
    """Representations of all pictures, in their order.

    The model is left in evaluation mode. Where a device has no memory for so many pictures at once, half as many are
    tried: a network in evaluation mode takes each by itself.

    Args:
        represent: function of the model and a batch of images, gives what is kept of them.
        model: takes images ``(B, 3, H, W)``.
        loader: loads N pictures to the device that the model is on.
        batch_size: pictures at once, at most.

    Returns:
        Tensors with N rows on the CPU.

    Raises:
        torch.OutOfMemoryError: if there is none for a single picture.
    """
    model.eval()
    while True:
        try:
            return _represented(represent, model, loader, batch_size)
        except torch.OutOfMemoryError:
            if batch_size == 1:
                raise
            batch_size = (batch_size + 1) // 2
            print(f"as many pictures at once do not fit into the memory of the device; {batch_size} are tried")
        torch.cuda.empty_cache()


@torch.inference_mode()
def _represented(
    represent: Callable[[nn.Module, Tensor], Tensors], model: nn.Module, loader: Loader, batch_size: int
) -> Tensors:
    parts = []
    for pictures, _ in loader.batches(in_order(len(loader.images), batch_size), seed=0):
        parts.append({name: tensor.cpu() for name, tensor in represent(model, pictures).items()})
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
