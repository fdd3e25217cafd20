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
from numpy.typing import ArrayLike
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
        cases: where something is said of several cases, the estimates of all; this one is then of the case that the
            others' seeds have chosen, and the lower end of its interval that of the case that decides.
        needed: how many cases it is said of; all, or at least so many.
    """

    mean: float
    parts: tuple[tuple[float, float], ...]
    seeds: int
    classes: int
    cases: tuple[Estimate, ...] = ()
    needed: int = 0

    def interval(self, error: float) -> tuple[float, float]:
        """Ends of an interval that misses the truth with a probability of at most ``error``; NaN where none is known.

        The square of its half is the sum of the squared halves of Student's intervals of the parts (Banerjee 1960).

        That all of several cases are above a bound is so if the lowest of their lower ends is (Berger 1982); that at
        least u of K are, if u lower ends are, each at the error divided by K - u + 1 (Benjamini and Heller 2008).
        """
        if not self.parts:
            return nan, nan
        quantiles = [float(student_quantile(freedom, 1 - error / 2)) for _, freedom in self.parts]
        squares = [variance * each**2 for (variance, _), each in zip(self.parts, quantiles, strict=True)]
        low, high = self.mean - sqrt(sum(squares)), self.mean + sqrt(sum(squares))
        if self.cases:
            shared = error / (len(self.cases) - self.needed + 1)
            lows = sorted((case.interval(shared)[0] for case in self.cases), reverse=True)
            low = min(low, lows[self.needed - 1])
        return low, high


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
    # What a squared deviation from the weighted mean comes to, as a share of its variance.
    squares = float(shares @ shares)
    kept = 1 - 2 * shares + squares
    over_seeds = float(of_seed.var(ddof=1)) / seeds if seeds > 1 else 0.0
    over_classes = float((shares**2 * (of_class - mean) ** 2 / kept).sum()) if classes > 1 else 0.0
    of_both = 0.0
    if seeds > 1 and classes > 1:
        rest = values - of_seed[:, None] - of_class + mean
        of_both = float((shares**2 * (rest**2).sum(axis=0) / kept).sum()) / (seeds * (seeds - 1))
    # The parts of seeds and of classes each hold that of their combination, which counts once.
    parts = [(over_seeds, seeds - 1.0)] if seeds > 1 else []
    if classes > 1:
        parts.append((max(0.0, over_classes - of_both), 1 / squares - 1))
    return Estimate(mean, tuple(parts), seeds, classes)
