"""Copy runs to MLflow while they are made, so that they can be watched.

What counts are the files below ``results/``. A server that fails is reported in the job's log and changes no result;
``lookalike track sync`` sends later what is missing.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from lookalike.files import about_model
from lookalike.paths import project_root
from lookalike.running.versions import commit
from lookalike.tracking.client import connect, find, flat, identity_of
from lookalike.tracking.sending import (
    complete,
    create,
    end,
    in_group,
    parameters_of,
    send_history,
    send_metrics,
    send_scores,
)
from lookalike.tracking.server import AwayError, ask_server, one_line


class Tracked:
    """The MLflow run of one training, as a context; its duration is that of the block, without what MLflow took of it.

    Args:
        model: file that the training leaves, whose path says which run this is; empty switches tracking off.
        about: settings and facts, as the model's file will hold them.
        device: device that trains.
    """

    def __init__(self, model: str, about: Mapping[str, Any], *, device: str = "") -> None:
        self._model = model
        self._parameters = parameters_of(about, device)
        self._client: Any = None
        self._run = ""
        self._epochs: set[int] = set()
        self._start = self._spent = 0.0

    def __enter__(self) -> Tracked:
        if self._model:
            self._attempt(self._open)
        self._began, self._spent = time.monotonic(), 0.0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = time.monotonic() - self._began - self._spent
        if self._run:
            self._attempt(lambda: self._close(seconds, "FAILED" if kind else "FINISHED"))

    def epoch(self, line: Mapping[str, float]) -> None:
        """Send one line of the history, all values in one batch."""
        step = int(line["epoch"])
        values = in_group("epoch", {key: value for key, value in line.items() if key != "epoch"})
        if self._run:
            self._attempt(lambda: send_metrics(self._client, self._run, values, step))
            self._epochs.add(step)

    def history(self, path: str) -> None:
        """Send what the whole history holds beyond the epochs sent so far, as after a kill, and the file."""
        if self._run:
            self._attempt(lambda: send_history(self._client, self._run, path, known=self._epochs))

    def _open(self) -> None:
        self._client, self._start = connect(), time.time()
        self._run = create(
            self._client,
            identity_of(self._model),
            self._parameters,
            context="training",
            tags=_environment(),
            start=self._start,
        )

    def _close(self, seconds: float, status: str) -> None:
        send_metrics(self._client, self._run, {"seconds/train": seconds})
        end(self._client, self._run, self._start + seconds, status)

    def _attempt(self, action: Callable[[], Any]) -> None:
        began = time.monotonic()
        if not attempt(action, "this run is tracked no further"):
            self._run = ""
        self._spent += time.monotonic() - began


def log_scores(
    path: str, *, model: str, settings: Mapping[str, Any], device: str, seconds: float, digest: str = ""
) -> None:
    """Send metrics that are on disk to the run of their path: to that of a training, or else to one of their own.

    Args:
        path: JSON with the metrics of both checkpoints.
        model: file of the training behind them.
        settings: settings of the stage that made them, below its name, which also names its duration.
        device: device that the stage used.
        seconds: time that it took.
        digest: digest of the data, if they are not those of the training.
    """

    def log() -> None:
        client, identity, now = connect(), identity_of(path), time.time()
        (stage,) = settings
        parameters = {**parameters_of(about_model(model), device), **flat(settings)}
        run = find(client, identity)
        if run is None:
            tags = {**_environment(), "training": "/".join(Path(model).with_suffix("").parts[-3:])}
            made = create(
                client,
                identity,
                parameters,
                context="evaluation",
                tags=tags,
                start=now - seconds,
                digest=digest,
            )
            end(client, made, now)
        else:  # its start and end are those of the training
            made = run.info.run_id
            complete(client, run, parameters)
        send_scores(client, made, path)
        send_metrics(client, made, {f"seconds/{stage}": seconds})

    attempt(log, "these metrics are not tracked")


def attempt(action: Callable[[], Any], otherwise: str) -> bool:
    """Do something with MLflow; what goes wrong is one line in the job's log, and no reason to fail.

    Args:
        action: what is to be done.
        otherwise: what follows if it fails.

    Returns:
        Whether it was done.
    """
    try:
        action()
    except AwayError as error:
        print(error)
    except Exception as error:  # whatever a server may raise
        away = ask_server()  # so that later jobs need not find out for themselves
        print(away or f"{one_line(error)}; {otherwise}")
    else:
        return True
    return False


def _environment() -> dict[str, str]:
    import torch

    from lookalike.running.machine import device_name, job_device

    hardware, made_of = device_name(job_device()), commit(project_root())
    return {"commit": made_of, "hardware": hardware, "torch": torch.__version__, "host": platform.node()}
