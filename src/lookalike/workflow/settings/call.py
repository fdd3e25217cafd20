"""The configuration of one call: params/config.yaml, and overlays over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from lookalike.base.paths import project_root
from lookalike.workflow.settings.datasets import PictureCache
from lookalike.workflow.settings.files import read, read_yaml
from lookalike.workflow.settings.layers import Tree, merge
from lookalike.workflow.settings.model import Model, Name, Natural, Rate, SomeUnique
from lookalike.workflow.settings.scales import Halves


def _kind_of_seeds(seeds: Any) -> str:
    return "[paper]" if seeds == "paper" else "[list]"


class Configuration(Model):
    """Configuration of one call (params/config.yaml, --config and --configfile); with a name it is an overlay.

    What an overlay says as a scale is checked as one, `lookalike.workflow.settings.scales.Scale`.
    """

    scale: Name
    """File params/scales/<scale>.yaml."""
    seeds: Annotated[
        Annotated[SomeUnique[Natural], Tag("[list]")] | Annotated[Literal["paper"], Tag("[paper]")],
        Discriminator(_kind_of_seeds),
    ]
    """Of each run; `paper` for as many of a table as its paper's numbers are means of."""
    archives: str
    """Folder with archives that are on disk already; $LOOKALIKE_ARCHIVES comes before it."""
    selection: Literal["test", "held_out"] = "test"
    """What chooses the epoch: the test classes, as in the papers, or 20 % of the training classes in a training of
    their own."""
    tracking: bool
    """Log runs to MLflow."""
    suffix: Annotated[str, Field(pattern="^[a-z0-9_]*$")] = ""
    """Of the folder of results, results/<scale>_<suffix>."""
    mixed: bool = False
    """Show runs of other data or weights under one name beside each other, marked."""
    missing: Literal["make", "say"] = "make"
    """What becomes of rows of claims and tables whose trainings are neither here nor committed: trained, or not run."""
    held: Literal["usual", "all"] = "usual"
    """Claims that `regression` makes anew: those on the stand-in for CUB, or on all data sets."""
    container: str = ""
    """Image that jobs run in, with --software-deployment-method apptainer."""
    decoded_gb: Rate = 0
    """Decoded pictures kept on disk, for each split and view."""
    resume_minutes: Rate = 0
    """Between two files from which a killed training goes on."""
    picture_cache: PictureCache | None = None
    """Smaller copies of all pictures; those of a data set come before it."""
    overlays: list[str] = []
    """Files of the overlays, which the call itself notes here."""
    name: Name | None = None
    """Of an overlay and the folder of its results: that of no scale and no data set."""
    tables: SomeUnique[str] | None = None
    """Of params/tables and params/sweeps, in place of the scale's; of an overlay `comparison` if left out."""
    title: Any = None
    datasets: Any = None
    only: SomeUnique[str] | None = None
    """Data sets of the scale; the others are left out."""
    strangers: Any = None
    strangers_super: Any = None
    halves: Halves | None = None
    """In place of the scale's."""
    embedding_dims: Any = None
    recipe: Any = None
    rates: Any = None
    figures: Any = None
    figure_seeds: Any = None
    explanations: Any = None
    page: Any = None


def read_overlay(paths: Sequence[Path]) -> Tree:
    """Content of the overlays that a command is given, each laid over those before it.

    Returns:
        Their keys, and as ``overlays`` the files: those of the project as its root has them, others absolute.

    Raises:
        ValueError: as `read_yaml`, and for a file with a key ``overlays`` of its own.
    """
    contents = [read_yaml(path.absolute()) for path in paths]
    overlay = contents[0] if contents else {}
    for content in contents[1:]:
        from snakemake.utils import update_config  # as a call does: to `merge` a ``name`` says whose other values are

        update_config(overlay, content)
    if "overlays" in overlay:
        raise ValueError(f"{', '.join(map(str, paths))}, overlays: files are given by --configfile; leave the key out")
    return {**overlay, "overlays": [_in_project(path.absolute()) for path in paths]} if paths else overlay


def configuration(scale: str | None, overlays: Sequence[Path]) -> Tree:
    """``params/config.yaml`` as a command is to read it: overlays over it, at a scale where one is named.

    Raises:
        ValueError: as `read` and `read_yaml`, and for a scale beside an overlay that is one.
    """
    config = merge(read("params/config.yaml", Configuration).dump(), read_overlay(overlays))
    if scale and "name" in config:
        raise ValueError(f"--scale {scale}: the overlay is a scale of its own, {config['name']!r}; name one of the two")
    return {**config, "scale": scale} if scale else config


def _in_project(path: Path) -> str:
    root = project_root()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
