"""Send to MLflow what lies below ``results/`` and is not there, as after a time without a server.

A run is known by its tags `IDENTITY` and the digests of its files: one that is there with the same files stays as it
is, one that was sent in part or is of older files is replaced. A training that is at work on newer files is left alone.
The machine and the commit of a run stand in no file, so runs that are sent later carry the tag ``sent`` instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookalike.files import about_model, read_json
from lookalike.paths import project_root
from lookalike.plan.plan import Plan
from lookalike.plan.results import KINDS, result_file
from lookalike.plan.scales import scale_and_selection
from lookalike.plan.timings import seconds, timing_pattern
from lookalike.settings.layers import Tree, merge
from lookalike.text import counted
from lookalike.tracking.client import experiment_of, flat, identity_in, identity_of, is_own, open_client
from lookalike.tracking.rows import tag
from lookalike.tracking.sending import (
    complete,
    create,
    end,
    parameters_of,
    send_history,
    send_metrics,
    send_scores,
    short_digest,
)
from lookalike.tracking.server import ask_server, one_line
from lookalike.tracking.uses import uses_of, view_of

STAGES = {"evaluation": "evaluate", "segmentation": "segment"}  # that make metrics, by the kind of their files
# A person who waits for the runs to be sent is more patient with a busy server than a job.
ANSWER_S, REQUEST_S = 10.0, "60"
DONE = ("sent", "completed", "there already", "at work")
SENT = {"sent": "later, by lookalike track sync"}


@dataclass
class OnDisk:
    """Files of one run: of its training, of what measured it, or of both.

    Attributes:
        files: ``model`` and ``history``, where the run has a training of its own; ``scores``.
        stage: stage that made the scores.
    """

    files: dict[str, Path] = field(default_factory=dict)
    stage: str = ""

    @property
    def identity(self) -> dict[str, str]:
        """Its tags `lookalike.tracking.client.IDENTITY`."""
        return identity_of(next(iter(self.files.values())))

    @property
    def digests(self) -> dict[str, str]:
        """Tags of a run that was sent whole."""
        return {name: short_digest(self.files[name]) for name in ("history", "scores") if name in self.files}

    def times(self, stage: str, file: str) -> tuple[float, float]:
        """When a stage ended, and how many seconds it took as far as that is known."""
        scale, recipe, dataset, seed = self.identity.values()
        measured = timing_pattern(stage).format(recipe=recipe, dataset=dataset, seed=seed)
        return self.files[file].stat().st_mtime, seconds(_results() / scale / measured) or 0.0


def sync(base: Tree, overlay: Tree) -> Iterator[str]:
    """Send all runs of all scales that are not there yet, and tag those behind finished tables.

    Args:
        base: ``params/config.yaml``.
        overlay: scale of own pictures, whose evaluations and tables only it can tell.

    Yields:
        A line per scale, once it is done.

    Raises:
        ValueError: if the server is away, or anything else goes wrong with it; calling again goes on.
    """
    if away := ask_server(within=ANSWER_S):
        raise ValueError(away)
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", REQUEST_S)
    try:
        yield from _sync(open_client(), base, overlay)
    except ValueError:
        raise  # a mistake in params/ or the overlay
    except Exception as error:  # whatever a server may raise
        raise ValueError(f"{ask_server() or one_line(error)}; what was sent stays, calling again goes on") from error


def _sync(client: Any, base: Tree, overlay: Tree) -> Iterator[str]:
    for scale in sorted(path.name for path in _results().glob("*") if path.is_dir()):
        if runs := runs_on_disk(scale):
            plan = _plan_of(scale, base, overlay, runs)
            done = Counter(send_run(client, known, run, plan) for known in [_known(client, scale)] for run in runs)
            tables = _tag_tables(client, scale, plan) if plan else 0
            unknown = "" if plan else "; its --configfile would tell the settings of evaluations and rows of tables"
            told = ", ".join(f"{done[word]:,} {word}" for word in DONE if done[word])
            yield f"{scale}: {counted(len(runs), 'run')}: {told}; {counted(tables, 'table')}{unknown}"


def runs_on_disk(scale: str) -> list[OnDisk]:
    """Runs with results of one scale, in the order of their names."""
    runs: dict[tuple[str, ...], OnDisk] = {}
    for kind, name in (("model", "model"), ("history", "history"), *((kind, "scores") for kind in STAGES)):
        _, folder, ending = KINDS[kind]
        for path in sorted((_results() / scale / folder).glob(f"*/*/seed*{ending}")):
            run = runs.setdefault(identity_in(identity_of(path)), OnDisk())
            run.files[name] = path
            run.stage = STAGES.get(kind, run.stage)
    whole = [run for run in runs.values() if "scores" in run.files or {"model", "history"} <= run.files.keys()]
    return sorted(whole, key=lambda run: identity_in(run.identity))


def send_run(client: Any, known: Mapping[tuple[str, ...], Any], run: OnDisk, plan: Plan | None) -> str:
    """Send one run, unless it is there.

    Args:
        client: client of MLflow.
        known: what MLflow holds of the scale and this user, by the values of `IDENTITY`.
        run: files of the run on disk.
        plan: plan of the scale, ``None`` if its overlay is not there.

    Returns:
        What was done: ``sent`` or ``completed``; nothing where it is ``there already``, or ``at work``.
    """
    there: Any = known.get(identity_in(run.identity))
    if there and _is_at_work(there, run):
        return "at work"
    digests, tags = run.digests, there.data.tags if there and there.info.status == "FINISHED" else {}
    missing = [name for name, digest in digests.items() if tags.get(name) != digest]
    if not missing:
        return "there already"
    if missing == ["scores"] and "history" in digests and "scores" not in tags:
        complete(client, there, _parameters(run, plan))
        _send_scores(client, there.info.run_id, run)
        return "completed"
    made = _create(client, run, plan)
    if "history" in run.files:
        ended, seconds = run.times("train", "history")
        send_history(client, made, run.files["history"], when=ended)
        send_metrics(client, made, {"seconds/train": seconds} if seconds else {}, when=ended)
    if "scores" in run.files:
        _send_scores(client, made, run)
    end(client, made, run.times(*_work(run))[0])
    return "sent"


def _is_at_work(there: Any, run: OnDisk) -> bool:
    """Whether a run is a training that has begun after files here were written, and has not ended.

    One that has begun before them has made them, and MLflow was away at its end. Others are sent in one go.
    """
    began_s = there.info.start_time / 1000
    older = any(run.files[name].stat().st_mtime < began_s for name in run.digests)
    return there.info.status == "RUNNING" and older and not {"sent", "training"} & there.data.tags.keys()


def _create(client: Any, run: OnDisk, plan: Plan | None) -> str:
    ended, seconds = run.times(*_work(run))
    scores = read_json(run.files["scores"]) if "scores" in run.files else {}
    shared = {} if "history" in run.files else _training(run, plan)
    return create(
        client,
        run.identity,
        _parameters(run, plan),
        context="training" if "history" in run.files else "evaluation",
        tags=SENT | shared,
        start=ended - seconds,
        digest="" if "history" in run.files else scores.get("episodes_sha256", scores.get("data", "")),
    )


def _work(run: OnDisk) -> tuple[str, str]:
    """Stage and file that say when the work of a run was done."""
    return ("train", "history") if "history" in run.files else (run.stage, "scores")


def _send_scores(client: Any, made: str, run: OnDisk) -> None:
    ended, seconds = run.times(run.stage, "scores")
    send_metrics(client, made, {f"seconds/{run.stage}": seconds} if seconds else {}, when=ended)
    send_scores(client, made, run.files["scores"], when=ended)


def _model(run: OnDisk, plan: Plan | None) -> Path:
    """File of the training behind a run; one that is not there if that is unknown."""
    scale, recipe, dataset, seed = run.identity.values()
    path = _results() / scale / KINDS["model"][1] / recipe / dataset / f"seed{seed}{KINDS['model'][2]}"
    if path.is_file() or plan is None:
        return path
    try:
        return _results() / scale / result_file(plan, "model", recipe, dataset, int(seed))
    except (KeyError, ValueError):  # a recipe or a data set that params/ no longer holds
        return path


def _training(run: OnDisk, plan: Plan | None) -> dict[str, str]:
    model = _model(run, plan)
    return {"training": "/".join(model.with_suffix("").parts[-3:])} if model.is_file() else {}


def _parameters(run: OnDisk, plan: Plan | None) -> dict[str, str]:
    """Of the training, as its file says, and of the stage that measured it, as ``params/`` says."""
    about = about_model(_model(run, plan))
    if not about and "scores" in run.files:
        about = read_json(run.files["scores"])
    parameters = parameters_of(about)
    if plan is not None and run.stage:
        with suppress(KeyError, ValueError):  # of a recipe or a data set that params/ no longer holds
            parameters |= flat({run.stage: plan.deciding(run.identity["recipe"], run.identity["dataset"])[run.stage]})
    return parameters


def _plan_of(scale: str, base: Tree, overlay: Tree, runs: list[OnDisk]) -> Plan | None:
    """What ``params/`` says of a folder of results, with the seeds that are there; ``None`` if its overlay is not."""
    name, selection = scale_and_selection(scale)
    seeds = sorted({int(run.identity["seed"]) for run in runs})
    given = {"seeds": seeds, "selection": selection}
    if overlay.get("name") == name:
        return Plan(merge(base, overlay) | given)
    if (project_root() / "params" / "scales" / f"{name}.yaml").is_file():
        return Plan(base | {"scale": name} | given)
    return None


def _tag_tables(client: Any, scale: str, plan: Plan) -> int:
    """Tag the runs behind the tables that are there; how many these are."""
    done = 0
    for path in sorted((_results() / scale / "tables").glob("*.csv")):
        try:
            view, uses = view_of(plan, path.stem), uses_of(plan, path.stem)
        except (KeyError, ValueError):
            continue  # a table that params/ no longer holds
        tag(client, scale, view, uses)
        done += 1
    return done


def _known(client: Any, scale: str) -> dict[tuple[str, ...], Any]:
    """What MLflow holds of a scale and this user, by the values of `IDENTITY`; of several the newest."""
    experiment, token, newest = experiment_of(client, scale), None, dict[tuple[str, ...], Any]()
    while token is None or token:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        for run in filter(is_own, page):
            newest.setdefault(identity_in(run.data.tags), run)
        token = page.token or ""
    return newest


def _results() -> Path:
    return project_root() / "results"
