"""A scale: its data sets, its tables, and what it lays over every recipe.

Those of ``params/scales`` are the project's; an overlay given with ``--configfile`` is a scale of the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.checks import require_known
from lookalike.metrics.names import USUAL_CUT_OFFS
from lookalike.parameters import Settings, check, dataset_names, merge, read
from lookalike.paths import project_root
from lookalike.plan.published import nameable_datasets
from lookalike.sources.code import keys_of

OVERLAY = "the overlay"  # what messages call the user's own scale
TABLES_OF_OVERLAY = ["comparison"]  # of one that names none
FOLDERS = ("archives", "benchmarks", "pictures", "reference", "splits")  # of data/ and results/, beside those of scales

HELD_OUT = "_held_out"  # behind a scale: results whose epochs were chosen on classes held out


@dataclass(frozen=True)
class Dataset:
    """One data set of a scale."""

    name: str
    stands_for: str | None  # the published data set whose recipe values it takes
    specification: Settings  # layout, classes, counts, archives: see workflow/schemas/dataset.schema.yaml
    own: bool  # given by the user's overlay, so hashed in its manifest instead of tracked by DVC
    folder: str  # below which the data of this scale lie

    @property
    def root(self) -> str:
        """Folder that readers take: the user's own where it is read in place."""
        return str(self.specification.get("folder", f"{self.folder}/{self.name}"))

    @property
    def is_downloaded(self) -> bool:
        """Whether its pictures are fetched, unpacked or drawn first; a folder of the user's own is there already."""
        return "folder" not in self.specification

    @property
    def trained_on(self) -> str | None:
        """Another data set of the scale whose models embed this one, ``None`` for one with training classes."""
        return self.specification.get("trained_on")

    @property
    def is_published(self) -> bool:
        """Whether these are the pictures that the printed numbers were measured on."""
        return self.stands_for == str(self.specification.get("published_as", self.name))

    @property
    def record(self) -> str:
        """File that says the download is complete."""
        return f"{self.folder}/{self.name}.json"

    @property
    def manifest(self) -> str:
        """File that lists its pictures by role, from the split on."""
        return f"{self.folder}/splits/{self.name}.csv"


@dataclass(frozen=True)
class Scale:
    """What a call is to run at.

    Attributes:
        name: name of the scale.
        file: file that it stands in, for messages.
        settings: keys of the file, see workflow/schemas/scale.schema.yaml.
        datasets: data sets by name.
        own: whether it is an overlay of the user's own.
        data_folder: below which its data lie.
        rates_of: scale whose choice of rates holds: the one that states the key ``rates``.
    """

    name: str
    file: str
    settings: Settings
    datasets: dict[str, Dataset]
    own: bool
    data_folder: str
    rates_of: str

    @property
    def overlay(self) -> Settings:
        """What it lays over every recipe."""
        overlay: Settings = self.settings.get("recipe", {})
        return overlay

    @property
    def strangers(self) -> Dataset | None:
        """Data set whose pictures replace others where a recipe asks for errors, if it names one."""
        return self.datasets[self.settings["strangers"]] if "strangers" in self.settings else None

    @property
    def strangers_super(self) -> int | None:
        """Coarse class that the strangers are taken from, ``None`` for all training pictures of their data set."""
        return self.settings.get("strangers_super")


def scale_and_selection(folder: str) -> tuple[str, str]:
    """Scale, and what chose the epochs, of the call whose results lie in a folder of that name, without a suffix."""
    scale = folder.removesuffix(HELD_OUT)
    return scale, "test" if scale == folder else "held_out"


def read_scale(config: Mapping[str, Any]) -> Scale:
    """The scale of a configuration.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """
    is_overlay = "name" in config
    name = config["name"] if is_overlay else config["scale"]
    file = OVERLAY if is_overlay else f"params/scales/{name}.yaml"
    if is_overlay:
        _refuse_taken(name, config.get("overlays", []))
    values, rates_of = (_of_overlay(config), name) if is_overlay else _of_file(name)
    if isinstance(values.get("rates"), str):
        rates_of = values.pop("rates")
        known = sorted(path.stem for path in (project_root() / "params" / "rates").glob("*.csv"))
        require_known(f"{file}, rates (choices below params/rates)", rates_of, known)
    folder = f"data/{name}" if is_overlay else "data"
    datasets = {name: _dataset(name, value or {}, folder, file) for name, value in values["datasets"].items()}
    trained = [dataset.name for dataset in datasets.values() if dataset.trained_on is None]
    for dataset in datasets.values():
        if dataset.trained_on is not None:
            require_known(f"{file}, datasets.{dataset.name}.trained_on", dataset.trained_on, trained)
    if "strangers" in values:
        require_known(f"{file}, strangers", values["strangers"], datasets)
    return Scale(name, file, values, datasets, is_overlay, folder, rates_of)


def _of_file(name: str) -> tuple[Settings, str]:
    """Values laid over those of the scale that this one is ``like``, and the scale whose choice of rates holds.

    Data sets and tables are always its own.
    """
    values = read(f"params/scales/{name}.yaml", "scale")
    rates_of = name
    if "like" in values:
        rates_of = name if "rates" in values else values["like"]
        base = read(f"params/scales/{values['like']}.yaml", "scale")
        values = merge({key: base[key] for key in ("embedding_dims", "recipe", "rates") if key in base}, values)
    return values, rates_of


def _refuse_taken(name: str, overlays: Sequence[str]) -> None:
    """Refuse an overlay whose results or data would lie among others; a study's own file, laid last, has its name."""
    root = project_root()
    study = root / "params" / "overlays" / f"{name}.yaml"
    if overlays and study.is_file() and study.samefile(root / overlays[-1]):
        return
    scales = [path.stem for part in ("scales", "overlays") for path in (root / "params" / part).glob("*.yaml")]
    taken = {*scales, *(f"{scale}{HELD_OUT}" for scale in scales), *dataset_names(), *FOLDERS}
    if name in taken:
        raise ValueError(
            f"{OVERLAY}, name: {name!r} is taken by a scale, a study of params/overlays, a data set or a folder; "
            "choose another"
        )


def _of_overlay(config: Mapping[str, Any]) -> Settings:
    keys = (
        *("title", "tables", "datasets", "strangers", "strangers_super", "embedding_dims", "recipe", "rates"),
        *("figures", "figure_seeds", "explanations", "page"),
    )
    values = {
        "title": config["name"],
        "tables": TABLES_OF_OVERLAY,
        **{key: config[key] for key in keys if key in config},
    }
    check(values, "scale", OVERLAY)
    return values


def _dataset(name: str, values: Mapping[str, Any], folder: str, source_file: str) -> Dataset:
    values = dict(values)
    stands_for = values.pop("stands_for", None)
    if stands_for is not None:
        require_known(f"{source_file}, datasets.{name}.stands_for", stands_for, nameable_datasets())
    is_own = "layout" in values
    if is_own:
        values = {"title": name, "recall_at": list(USUAL_CUT_OFFS), "self_match": True, **values}
        check(values, "dataset", f"{source_file}, datasets.{name}")
        for key in ("unlabelled", "ignore"):
            if key in values and values["layout"] != "folder":
                raise ValueError(
                    f"{source_file}, datasets.{name}.{key}: only layout 'folder' has it, not {values['layout']!r}"
                )
    elif values or source_file == OVERLAY:  # a project's data set lies where its scales read it
        given = ", ".join(values) or "none of its keys"
        raise ValueError(f"{source_file}, datasets.{name}: own data name their layout; found only {given}")
    specification = values if is_own else read(f"params/datasets/{name}.yaml", "dataset")
    where = f"{source_file}, datasets.{name}" if is_own else f"params/datasets/{name}.yaml"
    require_known(
        f"{where}.layout" if is_own else f"{where}, layout",
        specification["layout"],
        keys_of("lookalike.data.readers", "READERS"),
    )
    if "generator" in specification:
        presets = keys_of("figurines.preset", "PRESETS")
        require_known(f"{where}, generator.preset", specification["generator"]["preset"], presets)
    return Dataset(name, stands_for, specification, is_own, folder)
