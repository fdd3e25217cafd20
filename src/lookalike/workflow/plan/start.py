"""The start of the network that learns from drawn data: read from ``params/start.yaml`` and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lookalike.base.checks import require_known
from lookalike.workflow.plan.checks import check_recipe
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import dataset_names, read
from lookalike.workflow.settings.layers import Tree, merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import RecipePart
from lookalike.workflow.settings.start import DrawnSet, DrawnSets, Pretraining

FILE = "params/start.yaml"


@dataclass(frozen=True)
class Start:
    """Task of `pretrain`: weights to write, drawn sets to learn from and to search, and settings.

    Attributes:
        weights: file to write, relative to the project's root.
        drawn: sets of figurines that are learned from.
        measured_on: those that are searched between epochs.
        train: section ``train`` of a recipe.
    """

    weights: str
    drawn: list[DrawnSet]
    measured_on: list[DrawnSet]
    train: Tree


@cache
def read_start() -> Start:
    """The project's start.

    Raises:
        ValueError: naming key and what would be right, for data that are not drawn, species that a data set of the
            project shows, or a section that no recipe could have.
    """
    content, general = read(FILE, Pretraining), read("params/defaults.yaml", RecipePart)
    train = merge(general.train, content.train)
    sections = {"embed": {"batch_size": 256, **general.embed}, "evaluate": general.evaluate, "segment": None}
    check_recipe({"train": train, **sections}, FILE)
    drawn = [each for entry in content.drawn for each in drawn_sets(entry)]
    return Start(content.weights, drawn, drawn_sets(content.measured_on), train)


def drawn_sets(entry: DrawnSets) -> list[DrawnSet]:
    """An entry's sets, one for each seed.

    Raises:
        ValueError: for data that are not drawn, and species that a data set of the project shows.
    """
    known = {name: read(f"params/datasets/{name}.yaml", Dataset) for name in dataset_names()}
    generated = {name: each.generator for name, each in known.items() if each.generator}
    require_known(f"{FILE}, like", entry.like, generated)
    content = known[entry.like].model_dump(exclude={"counts"}, exclude_unset=True)
    content |= {"classes": entry.classes} if entry.classes else {}
    preset = generated[entry.like].preset
    shown = {(each.preset, each.seed): name for name, each in generated.items()}
    for seed in entry.seeds:
        if (preset, seed) in shown:
            raise ValueError(
                f"{FILE}, like {entry.like}: seed {seed} draws the species of {shown[preset, seed]}; take another"
            )
    sets = {f"{preset}-{seed}": {**content, "generator": {"preset": preset, "seed": seed}} for seed in entry.seeds}
    return [DrawnSet(name=name, specification=checked(Dataset, each, FILE)) for name, each in sets.items()]
