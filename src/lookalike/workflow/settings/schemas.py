"""JSON schemas of the files below ``params/``, by which editors complete and check them.

After a change of a model ``python -m lookalike.workflow.settings.schemas`` writes them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from lookalike.base.files import write_json
from lookalike.base.paths import project_root
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.fidelity import Disagreements
from lookalike.workflow.settings.model import Model, Name
from lookalike.workflow.settings.pages import Claim, Explanations, Figure, Page
from lookalike.workflow.settings.recipes import Embed, Evaluate, RecipeFile, RecipePart, Segment, Train
from lookalike.workflow.settings.scales import Scale
from lookalike.workflow.settings.start import MeasuredCard, Pretraining
from lookalike.workflow.settings.tables import Sweep, Table, TrivialRows

FOLDER = "params/schemas"
# By name of the schema the model of a file, and those of files that hold entries by name.
OF_FILES: dict[str, type[Model]] = {
    "card": MeasuredCard,
    "config": Configuration,
    "dataset": Dataset,
    "defaults": RecipePart,
    "explanations": Explanations,
    "fidelity": Disagreements,
    "page": Page,
    "recipes": RecipeFile,
    "scale": Scale,
    "start": Pretraining,
    "trivial": TrivialRows,
}
# Sections of recipes, of which files state parts: these stand once, in the schema `parts`.
SECTIONS: tuple[type[Model], ...] = (Train, Embed, Evaluate, Segment)
OF_ENTRIES: dict[str, type[Model]] = {"claims": Claim, "figures": Figure, "sweeps": Sweep, "tables": Table}


def schemas() -> dict[str, dict[str, Any]]:
    """All schemas by name."""
    found = {name: kind.model_json_schema() for name, kind in OF_FILES.items()}
    for name, kind in OF_ENTRIES.items():
        found[name] = TypeAdapter(dict[Name, kind]).json_schema()  # type: ignore[valid-type]
    found["overlay"] = _overlay(found["config"], found["scale"])
    found["parts"] = _optional(models_json_schema([(kind, "validation") for kind in SECTIONS])[1])
    standard = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: {**standard, **_linked(found[name])} for name in sorted(found)}


def write_schemas(folder: Path) -> None:
    """Write each as ``<name>.json``."""
    for name, schema in schemas().items():
        write_json(folder / f"{name}.json", schema)


def _overlay(config: dict[str, Any], scale: dict[str, Any]) -> dict[str, Any]:
    """Schema of a file for ``--configfile``: keys of a call, and with a name those of a scale."""
    return {
        "$defs": config.get("$defs", {}) | scale.get("$defs", {}),
        "additionalProperties": False,
        "properties": config["properties"] | {key: each for key, each in scale["properties"].items() if key != "like"},
        "title": "Overlay",
        "type": "object",
    }


def _linked(schema: Any) -> Any:
    """The schema with references in place of the comments that `PartOf` leaves."""
    if isinstance(schema, list):
        return [_linked(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {"$ref" if key == "$comment" else key: _linked(value) for key, value in schema.items()}


def _optional(schema: Any) -> Any:
    """With no key required."""
    if isinstance(schema, list):
        return [_optional(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _optional(value) for key, value in schema.items() if key != "required" or not isinstance(value, list)}


if __name__ == "__main__":
    write_schemas(project_root() / FOLDER)
