"""How much seeds vary, told by comparisons of one kind together, as each has too few to tell.

The variance of a comparison is taken for a draw from what is common to its kind, a scaled inverse chi-squared
distribution that is fitted to all of them; each is then replaced by its mean given the draw and the kind, with the
degrees of freedom of both. Where the variances of a kind differ by more than chance would have it, little is borrowed.

Source: Smyth 2004, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments", Statistical Applications in Genetics and Molecular Biology 3, section 6.2; at most the degrees of freedom
of all together, as in his package limma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log

import numpy as np
from scipy.special import digamma, polygamma

from lookalike.statistics.crossed import Estimate

FEWEST = 3  # comparisons that say something of what is common to them
ROUNDING = 1e-12  # of the largest variance: equal seeds come to no more, by rounding


def moderated(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Estimates of one kind of comparison, of which each borrows from the others how much seeds vary.

    Args:
        estimates: differences of one metric, in one unit. Those of a single seed, and those without any variance over
            seeds, stay as they are, and so do all where fewer than `FEWEST` are left. Their cases borrow too, and lend
            nothing: there are as many of one comparison as it has.
    """
    repeated = [place for place, each in enumerate(estimates) if each.seeds > 1]
    least = ROUNDING * max((estimates[place].parts[0][0] for place in repeated), default=0.0)
    able = [place for place in repeated if estimates[place].parts[0][0] > least]
    if len(able) < FEWEST:
        return list(estimates)
    variances = np.array([estimates[place].parts[0][0] * estimates[place].seeds for place in able])
    freedoms = np.array([estimates[place].parts[0][1] for place in able])
    common, weight = _prior(variances, freedoms)

    def lent(estimate: Estimate) -> Estimate:
        if estimate.seeds < 2 or estimate.parts[0][0] <= least:
            return estimate
        (variance, freedom), *rest = estimate.parts
        own = variance * estimate.seeds
        borrowed = common if weight == inf else (weight * common + freedom * own) / (weight + freedom)
        part = (float(borrowed) / estimate.seeds, float(min(weight + freedom, freedoms.sum())))
        return replace(estimate, parts=(part, *rest))

    found = [replace(each, cases=tuple(lent(case) for case in each.cases)) for each in estimates]
    for place in able:
        found[place] = lent(found[place])
    return found


def _prior(variances: np.ndarray, freedoms: np.ndarray) -> tuple[float, float]:
    """Variance that is common, and the degrees of freedom that it counts for, infinite where all are alike."""
    logs = np.log(variances) - digamma(freedoms / 2) + np.log(freedoms / 2)
    excess = float(logs.var(ddof=1) - polygamma(1, freedoms / 2).mean())
    if excess <= 0:
        return exp(float(logs.mean())), inf
    half = _inverse_trigamma(excess)
    return exp(float(logs.mean()) + float(digamma(half)) - log(half)), 2 * half


def _inverse_trigamma(value: float) -> float:
    """Solution x of ``polygamma(1, x) == value``, by Newton's method on its reciprocal, which is nearly straight."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x
