"""Where the results of a run are stored, below ``results/<scale>``."""

from __future__ import annotations

from typing import NamedTuple

from lookalike.plan import Plan

MADE = {"evaluate": "metrics", "segment": "segmentations"}  # by a recipe's last stage


class Stored(NamedTuple):
    """A run under the names that its results carry: those of the first recipe with equal settings."""

    recipe: str
    dataset: str
    seed: int

    @property
    def path(self) -> str:
        """Folders and file without suffix, below those of the kind of result."""
        return f"{self.recipe}/{self.dataset}/seed{self.seed}"


def training_of(plan: Plan, recipe: str, dataset: str, seed: int) -> Stored:
    """The training behind a run."""
    trained_on = plan.training_dataset(recipe, dataset)
    return Stored(plan.shared("train", recipe, trained_on), trained_on, seed)


def scoring_of(plan: Plan, recipe: str, dataset: str, seed: int) -> Stored:
    """The evaluation or segmentation whose metrics are the run's."""
    return Stored(plan.shared(plan.last_stage(recipe), recipe, dataset), dataset, seed)


def model_file(plan: Plan, recipe: str, dataset: str, seed: int) -> str:
    """Model of a run, below ``results/<scale>``."""
    return f"models/{training_of(plan, recipe, dataset, seed).path}.safetensors"


def metrics_file(plan: Plan, recipe: str, dataset: str, seed: int) -> str:
    """Metrics of a run, below ``results/<scale>``."""
    return f"{MADE[plan.last_stage(recipe)]}/{scoring_of(plan, recipe, dataset, seed).path}.json"
