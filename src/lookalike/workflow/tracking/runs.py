"""Send a run to MLflow from its files.

`send` is the only way: the job that has ended calls it for its run, ``lookalike track sync`` for all. Digests of the
files that were sent stand in the tags ``history`` and ``scores``. A run with the same files stays as it is, one that
lacks its scores gets them, and any other one is replaced.

Metrics are fractions: ``best/R_at_1`` and ``last/...`` after training, ``epoch/...`` per epoch, ``seconds/...`` of
work. Times and machine are those of the files' records; the commit is known to the job alone.
"""

from __future__ import annotations

import csv
import getpass
import hashlib
import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lookalike.base.files import about_model, read_json
from lookalike.base.paths import project_root
from lookalike.metrics.names import CHECKPOINTS
from lookalike.workflow.plan.results import MEASURED, result_pattern
from lookalike.workflow.plan.timings import seconds, timing_pattern
from lookalike.workflow.running.records import decided_by, read_record
from lookalike.workflow.running.versions import commit
from lookalike.workflow.settings.layers import Tree, canonical, flat
from lookalike.workflow.tracking.server import IDENTITY, USER, connect, experiment_of, forgiving, held

FACTS = ("seed", "code", "classes", "data", "weights", "selected_epoch")  # of a model's file or a record
LONGEST_PARAMETER = 500  # characters, of which every version of MLflow keeps all
AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}  # the most that MLflow takes in one request
Number = tuple[str, float, int, float]  # name, value, step, seconds since 1970


@dataclass(frozen=True)
class Run:
    """Files of one run.

    Attributes:
        identity: its tags `lookalike.workflow.tracking.server.IDENTITY`.
        model: file of the training behind it, which may be shared; it need not exist.
        history: history of its own training, ``None`` for a run that has none.
        scores: metrics or segmentations, ``None`` before they are made.
        stage: stage that makes the scores.
    """

    identity: dict[str, str]
    model: Path
    history: Path | None
    scores: Path | None
    stage: str

    def digests(self) -> dict[str, str]:
        """Tags of a run that was sent whole."""
        contents = {"scores": self.scores and self.scores.read_bytes()}
        if self.history:
            contents["history"] = self.history.read_bytes() + canonical(about_model(self.model)).encode()
        return {key: hashlib.sha256(content).hexdigest()[:12] for key, content in contents.items() if content}

    def work(self, part: str = "") -> tuple[str, float, float, dict[str, str]]:
        """Work behind ``history`` or ``scores``, by default that of the run's duration.

        Returns:
            Stage, end in seconds since 1970, duration in seconds, and tags of the machine, as the record of the file
            says; without a record those of the file and of ``results/<scale>/timings``.
        """
        trained = part == "history" or (not part and self.history)
        stage, file = ("train", self.history) if trained else (self.stage, self.scores)
        assert file is not None
        record = read_record(file)
        if record and "ended" in record:  # that of metrics of before records does not say
            machine = {"hardware": str(record["device"]), "torch": str(record["versions"].get("torch"))}
            return stage, datetime.fromisoformat(record["ended"]).timestamp(), float(record["seconds"]), machine
        timing = results_folder() / self.identity["scale"] / timing_pattern(stage).format(**self.identity)
        return stage, file.stat().st_mtime, seconds(timing) or 0.0, {}

    def numbers(self, part: str) -> list[Number]:
        """All numbers of its ``history`` or ``scores``, and the seconds of work; those that are not finite are out."""
        stage, ended, took, _ = self.work(part)
        found = [(f"seconds/{stage}", took, 0)] if took else []
        file = self.scores if part == "scores" else self.history
        try:
            if part == "scores" and self.scores:
                scores = read_json(self.scores)
                found += [(f"{kind}/{key}", value, 0) for kind in CHECKPOINTS for key, value in scores[kind].items()]
            elif self.history:
                found += [(f"epoch/{key}", value, epoch) for epoch, key, value in _history(self.history)]
            return [(metric_name(key), value, step, ended) for key, value, step in found if math.isfinite(value)]
        except (AttributeError, LookupError, TypeError, csv.Error) as error:
            again = "Remove it, and the next call makes it again"
            raise ValueError(f"{file} does not hold the numbers of a run ({error}). {again}") from None


def identity_of(result: Path | str) -> dict[str, str]:
    """The tags `IDENTITY` of the run behind ``results/<scale>/<kind>/<recipe>/<dataset>/seed<seed>.<ending>``."""
    scale, _, recipe, dataset, _ = Path(result).absolute().parts[-5:]
    return dict(zip(IDENTITY, (scale, recipe, dataset, Path(result).stem.removeprefix("seed")), strict=True))


def run_of(identity: Mapping[str, str], stages: Sequence[str], model: Path | str = "") -> Run:
    """Files of a run, as far as they are there.

    Args:
        identity: its tags `IDENTITY`.
        stages: stages that may have made its scores; none for a training that has just ended.
        model: file of a training that it shares, if it has none of its own.
    """
    folder = results_folder() / identity["scale"]
    files = {
        kind: folder / result_pattern(kind).format(**identity) for kind in ("model", "history", *MEASURED.values())
    }
    stage = next((stage for stage in stages if files[MEASURED[stage]].is_file()), "")
    own = files["model"].is_file() and files["history"].is_file()
    return Run(
        dict(identity),
        files["model"] if own or not model else Path(model),
        files["history"] if own else None,
        files[MEASURED[stage]] if stage else None,
        stage,
    )


def results_folder() -> Path:
    """Below which the results of all scales lie."""
    return project_root() / "results"


def send_finished(stage: str, output: str, *, model: str, settings: Tree) -> None:
    """Send the run whose job has just ended. A failing server is one line in the log and changes no result.

    Args:
        stage: stage of the job.
        output: file that it has left, whose path names the run.
        model: file of the training behind it.
        settings: of the stage.
    """
    with forgiving("this run is not tracked, `lookalike track sync` sends it"):
        client, identity = connect(), identity_of(output)
        run = run_of(identity, [stage] if stage in MEASURED else [], model)
        there = held(client, identity["scale"], identity).get(tuple(identity.values()), [])
        send(client, run, there, {stage: settings}, {"commit": commit(project_root()), "host": platform.node()})


def send(client: Any, run: Run, there: Sequence[Any], settings: Tree, tags: Mapping[str, str]) -> str:
    """Send one run, as far as it is not there; other runs of its identity are removed.

    Args:
        client: client of MLflow.
        run: files of the run.
        there: runs of its identity that MLflow holds, the newest first.
        settings: of the last stage, below its name; possibly empty.
        tags: further ones, for a run that is new.

    Returns:
        ``sent``, ``completed`` or ``there already``.
    """
    digests = run.digests()
    made = next((each for each in there if _fits(each, digests)), None)
    for other in there:
        if other is not made:
            client.delete_run(other.info.run_id)
    missing = [part for part in digests if made is None or part not in made.data.tags]
    if not missing:
        return "there already"
    about = about_model(run.model) or (read_json(run.scores) if run.scores else {})
    known = about | decided_by(run.history or run.scores or run.model)
    facts = {key: known[key] for key in FACTS if key in known}
    parameters = parameters_of({"train": about.get("settings", {}), **facts, **settings})
    numbers = {part: run.numbers(part) for part in missing}  # of a file that is broken nothing is sent
    _, ended, took, machine = run.work()
    if made is None:
        run_id = _create(client, run, ended - took, known, {**machine, **tags})
        log(client, run_id, params=parameters)
    else:
        run_id = made.info.run_id
        complete(client, made, parameters)
    for part in missing:
        log(client, run_id, numbers=numbers[part])
        client.log_artifact(run_id, str(run.history if part == "history" else run.scores))
    log(client, run_id, tags={part: digests[part] for part in missing})
    client.set_terminated(run_id, "FINISHED", end_time=int(1000 * ended))
    return "sent" if made is None else "completed"


def complete(client: Any, made: Any, parameters: Mapping[str, str]) -> list[str]:
    """Add parameters that a run lacks; MLflow changes none, so those with other values come back."""
    known = made.data.params
    log(client, made.info.run_id, params={key: value for key, value in parameters.items() if key not in known})
    return sorted(key for key, value in parameters.items() if known.get(key, value) != value[:LONGEST_PARAMETER])


def log(
    client: Any,
    run_id: str,
    *,
    numbers: Sequence[Number] = (),
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Send numbers, parameters and tags."""
    from mlflow.entities import Metric, Param, RunTag

    entities: dict[str, list[Any]] = {
        "metrics": [Metric(name, value, int(1000 * when), step) for name, value, step, when in numbers],
        "params": [Param(key, value[:LONGEST_PARAMETER]) for key, value in (params or {}).items()],
        "tags": [RunTag(key, value) for key, value in (tags or {}).items()],
    }
    for kind, values in entities.items():
        for start in range(0, len(values), AT_ONCE[kind]):
            client.log_batch(run_id, **{kind: values[start : start + AT_ONCE[kind]]})


def parameters_of(values: Tree) -> dict[str, str]:
    """Nested settings as MLflow's parameters: dotted keys, values as text."""
    found = {key: value for key, value in flat(values) if value != {}}
    return {key: value if isinstance(value, str) else canonical(value) for key, value in found.items()}


def metric_name(name: str) -> str:
    """Name of a metric as MLflow allows it: ``R@1`` becomes ``R_at_1``."""
    return name.replace("@", "_at_")


def _fits(made: Any, digests: Mapping[str, str]) -> bool:
    """Whether a run was sent whole, from files of these digests, but for scores that it may lack."""
    tags = made.data.tags
    same = all(tags.get(part, digest) == digest for part, digest in digests.items())
    whole = "history" in tags if "history" in digests else "scores" in tags
    return bool(made.info.status == "FINISHED" and whole and same)


def _create(client: Any, run: Run, began: float, about: Tree, tags: Mapping[str, str]) -> str:
    """Start a run with its tags and its data set; its id."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    _, recipe, dataset, seed = run.identity.values()
    tags = {**run.identity, **tags, USER: getpass.getuser(), "mlflow.source.name": f"lookalike {recipe}"}
    if not run.history and run.model.is_file():
        tags["training"] = "/".join(run.model.with_suffix("").parts[-3:])
    experiment = experiment_of(client, run.identity["scale"])
    name = f"s{seed} {recipe} {dataset}"  # MLflow's page cuts the end
    made = client.create_run(experiment, start_time=int(1000 * began), run_name=name, tags=tags)
    scores = read_json(run.scores) if run.scores and not run.history else {}
    if digest := scores.get("episodes_sha256", about.get("data", "")):
        source = json.dumps({"uri": f"splits/{dataset}.csv"}, allow_nan=False)
        data = Dataset(dataset, digest[:12], source_type="local", source=source)
        context = InputTag("mlflow.data.context", "training" if run.history else "evaluation")
        client.log_inputs(made.info.run_id, [DatasetInput(data, [context])])
    return str(made.info.run_id)


def _history(path: Path) -> Iterator[tuple[int, str, float]]:
    """Epoch, name and value of each number of a history."""
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            try:
                epoch = int(line.pop("epoch"))
                yield from [(epoch, name, float(value)) for name, value in line.items() if value]
            except ValueError as error:
                raise LookupError(str(error)) from None
