"""What a training teaches under set-ups of `mini` that were tried: R@1 above the untrained start.

Run ``python benchmarks/setups.py [NAME ...]``: birds and vehicles are drawn by another seed than those of any scale.
Starts that `tiny` has not learned from yet are learned. `mini` is what was chosen, as the scale has it now, over ten
seeds. What is there is not made again. A row is *above* where an interval of 95 % to one side is, over the test classes
and, of several, the seeds. ``results/benchmarks/setups.csv`` gets the rows that are there, and keeps the others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.base.files import write_text
from lookalike.base.paths import project_root
from lookalike.workflow.plan.start import drawn_sets, read_start
from lookalike.workflow.report.differences import differences, values
from lookalike.workflow.settings.files import read, yaml_text
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.settings.scales import Scale
from lookalike.workflow.settings.start import DrawnSets
from lookalike.workflow.stages.pretrain import pretrain

SEED = 7  # of the drawings
HALF = {"train": [1, 36], "test": [37, 72]}  # of a preset: all of its classes are learned from
# What a start has learned from, by name; weights are random without.
STARTS = {
    "all": [
        *(
            DrawnSets(like=f"figurines_{kind}", seeds=[*range(1001, 1005)], classes=HALF)
            for kind in ("birds", "vehicles")
        ),
        DrawnSets(like="figurines_products", seeds=[1001]),
    ],
    "few": [DrawnSets(like=f"figurines_{kind}", seeds=[1001], classes=HALF) for kind in ("birds", "vehicles")],
    "products": [DrawnSets(like="figurines_products", seeds=[1001, 1002, 1003])],
}
RECIPES = (
    *("margin", "multi_similarity", "proxy_anchor", "softmax", "contrastive", "triplet_semihard", "contextual"),
    "avsl_proxy_anchor",
)
DATASETS = {"birds": ("cub", "cub"), "vehicles": ("cars", "cars")}  # by preset: what it stands for, and its layout
CHOSEN, SEEDS = "mini", range(10)
FILE = project_root() / "results" / "benchmarks" / "setups.csv"


@dataclass(frozen=True)
class Setup:
    """What is tried.

    Attributes:
        start: of `STARTS`, empty for random weights.
        trunk: its learning rate.
        batches: of 64 in each of four epochs.
        classes: of training, of each data set.
        images: of each of them.
        test_classes: of ten images.
    """

    start: str
    trunk: float = 1e-3
    batches: int = 10
    classes: int = 36
    images: tuple[int, ...] = (16, 17, 18, 19, 20)
    test_classes: int = 200
    head: float = 4e-3

    @property
    def home(self) -> str:
        """Name of the data, which set-ups share."""
        return f"setup{self.classes}_{self.images[0]}"

    def overlay(self) -> dict[str, Any]:
        """As a call takes it."""
        data = {}
        for preset, (stands_for, layout) in DATASETS.items():
            drawn = {"preset": preset, "seed": SEED, "train_classes": self.classes, "images_per_class": [*self.images]}
            drawn |= {"test_classes": self.test_classes, "images_per_test_class": [9, 10, 11]}
            last = self.classes + self.test_classes
            data[f"trial_{preset}"] = {
                "title": f"{preset} of another seed",
                "stands_for": stands_for,
                "layout": layout,
                "generator": drawn,
                "classes": {"train": [1, self.classes], "test": [self.classes + 1, last]},
            }
        budget = {"epochs": 4, "batches_per_epoch": self.batches, "evaluate_every": 4}
        train = {"backbone": {"weights": weights_of(self.start)}, "budget": budget}
        train |= {"optimiser": {"lr": {"trunk": self.trunk, "head": self.head}}}
        mini = read("params/scales/mini.yaml", Scale).dump()
        return {
            "name": self.home,
            "title": "a set-up that is tried",
            "datasets": data,
            "recipe": merge(mini["recipe"], {"train": train}),
            "embedding_dims": mini["embedding_dims"],
            "tables": ["avsl_1"],
            "tracking": False,
        }


MANY: dict[str, Any] = {"classes": 140, "images": (8,), "test_classes": 100}
SETUPS = {
    "before": Setup("all"),
    "few": Setup("few"),
    "products": Setup("products"),
    "products_fast": Setup("products", trunk=3e-3),
    "few_many_classes": Setup("few", **MANY),
    "random_many_classes": Setup("", trunk=3e-3, **MANY),
    "products_many_classes": Setup("products", **MANY),
    "products_many_classes_60": Setup("products", batches=15, **MANY),
    "products_many_classes_60_fast": Setup("products", batches=15, trunk=2e-3, head=8e-3, **MANY),
    "products_many_classes_100": Setup("products", batches=25, **MANY),
    "products_many_classes_100_slow": Setup("products", batches=25, trunk=3e-4, **MANY),
    "products_many_images_100": Setup("products", batches=25, **{**MANY, "images": (12,)}),
}
SETUPS[CHOSEN] = SETUPS["products_many_classes_100"]  # which params/scales/mini.yaml states now


def weights_of(start: str) -> str | None:
    """The file of a start, learned if it is not there."""
    if not start:
        return None
    folder = Path("data/starts_tried")
    file = folder / f"{start}.safetensors"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        stated = read_start()
        pretrain(
            checked(Train, stated.train, "params/start.yaml"),
            drawn=[each for entry in STARTS[start] for each in drawn_sets(entry)],
            measured_on=stated.measured_on,
            seed=0,
            code="",
            folder=f"{folder}/{start}",
            weights=str(file),
            history=f"{folder}/{start}.csv",
        )
    return str(file)


def metrics(name: str, recipe: str, preset: str) -> list[str]:
    """Files of a recipe's metrics, one a seed."""
    if name == CHOSEN:
        return [f"results/mini/metrics/{recipe}/figurines_{preset}/seed{seed}.json" for seed in SEEDS]
    return [f"results/{SETUPS[name].home}_{name}/metrics/{recipe}/trial_{preset}/seed0.json"]


def make(name: str) -> None:
    """Train and measure a set-up's recipes, and their starts."""
    config = ["--config", f"seeds={[*SEEDS]}", "tracking=false"]
    if name != CHOSEN:
        file = Path("data/starts_tried") / f"{name}.yaml"
        write_text(file, yaml_text(SETUPS[name].overlay()))
        config = ["--configfile", str(file), "--config", f"suffix={name}"]
    named = [f"{start}{recipe}" for recipe in RECIPES for start in ("", "start_of_")]
    files = [file for recipe in named for preset in DATASETS for file in metrics(name, recipe, preset)]
    options = ["--cores", "all", "--resources", "gpu=1", *config]
    subprocess.run([sys.executable, "-m", "snakemake", *files, *options], check=True)


def rows(name: str) -> Iterator[dict[str, object]]:
    """What of a set-up is there."""
    setup = SETUPS[name]
    for preset in DATASETS:
        for recipe in RECIPES:
            after, before = metrics(name, recipe, preset), metrics(name, f"start_of_{recipe}", preset)
            if not all(Path(file).exists() for file in (*after, *before)):
                continue
            gain = differences(after, before, "R@1", [*range(len(after))])
            estimate = gain.estimate()
            low, _ = estimate.interval(2 * 0.05)
            yield {
                "setup": name,
                "start": setup.start or "random",
                "trunk": setup.trunk,
                "head": setup.head,
                "batches": 4 * setup.batches,
                "classes": setup.classes,
                "test_classes": setup.test_classes,
                "seeds": len(after),
                "dataset": preset,
                "recipe": recipe,
                "before": round(float(values(before, "R@1").mean()), 1),
                "gain": round(estimate.mean, 1),
                "low": round(low, 1),
                "above": "yes" if low > 0 else "no",
            }


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SETUPS)}; all if left out")
    options.add_argument("--only-list", action="store_true", help="make nothing, list what is there")
    given = options.parse_args()
    for name in () if given.only_list else given.names or SETUPS:
        make(name)
    found = pd.DataFrame([row for name in SETUPS for row in rows(name)])
    kept = pd.read_csv(FILE)
    frame = pd.concat([kept[~kept["setup"].isin(found.get("setup", []))], found])
    frame["setup"] = pd.Categorical(frame["setup"], [*SETUPS])
    frame = frame.sort_values("setup", kind="stable")
    frame.to_csv(FILE, index=False)
    print(frame.assign(above=frame["above"] == "yes").groupby("setup", observed=True)["above"].mean().to_string())


if __name__ == "__main__":
    main()
