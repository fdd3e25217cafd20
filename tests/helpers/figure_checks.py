"""What checks of figures say by their means alone, whatever their intervals."""

import numpy as np

from lookalike.figures.parts.form import Check


def so(check: Check) -> bool | None:
    """Whether the mean of the statistic is above zero; for a check without one what it holds."""
    return bool(np.mean(check.statistic) > 0) if len(check.statistic) else check.holds
