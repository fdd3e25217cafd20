"""How much the comparisons of the committed claims vary, for simulations."""

from io import StringIO

import pandas as pd

from projects import committed

DEVIATIONS = ["deviation_of_seeds", "deviation_of_classes", "deviation_of_both"]


def claims_of_retrieval():
    """Comparisons of R@1 and P@1 with their `DEVIATIONS` in percent points."""
    cells = pd.read_csv(StringIO(committed("mini/claims.csv")))
    return cells[cells["metric"].isin(["R@1", "P@1"])]
