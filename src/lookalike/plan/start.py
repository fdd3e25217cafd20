"""The start of the network that learns from drawn data: read from ``params/start.yaml`` and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lookalike.checks import require_known
from lookalike.plan.checks import check_recipe
from lookalike.settings.datasets import Dataset
from lookalike.settings.files import dataset_names, read
from lookalike.settings.layers import Tree, merge
from lookalike.settings.recipes import RecipePart
from lookalike.settings.start import DrawnSets, Pretraining

FILE = "params/start.yaml"


@dataclass(frozen=True)
class Start:
    """What `pretrain` is to do.

    Attributes:
        weights: file to write, relative to the project's root.
        drawn: preset and seed of each set of figurines that is learned from, with the specification that reads it.
        measured_on: the same of those that are searched between epochs.
        train: section ``train`` of a recipe.
    """

    weights: str
    drawn: list[Tree]
    measured_on: list[Tree]
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
    drawn = [each for entry in content.drawn for each in _sets(entry)]
    return Start(content.weights, drawn, _sets(content.measured_on), train)


def _sets(entry: DrawnSets) -> list[Tree]:
    specifications = {name: read(f"params/datasets/{name}.yaml", Dataset).dump() for name in dataset_names()}
    generated = {name: each for name, each in specifications.items() if "generator" in each}
    require_known(f"{FILE}, like", entry.like, generated)
    specification = {key: value for key, value in generated[entry.like].items() if key != "counts"}
    specification |= {"classes": entry.classes} if entry.classes else {}
    preset = specification["generator"]["preset"]
    shown = {(each["generator"]["preset"], each["generator"]["seed"]): name for name, each in generated.items()}
    for seed in entry.seeds:
        if (preset, seed) in shown:
            raise ValueError(
                f"{FILE}, like {entry.like}: seed {seed} draws the species of {shown[preset, seed]}; take another"
            )
    return [
        {"name": f"{preset}-{seed}", "specification": {**specification, "generator": {"preset": preset, "seed": seed}}}
        for seed in entry.seeds
    ]
