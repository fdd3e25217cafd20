"""Variance over seeds, told by all comparisons of a metric, data set and network together.

Three seeds of a comparison tell little of how much seeds vary; thirty comparisons tell it well. What is pooled is the
ratio of the variance over seeds to the noise within classes, which each comparison measures by itself. Its distribution
over comparisons is that of a scaled F:

    q_i ~ s * F(d_i, d_0)

with d_i, the degrees of freedom of a comparison's seeds. The larger d_0, the more alike comparisons are, and the more
weight the pool has beside a comparison's own ratio:

    ratio_i = (d_0 * s + d_i * q_i) / (d_0 + d_i),    variance over seeds = ratio_i * noise_i

The floor of s and of the ratio is 1: seeds that differ less than the noise within classes do so by luck.

Source: Smyth 2004, "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
Experiments", for the model and the weights. Differs: ``s`` and ``d_0`` are means over their likelihood, where the
source takes moments: a handful of comparisons that happen to be alike does not make all so. The noise of each
comparison limits the degrees of freedom as well.

Comparisons that share a baseline are not independent. Two that correlate by r tell each other's variance with r^2 (the
covariance of two variances of normal numbers), so n of them are worth n^2 / sum r^2. The likelihood counts that many,
and no comparison gets more degrees of freedom than these have together. A simulation confirms it in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from lookalike.workflow.report.statistics.crossed import Estimate, Variances

FREEDOMS = np.geomspace(0.5, 1000, 45)  # of which the prior's are one; at the upper end comparisons are alike
RATIOS = np.geomspace(1, 100, 93)  # of seeds to noise within classes; 5 % from one to the next


@dataclass(frozen=True)
class Prior:
    """Prior of a comparison's ratio, from its family of comparisons.

    Attributes:
        ratio: of the variance over seeds to the noise within classes, at least 1.
        freedom: degrees of freedom that the pool adds to a comparison's own.
        most: degrees of freedom of all comparisons together, as they depend on each other.
    """

    ratio: float
    freedom: float
    most: float


def worth(pairs: Sequence[tuple[str, str]]) -> float:
    """Number of independent comparisons that tell as much of the variance over seeds.

    Args:
        pairs: the changed recipe and the baseline of each; all recipes are taken to vary alike and by themselves.
    """
    changed, baseline = (np.array(each) for each in zip(*pairs, strict=True))

    def same(first: NDArray[np.str_], second: NDArray[np.str_]) -> NDArray[np.float64]:
        return np.asarray(first[:, None] == second, dtype=np.float64)

    with_own = same(changed, changed) + same(baseline, baseline)
    correlations = (with_own - same(changed, baseline) - same(baseline, changed)) / 2
    return float(len(pairs) ** 2 / (correlations**2).sum())


def estimated_prior(family: Sequence[Variances], pairs: Sequence[tuple[str, str]]) -> Prior | None:
    """Prior of a family: comparisons of one metric, data set and network.

    Args:
        family: of each comparison.
        pairs: as for `worth`.

    Returns:
        ``None`` where no comparison tells seeds from the noise within classes: of one seed or class, or all alike.

    Raises:
        ValueError: if the numbers of comparisons and pairs differ.
    """
    if len(family) != len(pairs):
        raise ValueError(f"{len(family)} comparisons and {len(pairs)} pairs do not go together")
    told = [(each, pair) for each, pair in zip(family, pairs, strict=True) if _is_told(each)]
    if not told:
        return None
    ratios = np.array([each.over_seeds.variance / each.of_both.variance for each, _ in told])
    own = np.array([each.over_seeds.freedom for each, _ in told])
    independent = worth([pair for _, pair in told])
    scaled = ratios[:, None, None] / RATIOS[:, None]
    half, prior_half = own[:, None, None] / 2, FREEDOMS / 2
    # Logarithm of the density of a scaled F, without what neither of the two changes.
    logs = half * np.log(half * scaled / prior_half) - (half + prior_half) * np.log1p(half * scaled / prior_half)
    likelihood = (logs - betaln(half, prior_half)).sum(axis=0) * independent / len(told)
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    # What matters of the freedom is how far it leaves a variance unknown, which is in proportion to its inverse.
    typical = float(np.mean(own))
    freedom = 1 / float((weights / (FREEDOMS + typical)).sum()) - typical
    return Prior(float((weights * RATIOS[:, None]).sum()), freedom, independent * typical)


def moderated(own: Variances, prior: Prior | None) -> Estimate:
    """A mean difference whose variance over seeds is told by its family, too; by itself where there is no prior.

    Args:
        own: of the comparison, or of a mean of comparisons of the family.
        prior: of its family.
    """
    if prior is None or not _is_told(own):
        return own.estimate()
    seeds, noise = own.over_seeds, own.of_both
    freedom = prior.freedom + seeds.freedom
    ratio = (prior.freedom * prior.ratio + seeds.freedom * seeds.variance / noise.variance) / freedom
    known = min(freedom, max(prior.most, seeds.freedom))
    return own.estimate((max(1.0, ratio) * noise.variance, 1 / (1 / known + 1 / noise.freedom)))


def _is_told(own: Variances) -> bool:
    return own.over_seeds.freedom > 0 and own.of_both.variance > 0
