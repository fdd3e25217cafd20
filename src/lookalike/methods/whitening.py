"""Linear maps of embeddings in closed form: whitening, and relevant component analysis (RCA). Nothing is trained.

Both are ``x -> C^(-1/2) (x - m)``, where m is the mean of the training embeddings and ``C = (1 - s) S + s tr(S)/D I``.
S is their whole covariance for whitening, which needs no labels, and their covariance within classes for RCA. The maps
are compared by the cosine, which is that under the inverse of C.

Source: Bar-Hillel, Hertz, Shental and Weinshall, "Learning Distance Functions Using Equivalence Relations" (ICML 2003),
with whole classes as chunklets. Differs: the shrinkage s and the cosine are ours; with a cosine it is what speaker
recognition calls within-class covariance normalisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from torch import Tensor, nn

from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings
from lookalike.models.embedder import Embedder

Array = NDArray[np.float64]
SHRINKAGES = (0.05, 0.1, 0.2, 0.4, 0.8)  # among which one is chosen
FOLDS = 2  # each class is held out of one
SEED = 0  # of the classes that are held out together


@dataclass(frozen=True)
class LinearMap:
    """A map ``x -> W x + b`` of embeddings.

    Attributes:
        weight: ``(D', D)`` float64.
        bias: ``(D',)`` float64.
        shrinkage: s, as it was given or chosen.
    """

    weight: Tensor
    bias: Tensor
    shrinkage: float

    def __call__(self, embeddings: Tensor) -> Tensor:
        """Embeddings ``(N, D)`` mapped to ``(N, D')``, not normalised, of their own type."""
        return embeddings @ self.weight.T.to(embeddings) + self.bias.to(embeddings)


def whitening(embeddings: Tensor, *, shrinkage: float | None = None, dim: int | None = None) -> LinearMap:
    """The map after which embeddings vary the same in all directions, but for the shrinkage.

    Args:
        embeddings: ``(N, D)``, not normalised.
        shrinkage: s in [0, 1]; ``None`` for that of oracle approximating shrinkage.
        dim: how many numbers are kept; ``None`` for all D. See `relevant_components`.

    Raises:
        ValueError: as `relevant_components`, but for what it says of labels.

    Source: of the chosen shrinkage Chen, Wiesel, Eldar and Hero (2010), as scikit-learn's ``OAS`` computes it.
    """
    rows = _checked(embeddings, shrinkage, dim)
    if shrinkage is None:
        from sklearn.covariance import oas  # which takes half a second to import

        shrinkage = float(oas(rows)[1])
    return _Fit(rows, None).map(shrinkage, dim)


def relevant_components(
    embeddings: Tensor, labels: Tensor, *, shrinkage: float | None = None, dim: int | None = None
) -> LinearMap:
    """The map after which embeddings of a class vary the same in all directions, but for the shrinkage.

    Args:
        embeddings: ``(N, D)``, not normalised.
        labels: ``(N,)`` int64; classes of one image say nothing of what varies within a class, and do no harm.
        shrinkage: s in [0, 1]; ``None`` chooses it among `SHRINKAGES`, see `chosen_shrinkage`.
        dim: how many numbers are kept, the leading principal axes of the mapped training embeddings; ``None`` for
            all D.

    Raises:
        ValueError: for a shrinkage or a size out of range, embeddings that do not vary or of which no two are of one
            class, or too few for the inverse of a covariance without shrinkage; and as `chosen_shrinkage`.
    """
    rows, classes = _checked(embeddings, shrinkage, dim), _classes(embeddings, labels)
    if shrinkage is None:
        shrinkage = chosen_shrinkage(embeddings, labels)
    return _Fit(rows, classes).map(shrinkage, dim)


def chosen_shrinkage(
    embeddings: Tensor, labels: Tensor, among: Sequence[float] = SHRINKAGES, *, seed: int = SEED
) -> float:
    """The shrinkage of RCA with the best R@1 on classes that the map has not seen; of equal ones the largest.

    Classes of two images and more are drawn into `FOLDS` parts of as many; each is tested by a map of the others.

    Args:
        embeddings: ``(N, D)``.
        labels: ``(N,)`` int64.
        among: what is tried.
        seed: of the draw.

    Raises:
        ValueError: if fewer than two classes for each part have two images.
    """
    rows, classes = _checked(embeddings, None, None), _classes(embeddings, labels)
    if len(several := _several(classes)) < 2 * FOLDS:
        raise ValueError(
            f"shrinkage=None: it is chosen on classes held out, which needs {2 * FOLDS} of two images or more, not "
            f"{len(several)}; give one, such as 0.2"
        )
    return max(zip(_hits(rows, classes, among, seed), among, strict=True))[1]


def held_out_recall(
    embeddings: Tensor, labels: Tensor, shrinkage: float, *, seed: int = SEED
) -> tuple[float, float] | None:
    """R@1 without and with RCA, 0 to 1, on the classes by which `chosen_shrinkage` chooses; ``None`` if it could not.

    Args:
        embeddings: ``(N, D)``.
        labels: ``(N,)`` int64.
        shrinkage: of the map. One that was chosen on the same classes makes the second number a little too good.
        seed: of the draw.

    Raises:
        ValueError: as `relevant_components`.
    """
    rows, classes = _checked(embeddings, shrinkage, None), _classes(embeddings, labels)
    if len(several := _several(classes)) < 2 * FOLDS:
        return None
    before, after = _hits(rows, classes, [None, shrinkage], seed)
    count = int(np.isin(classes, several).sum())
    return before / count, after / count


def mappable(model: nn.Module) -> Embedder:
    """The model, if its embeddings can be mapped by a linear layer in place of its head.

    Raises:
        ValueError: for a model of another kind than an embedder, or a head that is not linear, such as that of stripes.
    """
    if not isinstance(model, Embedder):
        raise ValueError(
            f"{type(model).__name__}: only an Embedder, which compares one vector of a picture, can be mapped; AVSL "
            "compares over levels, DIML by the structure of regions"
        )
    if not isinstance(model.head, nn.Linear | nn.Identity):
        head = type(model.head).__name__
        raise ValueError(f"{head} of pooling {model.pooling!r}: a map can only be joined to a linear head or none")
    return model


def mapped(model: nn.Module, linear_map: LinearMap) -> Embedder:
    """An embedder whose embeddings are mapped, with one linear layer as its head.

    Args:
        model: an embedder whose head is linear, or that has none; it stays as it is, and shares its trunk.
        linear_map: of its embeddings.

    Raises:
        ValueError: as `mappable`, or for a map of embeddings of another size.
    """
    embedder = mappable(model)
    head = embedder.head
    weight, bias = linear_map.weight, linear_map.bias
    if weight.shape[1] != embedder.dim:
        raise ValueError(f"the map takes embeddings of {weight.shape[1]} numbers, the embedder's have {embedder.dim}")
    if isinstance(head, nn.Linear):
        own = head.weight.detach().double().cpu()
        bias = bias if head.bias is None else bias + weight @ head.bias.detach().double().cpu()
        weight = weight @ own
    joined = Embedder(embedder.trunk, pooling=embedder.pooling, dim=len(bias))
    layer = cast(nn.Linear, joined.head)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return joined.to(next(embedder.parameters()).device).train(embedder.training)


def _several(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Classes of two images or more."""
    names, counts = np.unique(classes, return_counts=True)
    return names[counts > 1]


def _hits(rows: Array, classes: NDArray[np.int64], among: Sequence[float | None], seed: int) -> list[int]:
    """Images of held-out classes whose nearest is of their class, by RCA of each shrinkage, ``None`` for no map."""
    found = [0] * len(among)
    for held in np.array_split(np.random.default_rng(seed).permutation(_several(classes)), FOLDS):
        seen, tested = ~np.isin(classes, held), np.isin(classes, held)
        fit, of_class = _Fit(rows[seen], classes[seen]), torch.from_numpy(classes[tested])
        images = torch.from_numpy(rows[tested])
        for place, shrinkage in enumerate(among):
            shown = (images if shrinkage is None else fit.map(shrinkage, None)(images)).float()
            metrics = retrieval_metrics_from_embeddings(shown, of_class, shown, of_class, ks=(1,), self_match=True)
            found[place] += round(metrics["R@1"] * len(shown))  # hits, so that equal ones are
    return found


class _Fit:
    """Variances and axes of embeddings, from which the map by any shrinkage follows.

    Args:
        rows: ``(N, D)``.
        classes: ``(N,)`` for RCA, ``None`` for whitening.
    """

    def __init__(self, rows: Array, classes: NDArray[np.int64] | None) -> None:
        self._mean = rows.mean(axis=0)
        self._rounding = (8 * np.finfo(rows.dtype).eps * np.abs(rows).max()) ** 2  # variance that equal rows may have
        centred = rows - self._mean
        self._rows, self._whole = centred, classes is None
        if classes is not None:
            place = np.unique(classes, return_inverse=True)[1]
            sums = np.zeros((place.max() + 1, rows.shape[1]))
            np.add.at(sums, place, centred)
            centred = centred - (sums / np.bincount(place)[:, None])[place]
        self._variances, self._axes = eigh(centred.T @ centred / len(rows))  # rising; (D,) and (D, D), an axis a column

    def map(self, shrinkage: float, dim: int | None) -> LinearMap:
        """The map by a shrinkage."""
        variances = (1 - shrinkage) * self._variances + shrinkage * self._variances.mean()
        if not self._variances.mean() > self._rounding:
            what = "the embeddings do not vary" if self._whole else "no two embeddings of one class differ"
            raise ValueError(f"{what}: there is nothing to take a map from")
        if variances[0] <= _negligible(variances):
            size, rank = len(variances), int((variances > _negligible(variances)).sum())
            within = "" if self._whole else " within classes"
            raise ValueError(
                f"shrinkage={shrinkage:g}: {len(self._rows)} embeddings vary{within} along {rank} of {size} axes, and "
                "the map needs all of them; a shrinkage above 0, such as 0.2, is right"
            )
        weight = (self._axes / np.sqrt(variances)) @ self._axes.T
        if dim is not None:
            weight = self._leading(weight, dim) @ weight
        return LinearMap(torch.from_numpy(weight), torch.from_numpy(-weight @ self._mean), float(shrinkage))

    def _leading(self, weight: Array, dim: int) -> Array:
        """The leading principal axes ``(dim, D)`` of the mapped embeddings.

        After whitening these are where the embeddings themselves vary most: s > 0 leaves their order, s = 0 none.
        """
        variances, axes = self._variances, self._axes
        if not self._whole:
            moved = self._rows @ weight.T
            variances, axes = eigh(moved.T @ moved / len(moved))
        rank = int((variances > _negligible(variances)).sum())
        if dim > rank:
            raise ValueError(
                f"dim={dim}: {len(self._rows)} embeddings of {len(weight)} numbers vary along {rank} axes, which is "
                "the most that can be kept"
            )
        leading: Array = axes[:, ::-1][:, :dim].T
        return leading


def _negligible(variances: Array) -> float:
    """Variance that is none but for rounding, as `numpy.linalg.matrix_rank` has it."""
    return float(variances.max() * len(variances) * np.finfo(variances.dtype).eps)


def _checked(embeddings: Tensor, shrinkage: float | None, dim: int | None) -> Array:
    if embeddings.ndim != 2 or 0 in embeddings.shape:
        raise ValueError(f"embeddings have shape {tuple(embeddings.shape)}, they must be (N, D) with N, D >= 1")
    if not torch.isfinite(embeddings).all():
        raise ValueError("embeddings hold NaN or infinity")
    if shrinkage is not None and not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage={shrinkage:g} is outside [0, 1]")
    if dim is not None and not 1 <= dim <= embeddings.shape[1]:
        raise ValueError(f"dim={dim} is outside [1, {embeddings.shape[1]}], the size of the embeddings")
    return embeddings.detach().double().cpu().numpy()


def _classes(embeddings: Tensor, labels: Tensor) -> NDArray[np.int64]:
    if labels.shape != embeddings.shape[:1] or labels.is_floating_point():
        raise ValueError(
            f"labels have shape {tuple(labels.shape)}, {labels.dtype}; they must be ({len(embeddings)},) int64"
        )
    return labels.cpu().numpy()
