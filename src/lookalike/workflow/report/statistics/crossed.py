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

Seeds may train on either half of the classes and be tested on the other. Seeds and classes are then crossed within each
half, and halves share neither: the mean is that of the halves' means, and each variance the sum of theirs. The two sets
of training classes are fixed, so an interval does not cover others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from scipy.special import stdtr as student  # scipy.stats takes a second longer to import
from scipy.special import stdtrit as student_quantile

NEAR = 1e-6  # of a logarithm that is sought


@dataclass(frozen=True)
class Estimate:
    """A mean difference with the variances behind its error.

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

    def errors(self, halves: ArrayLike) -> NDArray[np.float64]:
        """The error at which an interval's half is as wide as each of ``halves``: `interval` the other way round.

        An interval of more error is narrower. 1 is that of a half below zero, and of all where nothing is known.
        """
        asked = np.asarray(halves, dtype=np.float64)
        if not self.parts:
            return np.ones_like(asked)
        variances, freedoms = (np.array(each)[:, None] for each in zip(*self.parts, strict=True))
        scale = sqrt(float(variances.sum()))
        if scale == 0:
            return np.where(asked > 0, 0.0, 1.0)
        wide = np.maximum(np.where(asked > 0, asked, scale), 1e-6 * scale).ravel()  # narrower ones err always
        # With one freedom for all parts it is Student's, so the answer lies between those of the least and the most.
        ends = (2 * student(freedom, -wide / scale) for freedom in (freedoms.max(), freedoms.min()))
        before, last = (np.log(np.maximum(end, np.finfo(np.float64).tiny)) for end in ends)

        def excess(logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
            quantiles = -student_quantile(freedoms, np.exp(logarithm) / 2)  # whose squares may be beyond a number
            return np.asarray(logsumexp(2 * np.log(quantiles), axis=0, b=variances) / 2 - np.log(wide))

        low, high = np.minimum(before, last), np.maximum(before, last)
        of_before, of_last = excess(before), excess(last)
        for _ in range(10):  # false position (Illinois)
            step = np.divide(last - before, of_last - of_before, out=np.zeros_like(last), where=of_last != of_before)
            found = last - step * of_last
            of_found = excess(found)
            stays = of_found * of_last > 0
            before, of_before = np.where(stays, before, last), np.where(stays, of_before / 2, of_last)
            last, of_last = found, of_found
        away = ~(np.abs(of_last) <= NEAR)  # where the ends were too far apart for that; they are halved
        for _ in range(64 if away.any() else 0):
            middle = (low + high) / 2
            below = excess(middle) <= 0
            low, high = np.where(below, low, middle), np.where(below, middle, high)
            last = np.where(away, middle, last)
        return np.asarray(np.where(asked > 0, np.exp(np.minimum(last, 0)).reshape(asked.shape), 1.0))


@dataclass(frozen=True)
class Part:
    """A part of the variance of a mean.

    Attributes:
        variance: as estimated.
        freedom: degrees of freedom of the estimate.
        factor: what the part comes to where single differences have a variance of 1.
    """

    variance: float
    freedom: float
    factor: float


@dataclass(frozen=True)
class Variances:
    """A mean difference with its variances over seeds, over classes and over both.

    Attributes:
        mean: in the unit of the differences.
        over_seeds: its variance over seeds, with that of the combinations.
        over_classes: the same over classes.
        of_both: that of the combinations alone.
        seeds: number of seeds.
        classes: number of classes.
    """

    mean: float
    over_seeds: Part
    over_classes: Part
    of_both: Part
    seeds: int
    classes: int

    def estimate(self, over_seeds: tuple[float, float] | None = None) -> Estimate:
        """The mean and its error.

        Args:
            over_seeds: variance over seeds with the combinations and its degrees of freedom, in place of its own.
        """
        # The parts of seeds and of classes each hold that of their combination, which counts once.
        own = self.over_seeds.variance, self.over_seeds.freedom
        parts = [over_seeds or own] if self.over_seeds.freedom else []
        if self.classes > 1:
            parts.append((max(0.0, self.over_classes.variance - self.of_both.variance), self.over_classes.freedom))
        return Estimate(self.mean, tuple(parts), self.seeds, self.classes)


@dataclass(frozen=True)
class Crossed:
    """Differences of two recipes.

    Attributes:
        differences: ``(S, C)``, as for `variances`.
        weights: ``(C,)``, as for it.
    """

    differences: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return len(self.differences)

    def estimate(self, seeds: int | None = None) -> Estimate:
        """Of the first ``seeds``, or all: `crossed_estimate`."""
        return crossed_estimate(self.differences[:seeds], self.weights)


def crossed_estimate(differences: ArrayLike, weights: ArrayLike | None = None) -> Estimate:
    """Mean difference over seeds and classes, each with the variance that they show: see `variances`."""
    return variances(differences, weights).estimate()


def variances(differences: ArrayLike, weights: ArrayLike | None = None) -> Variances:
    """Mean difference over seeds and classes, and how much it varies with each.

    Args:
        differences: ``(S, C)``, first recipe minus second, per seed and class; ``(S, 1)`` where classes are not told
            apart, whose interval is over seeds alone; NaN where a seed was not tested on a class.
        weights: ``(C,)``, the share of a class in the metric, such as its number of queries; equal ones if left out.

    Raises:
        ValueError: for another shape, no values, a value that is infinite, a class without any, seeds that share some
            of their classes but not all, a half of a single seed, or weights that are not positive.
    """
    values, shares = _checked(differences, weights)
    if not np.isnan(values).any():
        return _of_half(values, shares)
    halves = _halves(values)
    told = [_of_half(values[np.ix_(rows, columns)], shares[columns]) for rows, columns in halves]
    parts = [float(shares[columns].sum()) for _, columns in halves]

    def together(of_halves: Sequence[Part]) -> Part:
        factors = [part**2 * each.factor for part, each in zip(parts, of_halves, strict=True)]
        # Satterthwaite's, of a sum of estimates that are in proportion to the factors.
        spread = sum(factor**2 / each.freedom for factor, each in zip(factors, of_halves, strict=True) if each.freedom)
        return Part(
            sum(part**2 * each.variance for part, each in zip(parts, of_halves, strict=True)),
            sum(factors) ** 2 / spread if spread else 0.0,
            sum(factors),
        )

    return Variances(
        sum(part * each.mean for part, each in zip(parts, told, strict=True)),
        together([each.over_seeds for each in told]),
        together([each.over_classes for each in told]),
        together([each.of_both for each in told]),
        seeds=len(values),
        classes=values.shape[1],
    )


def deviations(differences: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float, float]:
    """Standard deviations of the model above, estimated: of seeds ``a_s``, of classes ``b_c``, of both ``e_sc``.

    Args:
        differences: as for `crossed_estimate`; 0 is what a single seed tells of seeds, a single class of classes.
        weights: as for it.

    Raises:
        ValueError: as it.
    """
    found = variances(differences, weights)
    of_both = found.of_both
    return (
        sqrt(max(0.0, found.over_seeds.variance - of_both.variance) / found.over_seeds.factor),
        sqrt(max(0.0, found.over_classes.variance - of_both.variance) / found.over_classes.factor),
        sqrt(of_both.variance / of_both.factor),
    )


def _checked(differences: ArrayLike, weights: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences, and weights that sum to one."""
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 2 or not values.size or np.isinf(values).any() or np.isnan(values).all(axis=0).any():
        raise ValueError(f"differences must be (S, C) finite numbers, at least one, not {values.shape}")
    classes = values.shape[1]
    shares = np.ones(classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (classes,) or not (shares > 0).all() or not np.isfinite(shares).all():
        raise ValueError(f"weights must be ({classes},) numbers above 0, not {shares.shape}")
    return values, shares / shares.sum()


def _halves(values: NDArray[np.float64]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Seeds and classes that are crossed, for each set of classes that seeds were tested on."""
    tested = ~np.isnan(values)
    alike: dict[bytes, list[int]] = {}
    for seed, of_seed in enumerate(tested):
        alike.setdefault(of_seed.tobytes(), []).append(seed)
    halves = [(np.array(seeds), np.flatnonzero(tested[seeds[0]])) for seeds in alike.values()]
    if sum(len(classes) for _, classes in halves) > values.shape[1]:
        raise ValueError("seeds were tested on classes of which they share some; all or none can be compared")
    if alone := [int(seeds[0]) for seeds, _ in halves if len(seeds) == 1]:
        raise ValueError(f"seed {alone[0]} alone was tested on its half of the classes; a half needs two seeds")
    return halves


def _of_half(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Variances:
    """The model above, where all seeds were tested on all classes."""
    seeds, classes = values.shape
    shares = weights / weights.sum()
    squares = float(shares @ shares)
    of_seed, of_class = values @ shares, values.mean(axis=0)
    mean = float(of_class @ shares)
    # What a squared deviation from the weighted mean comes to, as a share of its variance.
    kept = 1 - 2 * shares + squares
    over_seeds = float(of_seed.var(ddof=1)) / seeds if seeds > 1 else 0.0
    over_classes = float((shares**2 * (of_class - mean) ** 2 / kept).sum()) if classes > 1 else 0.0
    of_both = 0.0
    if seeds > 1 and classes > 1:
        rest = values - of_seed[:, None] - of_class + mean
        of_both = float((shares**2 * (rest**2).sum(axis=0) / kept).sum()) / (seeds * (seeds - 1))
    of_seeds, of_classes = seeds - 1.0, 1 / squares - 1
    return Variances(
        mean,
        Part(over_seeds, of_seeds, 1 / seeds),
        Part(over_classes, of_classes, squares),
        Part(of_both, of_seeds * of_classes, squares / seeds),
        seeds,
        classes,
    )
