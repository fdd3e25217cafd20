"""Runs of a table, as if they had been measured."""

from lookalike.workflow.report.tables import cells
from lookalike.workflow.settings.tables import PlannedTable

TABLE = {
    "title": "DIML Table 1",
    "published": {"paper": "diml", "table": "T1"},
    "datasets": ["cub", "cars"],
    "metrics": ["P@1", "MAP@R"],
    "rows": [
        {"label": "Margin", "recipe": "margin", "published": {"method": "Margin", "setting": "baseline"}},
        {"label": "Ours", "recipe": "ours"},
    ],
}


def run(row, seed, value, *, dataset="figurines_birds", published="cub", comparable=False):
    recipe = TABLE["rows"][row]["recipe"]
    return {"row": row, "recipe": recipe, "dataset": dataset, "published": published, "seed": seed} | {
        "comparable": comparable,
        "queries": 500,
        "metrics": {"P@1": value, "MAP@R": value / 2},
        "metrics_file": f"results/mini/metrics/{recipe}/{dataset}/seed{seed}.json",
        "settings": "0123456789ab",
        "code": "fedcba9876543210",
        "departs": "DB",
        "rests_on": "",
        "query_in_r": True,
        "options": "",
    }


def planned(table):
    """A table of a test, of which only what matters there needs to be said."""
    rows = [{"recipe": "any", **row} for row in table["rows"]]
    return PlannedTable(**{"title": "T", "datasets": "own", **table, "rows": rows})


def table_cells(table, runs):
    return cells.table_cells(planned(table), [cells.Run(**run) for run in runs])
