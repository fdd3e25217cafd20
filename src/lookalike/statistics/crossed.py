"""The difference of two recipes over seeds and test classes, and how far it can be trusted beyond both.

Each seed is tested on each class, so the two are crossed: a difference varies with the seed, with the class, and with
their combination. An interval over seeds alone holds for the classes that happen to be in the test half; one that is to
hold for others of their kind takes both parts. The model is that of two-way random effects, weighted as the metric is:

    d_sc = mu + a_s + b_c + e_sc,    mean = sum_c w_c mean_s d_sc

Source: Searle, Casella, McCulloch 1992, "Variance Components", section 4.7, for equal weights; Satterthwaite 1946 for
the degrees of freedom. With unequal weights the estimates are those that have no bias if variances are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr as student_probability
from scipy.special import stdtrit as student_quantile  # scipy.stats takes a second longer to import


@dataclass(frozen=True)
class Estimate:
    """A mean difference with what is known of its error.

    Attributes:
        mean: in the unit of the differences.
        standard_error: over seeds and classes; NaN where there is a single seed and no classes.
        freedom: degrees of freedom of the standard error.
        seeds: number of seeds.
        classes: number of classes, 1 where they were not told apart.
        of_seeds: variance of the mean that other seeds would bring.
        of_classes: variance of the mean that other classes would bring.
    """

    mean: float
    standard_error: float
    freedom: float
    seeds: int
    classes: int
    of_seeds: float
    of_classes: float

    def interval(self, error: float) -> tuple[float, float]:
        """Ends of Student's interval that misses the truth with a probability of ``error``; NaN without an error."""
        if np.isnan(self.standard_error):
            return nan, nan
        half = self.standard_error and float(student_quantile(self.freedom, 1 - error / 2)) * self.standard_error
        return self.mean - half, self.mean + half

    def probability(self, value: float = 0.0) -> float:
        """Two-sided probability of a mean at least so far from ``value``, if that is the true difference."""
        if np.isnan(self.standard_error):
            return nan
        if not self.standard_error:
            return 1.0 if self.mean == value else 0.0
        return float(2 * student_probability(self.freedom, -abs(self.mean - value) / self.standard_error))


def crossed_estimate(differences: ArrayLike, weights: ArrayLike | None = None) -> Estimate:
    """Mean difference over seeds and classes.

    Args:
        differences: ``(S, C)``, first recipe minus second, per seed and class; ``(S, 1)`` where classes are not told
            apart, whose interval is over seeds alone.
        weights: ``(C,)``, the share of a class in the metric, such as its number of queries; equal ones if left out.

    Raises:
        ValueError: for another shape, no values, a value that is not finite, or weights that are not positive.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"differences must be (S, C) finite numbers, at least one, not {values.shape}")
    seeds, classes = values.shape
    shares = np.ones(classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (classes,) or not (shares > 0).all() or not np.isfinite(shares).all():
        raise ValueError(f"weights must be ({classes},) numbers above 0, not {shares.shape}")
    shares = shares / shares.sum()
    of_seed, of_class = values @ shares, values.mean(axis=0)
    mean = float(of_class @ shares)
    if seeds == 1 and classes == 1:
        return Estimate(mean, nan, nan, 1, 1, nan, nan)
    rest = values - of_seed[:, None] - of_class + mean
    # What a squared deviation from the weighted mean comes to, as a share of its variance.
    squares = float(shares @ shares)
    kept = 1 - 2 * shares + squares
    over_seeds = float(of_seed.var(ddof=1)) / seeds if seeds > 1 else 0.0
    over_classes = float((shares**2 * (of_class - mean) ** 2 / kept).sum()) if classes > 1 else 0.0
    of_both = 0.0
    if seeds > 1 and classes > 1:
        of_both = float((shares**2 * (rest**2).sum(axis=0) / kept).sum()) / (seeds * (seeds - 1))
    variance, freedom = _combined(over_seeds, over_classes, of_both, seeds - 1, 1 / squares - 1)
    return Estimate(
        mean,
        sqrt(variance),
        freedom,
        seeds,
        classes,
        max(0.0, over_seeds - of_both) if classes > 1 else over_seeds,
        max(0.0, over_classes - of_both),
    )


def _combined(seeds: float, classes: float, both: float, of_seeds: float, of_classes: float) -> tuple[float, float]:
    """Variance of the mean and its degrees of freedom.

    The parts of seeds and of classes each hold that of their combination, which counts once. Where one is not above
    that, it shows no variance of its own, and the other is the whole.
    """
    if seeds > both and classes > both and of_seeds > 0 < of_classes:
        variance = seeds + classes - both
        spread = seeds**2 / of_seeds + classes**2 / of_classes + both**2 / (of_seeds * of_classes)
        return variance, variance**2 / spread
    if seeds > both:
        return seeds, of_seeds
    if classes > both:
        return classes, of_classes
    return both, of_seeds * of_classes or max(of_seeds, of_classes)
