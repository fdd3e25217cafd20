"""Train the trials of a kind of recipe, one after the other, until its rates can be chosen."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from lookalike.base.files import read_json, write_json
from lookalike.metrics.similarity import NotFiniteError
from lookalike.workflow.data.checksums import weights_digest
from lookalike.workflow.plan.halving import Asked, Candidate, asked_next
from lookalike.workflow.plan.rates import METRIC, design_of, read_known, trained_as, write_scores
from lookalike.workflow.plan.reuse import read_equal
from lookalike.workflow.plan.terms import has_part
from lookalike.workflow.settings.layers import settings_digest
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.settings.scales import RateTrials
from lookalike.workflow.stages.train import train
from lookalike.workflow.training.steps import DivergedError


def trials(
    settings: Train,
    rates: RateTrials,
    *,
    training: str,
    manifest: str,
    root: str,
    output: str,
    resume: str,
    committed: str = "",
    strangers: str = "",
    strangers_root: str = "",
    strangers_super: int | None = None,
    decoded: str = "",
    decoded_gb: float = 0.0,
    resume_minutes: float = 0.0,
    workers: int = 0,
) -> None:
    """Write the MAP@R that each trial of a kind reached with each seed after its last epoch, 0 where it diverged.

    Args:
        settings: as `lookalike.workflow.plan.rates.trial_settings` gives them.
        rates: key ``rates`` of the scale.
        training: digest of the code that trains, on which a trial's number rests and on nothing else here.
        manifest: split whose test classes are held out of the training classes.
        output: CSV to write.
        resume: file of an unfinished trial, as for `lookalike.workflow.stages.train.train`, which the others are too
            for; beside it, with ``.json`` behind its name, what finished ones have reached, so that a killed job goes
            on where it was.
        committed: such a CSV of another machine, whose trials are not made again where the same would make them, or
            code that `read_equal` knows to compute the same.
    """
    data = b"".join(Path(path).read_bytes() for path in (manifest, strangers) if path)
    made_by = [METRIC, hashlib.sha256(data).hexdigest(), weights_digest(settings.backbone.weights), strangers_super]
    reached = partial(
        _reached,
        code=training,
        manifest=manifest,
        root=root,
        resume=resume,
        strangers=strangers,
        strangers_root=strangers_root,
        strangers_super=strangers_super,
        decoded=decoded,
        decoded_gb=decoded_gb,
        resume_minutes=resume_minutes,
        workers=workers,
    )
    finished = Path(f"{resume}.json")
    by_code: dict[str, dict[str, float]] = read_json(finished) if finished.is_file() else {}
    mine = by_code.setdefault(training, {})
    same = {training, *(each.before for each in read_equal() if each.after == training)}
    known = read_known(committed, same) | mine
    scores: dict[Asked, list[float]] = {}
    made: dict[Asked, list[str]] = {}
    while asked := asked_next(scores, design_of(rates), has_own=has_part(settings, "proxies")):
        for number, each in enumerate(asked, start=1):
            trial = checked(Train, trained_as(settings.dump(), each.candidate, rates), "trial")
            scores[each], made[each] = [], []
            for seed in rates.rungs[each.rung].seeds:
                print(f"rung {each.rung}, trial {number} of {len(asked)}, seed {seed}: {_words(each.candidate)}")
                digest = settings_digest([trial.dump(), seed, *made_by])
                if digest not in known:
                    known[digest] = mine[digest] = reached(trial, seed=seed)
                    write_json(finished, by_code)
                scores[each].append(known[digest])
                made[each].append(digest)
                print(f"  {METRIC} {100 * known[digest]:.2f}")
    write_scores(scores, made, training, output)
    finished.unlink(missing_ok=True)
    Path(resume).unlink(missing_ok=True)


def _reached(settings: Train, *, seed: int, **inputs: Any) -> float:
    """MAP@R of a training after its last epoch, of which nothing else stays."""
    with TemporaryDirectory() as folder:
        history = f"{folder}/history.csv"
        try:
            train(settings, seed=seed, model=f"{folder}/model.safetensors", history=history, **inputs)
        except (DivergedError, NotFiniteError) as error:
            print(error)
            return 0.0
        return float(pd.read_csv(history)[METRIC].iloc[-1])


def _words(candidate: Candidate) -> str:
    own = f", proxies times {candidate.own:g}" if candidate.own != 1 else ""
    return f"trunk {candidate.trunk:g}, head {candidate.head:g}{own}"
