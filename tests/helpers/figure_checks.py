"""What checks of figures say by their means alone, whatever their intervals."""

import numpy as np

from lookalike.workflow.report.figures.parts.form import Check
from lookalike.workflow.report.statistics.cases import Cases


def mean(check: Check) -> float:
    """Of what a check over seeds claims to be above zero."""
    return Cases(np.array(check.cases), check.needed).mean


def so(check: Check) -> bool | None:
    """Whether that is above zero; for a check that asks no seeds what it holds."""
    return mean(check) > 0 if check.cases else check.holds
