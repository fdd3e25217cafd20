"""The difference of two recipes over seeds and test classes, and how far it can be trusted beyond both.

Each seed is tested on each class, so the two are crossed: a difference varies with the seed, with the class, and with
their combination. An interval over seeds alone holds for the classes that happen to be in the test half; one that is to
hold for others of their kind takes both parts. The model is that of two-way random effects, weighted as the metric is:

    d_sc = mu + a_s + b_c + e_sc,    mean = sum_c w_c mean_s d_sc

Source: Searle, Casella, McCulloch 1992, "Variance Components", section 4.7, for equal weights; Banerjee 1960 for the
interval of a mean whose error has two parts that are estimated apart. With unequal weights the estimates are those that
have no bias if variances are equal.

Three seeds tell little of how much seeds vary: once in ten times they show a tenth of it. One quantile for both parts,
of Satterthwaite's degrees of freedom, hardly sees that where there are many classes: at a level of 99.6 %, as many
comparisons ask for, its intervals missed up to six times too often. So each part takes the quantile of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import


@dataclass(frozen=True)
class Estimate:
    """A mean difference with what is known of its error.

    Attributes:
        mean: in the unit of the differences.
        parts: variances of the mean that add up, each with the degrees of freedom of its estimate: that of other seeds,
            with the combinations of seeds and classes, and that of other classes; none of a single number.
        seeds: number of seeds.
        classes: number of classes, 1 where they were not told apart.
    """

    mean: float
    parts: tuple[tuple[float, float], ...]
    seeds: int
    classes: int

    def interval(self, error: float) -> tuple[float, float]:
        """Ends of an interval that misses the truth with a probability of about ``error``; NaN where none is known.

        With a handful of classes and many seeds up to twice as often, as the part of classes is then known badly.

        The square of its half is the sum of the squared halves of Student's intervals of the parts (Banerjee 1960).
        """
        if not self.parts:
            return nan, nan
        quantiles = [float(student_quantile(freedom, 1 - error / 2)) for _, freedom in self.parts]
        squares = [variance * each**2 for (variance, _), each in zip(self.parts, quantiles, strict=True)]
        return self.mean - sqrt(sum(squares)), self.mean + sqrt(sum(squares))


@dataclass(frozen=True)
class Crossed:
    """Differences of two recipes.

    Attributes:
        differences: ``(S, C)``, as for `crossed_estimate`.
        weights: ``(C,)``, as for it.
    """

    differences: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.differences)

    def estimate(self, seeds: int | None = None) -> Estimate:
        """Of the first ``seeds``, or all: `crossed_estimate`."""
        return crossed_estimate(self.differences[:seeds], self.weights)


def crossed_estimate(differences: ArrayLike, weights: ArrayLike | None = None) -> Estimate:
    """Mean difference over seeds and classes.

    Args:
        differences: ``(S, C)``, first recipe minus second, per seed and class; ``(S, 1)`` where classes are not told
            apart, whose interval is over seeds alone.
        weights: ``(C,)``, the share of a class in the metric, such as its number of queries; equal ones if left out.

    Raises:
        ValueError: for another shape, no values, a value that is not finite, or weights that are not positive.
    """
    values, shares = _checked(differences, weights)
    seeds, classes = values.shape
    squares = float(shares @ shares)
    over_seeds, over_classes, of_both = _errors(values, shares)
    # The parts of seeds and of classes each hold that of their combination, which counts once.
    parts = [(over_seeds, seeds - 1.0)] if seeds > 1 else []
    if classes > 1:
        parts.append((max(0.0, over_classes - of_both), 1 / squares - 1))
    return Estimate(float(values.mean(axis=0) @ shares), tuple(parts), seeds, classes)


def deviations(differences: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float, float]:
    """Standard deviations of the model above, estimated: of seeds ``a_s``, of classes ``b_c``, of both ``e_sc``.

    Args:
        differences: as for `crossed_estimate`; 0 is what a single seed tells of seeds, a single class of classes.
        weights: as for it.

    Raises:
        ValueError: as it.
    """
    values, shares = _checked(differences, weights)
    squares = float(shares @ shares)
    over_seeds, over_classes, of_both = _errors(values, shares)
    return (
        sqrt(max(0.0, over_seeds - of_both) * len(values)),
        sqrt(max(0.0, over_classes - of_both) / squares),
        sqrt(of_both * len(values) / squares),
    )


def _checked(differences: ArrayLike, weights: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences, and weights that sum to one."""
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"differences must be (S, C) finite numbers, at least one, not {values.shape}")
    classes = values.shape[1]
    shares = np.ones(classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (classes,) or not (shares > 0).all() or not np.isfinite(shares).all():
        raise ValueError(f"weights must be ({classes},) numbers above 0, not {shares.shape}")
    return values, shares / shares.sum()


def _errors(values: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """Variances of the mean over seeds and over classes, each with that of their combination, and the last alone."""
    seeds, classes = values.shape
    of_seed, of_class = values @ shares, values.mean(axis=0)
    mean = float(of_class @ shares)
    # What a squared deviation from the weighted mean comes to, as a share of its variance.
    kept = 1 - 2 * shares + float(shares @ shares)
    over_seeds = float(of_seed.var(ddof=1)) / seeds if seeds > 1 else 0.0
    over_classes = float((shares**2 * (of_class - mean) ** 2 / kept).sum()) if classes > 1 else 0.0
    of_both = 0.0
    if seeds > 1 and classes > 1:
        rest = values - of_seed[:, None] - of_class + mean
        of_both = float((shares**2 * (rest**2).sum(axis=0) / kept).sum()) / (seeds * (seeds - 1))
    return over_seeds, over_classes, of_both
