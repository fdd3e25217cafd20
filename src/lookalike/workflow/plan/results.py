"""Paths of the results of a run, below ``results/<scale>``, and of committed ones below `REFERENCE`."""

from __future__ import annotations

from typing import NamedTuple

from lookalike.base.files import read_json
from lookalike.base.paths import project_root
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.timings import timing_pattern
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.settings.layers import Tree

REFERENCE = "results/reference"
CALL = "call.json"  # beside committed results, the scale or the overlays that they were made with
# Kind of file: the stage whose settings name it, its folder and its ending.
KINDS = {
    "model": ("train", "models", ".safetensors"),
    "history": ("train", "models", ".csv"),
    "embeddings": ("embed", "embeddings", ".safetensors"),
    "evaluation": ("evaluate", "metrics", ".json"),
    "classes": ("evaluate", "metrics", ".classes.csv"),
    "segmentation": ("segment", "segmentations", ".json"),
    "attribution": ("train", "attributions", ".json"),
}
# Kind of file with the metrics, by the recipe's last stage.
MEASURED = {"evaluate": "evaluation", "segment": "segmentation"}


class Stored(NamedTuple):
    """A run under the names that its results carry: those of the first recipe with equal settings."""

    recipe: str
    dataset: str
    seed: int


def committed_call(scale: str) -> Tree | None:
    """Configuration of the call whose results are committed, ``None`` of a scale without any.

    Raises:
        ValueError: as `lookalike.workflow.settings.call.configuration`.
    """
    call = project_root() / REFERENCE / scale / CALL
    if not call.is_file():
        return None
    said = read_json(call)
    return configuration(said.get("scale"), [project_root() / name for name in said.get("overlays", [])])


def training_of(plan: Plan, recipe: str, dataset: str, seed: int) -> Stored:
    """The training behind a run."""
    trained_on = plan.training_dataset(recipe, dataset)
    return Stored(plan.shared("train", recipe, trained_on), trained_on, seed)


def scoring_of(plan: Plan, recipe: str, dataset: str, seed: int) -> Stored:
    """The evaluation or segmentation whose metrics are the run's."""
    return Stored(plan.shared(plan.last_stage(recipe), recipe, dataset), dataset, seed)


def result_pattern(kind: str) -> str:
    """Files of a kind of `KINDS` below ``results/<scale>``, with ``{recipe}``, ``{dataset}`` and ``{seed}``."""
    _, folder, ending = KINDS[kind]
    return f"{folder}/{{recipe}}/{{dataset}}/seed{{seed}}{ending}"


def result_file(plan: Plan, kind: str, recipe: str, dataset: str, seed: int) -> str:
    """File of a run, below ``results/<scale>``.

    Args:
        plan: plan of the scale.
        kind: a key of `KINDS`, or ``metrics`` for those of the recipe's last stage.
        recipe: name of the run's recipe.
        dataset: data set that it is scored on; a recipe that segments may be trained on another.
        seed: seed of the run.
    """
    kind = MEASURED[plan.last_stage(recipe)] if kind == "metrics" else kind
    stage = KINDS[kind][0]
    if stage == "train":
        stored = training_of(plan, recipe, dataset, seed)
    else:
        stored = Stored(plan.shared(stage, recipe, dataset), dataset, seed)
    return result_pattern(kind).format(**stored._asdict())


def timing_files(plan: Plan, recipe: str, dataset: str, seed: int) -> dict[str, str]:
    """By stage the file below ``results/<scale>`` that says how long a run's job took."""
    of_run = {"train": training_of(plan, recipe, dataset, seed), "evaluate": scoring_of(plan, recipe, dataset, seed)}
    return {stage: timing_pattern(stage).format(**stored._asdict()) for stage, stored in of_run.items()}
