"""Which figures there are and which runs they read: ``params/figures.yaml``, checked before any job starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookalike.parameters import Settings, read
from lookalike.paths import project_root
from lookalike.plan import Plan
from lookalike.recipes import known
from lookalike.source import lookup

FILE = "params/figures.yaml"
# What a figure can read: the stage that makes it, and folder and ending of its file.
STAGE_OF = {"embeddings": "embed", "metrics": "evaluate", "history": "train", "model": "train"}
FOLDER_OF = {
    "embeddings": ("embeddings", ".safetensors"),
    "metrics": ("metrics", ".json"),
    "history": ("models", ".csv"),
    "model": ("models", ".safetensors"),
}


def read_figures(plan: Plan) -> dict[str, Settings]:
    """Figures that have data at this scale, by name: those that read no run, and those whose data sets it all has.

    Raises:
        ValueError: naming file, key and what would be right, for a figure that nothing draws, an unknown recipe or
            an unknown published data set, also in figures without data at this scale.
    """
    figures = read(FILE, "figures")
    kinds = lookup("lookalike.figures.kinds", "FIGURES")
    datasets = [path.stem for path in (project_root() / "params" / "datasets").glob("*.yaml")]
    present = {dataset.stands_for for dataset in plan.datasets.values()}
    for name, figure in figures.items():
        known(name, kinds, f"{FILE}, {name}")
        for number, entry in enumerate(figure.get("runs", [])):
            known(entry["recipe"], plan.recipe_names, f"{FILE}, {name}.runs.{number}.recipe")
            for dataset in entry["datasets"]:
                known(dataset, datasets, f"{FILE}, {name}.runs.{number}.datasets")
    return {
        name: figure
        for name, figure in figures.items()
        if {dataset for entry in figure.get("runs", []) for dataset in entry["datasets"]} <= present
    }


def figure_runs(plan: Plan, figure: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per run that a figure reads, with all fields of ``lookalike.figures.form.Run`` but ``path``.

    Raises:
        ValueError: for a recipe that cannot run on a data set of this scale.
    """
    runs = [
        {"recipe": entry["recipe"], "published": published, "dataset": dataset.name, "seed": seed}
        | {"reads": entry["reads"], "place": entry.get("place", {}), "root": dataset.root}
        | {"manifest": f"{plan.data_folder}/splits/{dataset.name}.csv", "layout": dataset.specification.get("layout", "")}
        for entry in figure.get("runs", [])
        for published in entry["datasets"]
        for dataset in plan.datasets.values()
        if dataset.stands_for == published
        for seed in plan.seeds
    ]
    for run in runs:
        plan.check_run(run["recipe"], run["dataset"])
    return runs
