"""Send all of ``results/``: runs that MLflow does not hold yet, and the rows of tables.

A table is found by a tag of its runs, ``table_avsl_1``, with the labels of the rows that a run fills between bars,
``| Margin | Margin again |``. What MLflow's page calls a shared view is a tag of the experiment: filter, order and
columns of the list of runs. Each table gets one under its own name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from filelock import FileLock

from lookalike.base.files import json_text
from lookalike.base.paths import project_root
from lookalike.base.text import counted, error_line
from lookalike.metrics.names import REPORTED
from lookalike.workflow.plan.origin import rebuilding_options
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import MEASURED, Stored, result_file, result_pattern, scoring_of
from lookalike.workflow.plan.scales import scale_and_selection
from lookalike.workflow.settings.layers import Tree, merge, settings_digest
from lookalike.workflow.tracking.runs import (
    Run,
    complete,
    identity_of,
    log,
    metric_name,
    parameters_of,
    results_folder,
    run_of,
    send,
)
from lookalike.workflow.tracking.server import (
    IDENTITY,
    KIND,
    Held,
    ask_server,
    connect,
    experiment_of,
    forgiving,
    held,
    one_line,
    page_address,
)

# A person who waits for the runs to be sent is more patient with a busy server than a job.
ANSWER_S, REQUEST_S = 10.0, "60"
DONE = ("sent", "completed", "there already")
LONGEST_TAG = 5000  # characters, of which every version of MLflow keeps all
SHOWN = "workflowType=machine_learning"  # else MLflow's page stays with language models where it was last
VIEW = "mlflow.sharedViewState."  # and the name of the view: a tag of the experiment that MLflow's page reads
NOTE = "mlflow.note.content"  # Markdown that MLflow's page shows with a run or an experiment
ABOUT = """\
Runs of the project **lookalike** at scale `{scale}`: one per recipe, data set and seed. What counts are the files below
`results/{scale}/`; this is a copy (docs/mlflow.md says more).

The rows of a table, to tick and compare:

"""


class Synced(NamedTuple):
    """Outcome of sending a scale, or a part of it.

    Attributes:
        line: that tells it.
        failed: whether it could not be sent.
    """

    line: str
    failed: bool = False


def sync(base: Tree, overlay: Tree) -> Iterator[Synced]:
    """Send all runs of all scales that are not there yet, and tag those behind finished tables.

    What cannot be read, a file of a run or the settings of a scale, is told; all others are sent.

    Args:
        base: ``params/config.yaml``.
        overlay: scale of own pictures, whose evaluations and tables only it can tell.

    Yields:
        A line per scale, once it is done, behind one for each of its runs that cannot be read.

    Raises:
        ValueError: if the server is away, or anything else goes wrong with it; calling again goes on.
    """
    if away := ask_server(within=ANSWER_S):
        raise ValueError(away)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", REQUEST_S)
    try:
        client = connect(ask=False)
        for scale in sorted(path.name for path in results_folder().glob("*") if path.is_dir()):
            if runs := runs_on_disk(scale):
                yield from _sync(client, scale, runs, base, overlay)
    except (ValueError, ModuleNotFoundError):
        raise  # a mistake in the address, a library that is not installed
    except Exception as error:  # whatever a server may raise
        raise ValueError(f"{ask_server() or one_line(error)}; what was sent stays, calling again goes on") from error


def runs_on_disk(scale: str) -> list[Run]:
    """Runs with results of one scale, in the order of their names."""
    kinds = [result_pattern(kind).format(recipe="*", dataset="*", seed="*") for kind in ("history", *MEASURED.values())]
    files = [path for kind in kinds for path in (results_folder() / scale).glob(kind)]
    found = sorted({tuple(identity_of(path).values()) for path in files})
    runs = [run_of(dict(zip(IDENTITY, each, strict=True)), list(MEASURED)) for each in found]
    return [run for run in runs if run.history or run.scores]


def tag_table(plan: Plan, table: str) -> None:
    """Tag the runs behind a table, and save its view. A failing server is one line and changes no result.

    Args:
        plan: plan of the call.
        table: name of the table.
    """
    with forgiving(f"the runs of {table} are not all tagged"):
        client = connect()
        print(f"rows of {table}, compared: {_tag_table(client, plan, table, held(client, plan.folder))}")


def _sync(client: Any, scale: str, runs: Sequence[Run], base: Tree, overlay: Tree) -> Iterator[Synced]:
    """Send the runs of one scale and tag those behind its tables."""
    for run in (each for each in runs if not each.identity["seed"].isdigit()):
        of_file = f"{run.scores or run.history} names no seed, as seed0 does; rename or remove it"
        yield Synced(f"{scale}: {_called(run)} is not sent: {of_file}", failed=True)
    runs = [run for run in runs if run.identity["seed"].isdigit()]
    try:
        plan = _plan_of(scale, base, overlay, runs)
    except ValueError as error:
        yield Synced(f"{scale}: {counted(len(runs), 'run')} not sent: {error}", failed=True)
        return
    there, done = held(client, scale), Counter[str]()
    for run in runs:
        try:
            done[_send_later(client, run, there, plan)] += 1
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.filename is None:
                raise  # of the server, not of a file
            yield Synced(f"{scale}: {_called(run)} is not sent: {error_line(error)}", failed=True)
    told = ", ".join(f"{done[word]:,} {word}" for word in DONE if done[word]) or "none sent"
    line = f"{scale}: {counted(len(runs), 'run')}: {told}; "
    if plan is None:
        yield Synced(f"{line}its --configfile would tell the settings of evaluations and rows of tables")
        return
    tables, there = {}, held(client, scale)
    for path in sorted((results_folder() / scale / "tables").glob("*.csv")):
        with suppress(KeyError, ValueError):  # of a table that params/ no longer holds
            tables[path.stem] = _tag_table(client, plan, path.stem, there)
    yield Synced(f"{line}{counted(len(tables), 'table')}")
    yield from (Synced(f"rows of {table}, compared: {address}") for table, address in tables.items())


def _called(run: Run) -> str:
    _, recipe, dataset, seed = run.identity.values()
    return f"{recipe}@{dataset}#{seed}"


def _send_later(client: Any, run: Run, there: Held, plan: Plan | None) -> str:
    scale, recipe, dataset, seed = run.identity.values()
    settings: dict[str, Any] = {}
    if plan is not None and run.stage:
        with suppress(KeyError, ValueError):  # of a recipe or a data set that params/ no longer holds
            settings = {run.stage: plan.deciding(recipe, dataset)[run.stage]}
            shared = results_folder() / scale / result_file(plan, "model", recipe, dataset, int(seed))
            run = run_of(run.identity, [run.stage], shared)
    tags = {"sent": "later, by lookalike track sync"}
    return send(client, run, there.get(tuple(run.identity.values()), []), settings, tags)


def _plan_of(scale: str, base: Tree, overlay: Tree, runs: Sequence[Run]) -> Plan | None:
    """The plan of a folder of results, with the seeds that are there; ``None`` if its overlay is not."""
    name, selection = scale_and_selection(scale)
    given = {"seeds": sorted({int(run.identity["seed"]) for run in runs}), "selection": selection}
    if overlay.get("name") == name:
        return Plan(merge(base, overlay) | given)
    if (project_root() / "params" / "scales" / f"{name}.yaml").is_file():
        return Plan(base | {"scale": name} | given)
    return None


def _tag_table(client: Any, plan: Plan, table: str, there: Held) -> str:
    """Tag the runs behind a table; the address of its view."""
    rows: dict[Stored, list[str]] = {}  # by run the labels of the rows that it fills
    for row in plan.runs_of(table).to_dict("records"):
        labels = rows.setdefault(scoring_of(plan, row["recipe"], row["dataset"], row["seed"]), [])
        labels += [row["label"].replace("|", "/")]
    for (recipe, dataset, seed), labels in rows.items():
        for run in there.get((plan.folder, recipe, dataset, str(seed)), [])[:1]:
            outdated = complete(
                client, run, parameters_of({key: each for key, each in plan.deciding(recipe, dataset).items() if each})
            )
            tags = {
                **_tags(plan, recipe, dataset, seed),
                f"table_{table}": f"| {' | '.join(dict.fromkeys(labels))} |"[:LONGEST_TAG],
                "outdated": ", ".join(outdated)[:LONGEST_TAG],
            }
            before = run.data.tags
            log(client, run.info.run_id, tags={key: tag for key, tag in tags.items() if before.get(key, "") != tag})
    return _save_view(client, plan, table)


def _tags(plan: Plan, recipe: str, dataset: str, seed: int) -> dict[str, str]:
    """Digest of the settings that decide a result, its paper, the data set that it stands for, and how to repeat it."""
    file = f"results/{plan.folder}/{result_file(plan, 'metrics', recipe, dataset, seed)}"
    half = plan.half_of(dataset, seed)
    return {
        "settings": settings_digest(plan.deciding(recipe, dataset, plan.last_stage(recipe), half)),
        "paper": plan.paper_of(recipe),
        "stands_for": plan.datasets[dataset].stands_for or "",
        NOTE: f"Made by `snakemake --cores all {file}{rebuilding_options(plan)}`",
    }


def _save_view(client: Any, plan: Plan, table: str) -> str:
    """Save the view of a table, its metrics as columns, best first, and link it in the experiment's description.

    Returns:
        Its address.
    """
    entry = plan.table(table)
    columns = [f"metrics.`{REPORTED}/{metric_name(metric)}`" for metric in entry.metrics]
    view = {
        "searchFilter": f"tags.table_{table} LIKE '%'",
        "orderByKey": columns[0],
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [*columns, f"tags.`table_{table}`"],
    }
    experiment = experiment_of(client, plan.folder)
    with FileLock(project_root() / ".snakemake" / "mlflow_tags.lock"):  # of tables that are assembled at the same time
        before = client.get_experiment(experiment).tags
        tables = sorted({table, *(key.removeprefix(VIEW) for key in before if key.startswith(VIEW))})
        places = {each: f"/experiments/{experiment}/runs?{SHOWN}&viewStateShareKey={each}" for each in tables}
        about = ABOUT.format(scale=plan.folder) + ", ".join(f"[{each}](#{place})" for each, place in places.items())
        tags = {VIEW + table: json_text(view, where=table), NOTE: about, **KIND}
        for key in tags:
            if before.get(key) != tags[key]:
                client.set_experiment_tag(experiment, key, tags[key])
    return page_address(places[table])
