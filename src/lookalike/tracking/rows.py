"""Make the rows of a table findable in MLflow: tags of the runs, and a saved view per table.

The tags ``tables`` and ``rows`` of a run hold entries between bars, ``| avsl_1 | diml_1 |`` and ``| avsl_1: Margin |
diml_1: Margin |``, so that a search for ``| avsl_1 |`` finds no ``avsl_10``. What MLflow's page calls a shared view is
a tag of the experiment: filter, order and columns of the list of runs. Each table gets one under its own name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from filelock import FileLock

from lookalike.paths import project_root
from lookalike.tracking.client import LONGEST_TAG, connect, experiment_of, find, metric_name
from lookalike.tracking.runs import attempt
from lookalike.tracking.sending import complete, send

VIEW = "mlflow.sharedViewState."  # and the name of the view: a tag of the experiment that MLflow's page reads
NOTE = "mlflow.note.content"  # Markdown that MLflow's page shows with a run or an experiment
ABOUT = """\
Runs of the project **lookalike** at scale `{scale}`: one per recipe, data set and seed. What counts are the files below
`results/{scale}/`; this is a copy (docs/mlflow.md says more).

Metrics are fractions: `best/...` of the epoch with the best R@1 on the test classes, `last/...` of the last one,
`epoch/...` per epoch, `seconds/...` of work. A run's duration is that of its training, or of its evaluation where it
shares a training, which the tag `training` names.

The rows of a table, to tick and compare:

"""


@dataclass(frozen=True)
class Uses:
    """What one table makes of one run.

    Attributes:
        identity: the tags `lookalike.tracking.client.IDENTITY` of the run.
        rows: labels of the rows that it fills.
        parameters: all sections of the run's recipe, flat.
        tags: further ones.
        rebuild: call that makes its results again.
    """

    identity: dict[str, str]
    rows: list[str]
    parameters: dict[str, str]
    tags: dict[str, str]
    rebuild: str


@dataclass(frozen=True)
class View:
    """One table as MLflow's page lists its runs.

    Attributes:
        table: name of the table.
        metrics: columns of the table, the first one decides the order.
        checkpoint: checkpoint that the metrics belong to.
    """

    table: str
    metrics: Sequence[str]
    checkpoint: str = "best"

    @property
    def filter(self) -> str:
        """What MLflow's search finds the runs by."""
        return f"tags.tables LIKE '%| {self.table} |%'"

    @property
    def state(self) -> str:
        """As MLflow's page reads it."""
        columns = [f"metrics.`{self.checkpoint}/{metric_name(metric)}`" for metric in self.metrics]
        return json.dumps(
            {
                "searchFilter": self.filter,
                "orderByKey": columns[0],
                "orderByAsc": False,
                "startTime": "ALL",
                "lifecycleFilter": "Active",
                "modelVersionFilter": "All Runs",
                "datasetsFilter": [],
                "selectedColumns": ["attributes.`Dataset`", *columns, "tags.`rows`"],
            },
            sort_keys=True,
            allow_nan=False,
        )


def tag_runs(scale: str, view: View, uses: Iterable[Uses]) -> None:
    """Tag the runs behind a table with what it makes of them, and save its view.

    ``tables`` and ``rows`` add up over tables; what the same table said earlier is replaced. Parameters that a run has
    with other values cannot be changed in MLflow and are named by the tag ``outdated``. A failing server is reported
    and changes nothing.

    Args:
        scale: folder of the results.
        view: the table as MLflow lists its runs.
        uses: what the table makes of each of its runs.
    """
    attempt(lambda: tag(connect(), scale, view, uses), f"the runs of {view.table} are not all tagged")


def tag(client: Any, scale: str, view: View, uses: Iterable[Uses]) -> None:
    """As `tag_runs`, with a client, and raising what goes wrong."""
    # Tables that are assembled at the same time read and write the same tags.
    with FileLock(project_root() / ".snakemake" / "mlflow_tags.lock"):
        experiment = experiment_of(client, scale)
        for use in uses:
            if (run := find(client, use.identity, experiment)) is not None:
                _tag(client, run, view.table, use)
        _save_view(client, experiment, scale, view)


def with_entries(tag: str, table: str, entries: Sequence[str]) -> str:
    """A tag of entries between bars, those of one table replaced.

    Args:
        tag: what it said before, possibly empty.
        table: whose earlier entries, ``table`` or ``table: row``, are replaced.
        entries: entries of the table.

    Returns:
        At most `LONGEST_TAG` characters: of the tables with the most text only the number of entries is left.
    """
    kept: dict[str, list[str]] = {}
    for entry in filter(None, tag.strip("| ").split(" | ")):
        kept.setdefault(entry.partition(":")[0], []).append(entry)
    kept[table] = [entry.replace("|", "/") for entry in entries]
    while len(text := f"| {' | '.join(entry for name in sorted(kept) for entry in kept[name])} |") > LONGEST_TAG:
        longest = max(kept, key=lambda name: len(" | ".join(kept[name])))
        if len(kept[longest]) == 1:
            return text[:LONGEST_TAG]
        kept[longest] = [f"{longest}: {len(kept[longest])} rows"]
    return text


def _tag(client: Any, run: Any, table: str, use: Uses) -> None:
    before = run.data.tags
    outdated = complete(client, run, use.parameters)
    rows = with_entries(before.get("rows", ""), table, [f"{table}: {label}" for label in use.rows])
    tags = {
        **use.tags,
        "tables": with_entries(before.get("tables", ""), table, [table]),
        "rows": rows,
        "outdated": ", ".join(outdated)[:LONGEST_TAG],
        NOTE: _note(before, rows, use.rebuild),
    }
    send(client, run.info.run_id, tags={key: value for key, value in tags.items() if before.get(key, "") != value})


def _note(tags: Mapping[str, str], rows: str, rebuild: str) -> str:
    """What MLflow's page says about a run: the rows it fills, its files, and how to make them again."""
    files = [tags[name] for name in ("scores_file", "history_file") if name in tags]
    lines = [
        f"Rows: {rows.strip('| ').replace(' | ', '; ')}",
        f"Files: {', '.join(f'`{file}`' for file in files)}" if files else "",
        f"Again: `{rebuild}`",
    ]
    return "\n\n".join(filter(None, lines))


def _save_view(client: Any, experiment: str, scale: str, view: View) -> None:
    """Save the view of a table, and name it in the experiment's description."""
    before = client.get_experiment(experiment).tags
    tables = sorted({view.table, *(key.removeprefix(VIEW) for key in before if key.startswith(VIEW))})
    links = [f"[{table}](#/experiments/{experiment}/runs?viewStateShareKey={table})" for table in tables]
    tags = {
        VIEW + view.table: view.state,
        NOTE: ABOUT.format(scale=scale) + ", ".join(links),
    }
    for key, value in tags.items():
        if before.get(key) != value:
            client.set_experiment_tag(experiment, key, value)
