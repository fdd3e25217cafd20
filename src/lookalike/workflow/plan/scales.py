"""A scale: its data sets, its tables, and its overlay of every recipe.

Those of ``params/scales`` are the project's; an overlay given with ``--configfile`` is a scale of the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lookalike.base.checks import require_known
from lookalike.base.paths import project_root
from lookalike.metrics.names import USUAL_CUT_OFFS, of_data_sets
from lookalike.workflow.plan.published import nameable_datasets
from lookalike.workflow.settings import datasets, scales
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import dataset_names, read, read_yaml
from lookalike.workflow.settings.layers import Layer, Tree, laid, merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.sources.code import keys_of

OVERLAY = "the overlay"  # what messages call the user's own scale
TABLES_OF_OVERLAY = ["comparison"]  # of one that names none
FOLDERS = ("archives", "benchmarks", "pictures", "reference", "splits")  # of data/ and results/, beside those of scales

SECOND = "second"  # half of the classes
HELD_OUT = "_held_out"  # behind a scale: results whose epochs were chosen on classes held out


@dataclass(frozen=True)
class Dataset:
    """One data set of a scale."""

    name: str
    stands_for: str | None  # the published data set whose recipe values it takes
    about: datasets.Dataset  # what is known of it
    own: bool  # given by the user's overlay, so hashed in its manifest instead of tracked by DVC
    folder: str  # below which the data of this scale lie

    @property
    def root(self) -> str:
        """Folder that readers take: the user's own where it is read in place."""
        return self.about.folder or f"{self.folder}/{self.name}"

    @property
    def is_downloaded(self) -> bool:
        """Whether its pictures are fetched, unpacked or drawn first; a folder of the user's own is there already."""
        return not self.about.folder

    @property
    def trained_on(self) -> str | None:
        """Another data set of the scale whose models embed this one, ``None`` for one with training classes."""
        return self.about.trained_on or None

    @property
    def is_published(self) -> bool:
        """Whether these are the pictures that the printed numbers were measured on."""
        return self.stands_for == (self.about.published_as or self.name)

    @property
    def record(self) -> str:
        """File that says the download is complete."""
        return f"{self.folder}/{self.name}.json"

    @property
    def contents(self) -> str:
        """File with the digests of a folder of the user's own."""
        return f"{self.folder}/{self.name}.contents.json"

    @property
    def manifest(self) -> str:
        """File that lists its pictures by role, from the split on."""
        return f"{self.folder}/splits/{self.name}.csv"

    def manifest_of(self, half: str) -> str:
        """The same for seeds that train on a half of the classes."""
        return of_half(self.manifest, half)

    @property
    def one_half(self) -> str:
        """Why its classes cannot change sides, empty where they can."""
        if self.about.layout == "pascal5i":
            return "it is segmented"
        return "" if self.about.self_match else "it has queries and a gallery"


def half_of_seed(seed: int) -> str:
    """Half of the classes that a seed trains on where halves are crossed: `SECOND` is a data set's test classes.

    The seeds 2k and 2k + 1 are a pair.
    """
    return SECOND if seed % 2 else ""


def of_half(listed: str, half: str) -> str:
    """Name of a list of pictures for seeds that train on a half, beside that of the data set's own training half."""
    return f"{listed.removesuffix('.csv')}.{half}.csv" if half else listed


def cut_offs(described: Iterable[datasets.Dataset]) -> set[int]:
    """The k of Recall@k on any of some data sets, the usual ones where a data set names none."""
    named = (each.recall_at if "recall_at" in each.model_fields_set else USUAL_CUT_OFFS for each in described)
    return {k for each in named for k in each}


def measured_metrics(described: Sequence[datasets.Dataset]) -> set[str]:
    """Names of all metrics of retrieval that some data sets have."""
    return of_data_sets(cut_offs(described), (level for each in described for level in each.levels))


@dataclass(frozen=True)
class Scale:
    """The scale of a call: its settings, layers and data sets.

    Attributes:
        name: name of the scale.
        file: file that it stands in, for messages.
        settings: of the file or of the overlays.
        layers: what it lays over every recipe, those of the scale that it is ``like`` first, each overlay by itself.
        datasets: data sets by name.
        own: whether it is an overlay of the user's own.
        data_folder: below which its data lie.
        rates_of: scale whose choice of rates holds: the one that states the key ``rates``.
    """

    name: str
    file: str
    settings: scales.Scale
    layers: tuple[Layer, ...]
    datasets: dict[str, Dataset]
    own: bool
    data_folder: str
    rates_of: str

    @property
    def overlay(self) -> Tree:
        """Sections that it lays over every recipe."""
        return self.settings.recipe.dump()

    @property
    def strangers(self) -> Dataset | None:
        """Data set whose pictures replace others where a recipe asks for errors, if it names one."""
        return self.datasets[self.settings.strangers] if self.settings.strangers else None


def scale_and_selection(folder: str) -> tuple[str, str]:
    """Scale and selection of epochs of the call whose results lie in a folder of that name, without a suffix."""
    scale = folder.removesuffix(HELD_OUT)
    return scale, "test" if scale == folder else "held_out"


def read_scale(config: Configuration) -> Scale:
    """The scale of a configuration.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """
    name, file = (config.name, OVERLAY) if config.name else (config.scale, f"params/scales/{config.scale}.yaml")
    if config.name:
        _refuse_taken(name, config.overlays)
        settings, rates_of = _of_overlay(config, config.name), name
        layers = _layers_of_overlays(config.overlays, settings.recipe.dump())
    else:
        settings, layers, rates_of = _of_file(name, file)
        if config.halves:
            settings = settings.model_copy(update={"halves": config.halves})
    if isinstance(settings.rates, str):
        rates_of = settings.rates
        known = sorted(path.stem for path in (project_root() / "params" / "rates").glob("*.csv"))
        require_known(f"{file}, rates (choices below params/rates)", rates_of, known)
    folder = f"data/{name}" if config.name else "data"
    for key in config.only or ():
        require_known("only", key, settings.datasets)
    taken = {*(config.only or settings.datasets), settings.strangers}
    found = {key: _dataset(key, value or {}, folder, file) for key, value in settings.datasets.items() if key in taken}
    trained = [dataset.name for dataset in found.values() if dataset.trained_on is None]
    for dataset in found.values():
        if dataset.trained_on is not None:
            require_known(f"{file}, datasets.{dataset.name}.trained_on", dataset.trained_on, trained)
    if settings.strangers:
        require_known(f"{file}, strangers", settings.strangers, found)
    return Scale(name, file, settings, layers, found, config.name is not None, folder, rates_of)


def _of_file(name: str, file: str) -> tuple[scales.Scale, tuple[Layer, ...], str]:
    """Settings laid over those of the scale that this one is ``like``, and the scale whose choice of rates holds.

    Data sets and tables are always its own.
    """
    settings = read(file, scales.Scale)
    own = Layer(f"{file}, recipe", settings.recipe.dump())
    if settings.like is None:
        return settings, (own,), name
    base_file = f"params/scales/{settings.like}.yaml"
    base = read(base_file, scales.Scale)
    below = base.model_dump(include={"embedding_dims", "halves", "recipe", "rates"}, exclude_unset=True)
    both = checked(scales.Scale, merge(below, settings.dump()), file)
    rates_of = name if "rates" in settings.model_fields_set else settings.like
    return both, (Layer(f"{base_file}, recipe", base.recipe.dump()), own), rates_of


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


def _of_overlay(config: Configuration, name: str) -> scales.Scale:
    stated = config.model_dump(include={*scales.Scale.model_fields}, exclude_unset=True)
    return checked(scales.Scale, {"title": name, "tables": TABLES_OF_OVERLAY, **stated}, OVERLAY)


def _layers_of_overlays(files: Sequence[str], recipe: Tree) -> tuple[Layer, ...]:
    """Each file by itself; all in one where a call says more beside them."""
    root = project_root()
    layers = tuple(Layer(f"{file}, recipe", read_yaml(root / file).get("recipe", {})) for file in files)
    return layers if laid(layers) == recipe else (Layer(f"{OVERLAY}, recipe", recipe),)


def _dataset(name: str, values: Tree, folder: str, source_file: str) -> Dataset:
    values = dict(values)
    stands_for = values.pop("stands_for", None)
    if stands_for is not None:
        require_known(f"{source_file}, datasets.{name}.stands_for", stands_for, nameable_datasets())
    is_own = "layout" in values
    if is_own:
        values = {"title": name, "recall_at": list(USUAL_CUT_OFFS), "self_match": True, **values}
        about = checked(datasets.Dataset, values, f"{source_file}, datasets.{name}")
        for key in ("unlabelled", "ignore"):
            if key in values and about.layout != "folder":
                raise ValueError(
                    f"{source_file}, datasets.{name}.{key}: only layout 'folder' has it, not {about.layout!r}"
                )
    elif values or source_file == OVERLAY:  # a project's data set lies where its scales read it
        found = f"found only {', '.join(values)}" if values else "data sets of params/datasets are for params/scales"
        raise ValueError(f"{source_file}, datasets.{name}: own data name their layout; {found}")
    else:
        about = read(f"params/datasets/{name}.yaml", datasets.Dataset)
        if about.folder or about.archive:
            raise ValueError(f"params/datasets/{name}.yaml: `folder` and `archive` are for own data, in an overlay")
    where = f"{source_file}, datasets.{name}" if is_own else f"params/datasets/{name}.yaml"
    readers = keys_of("lookalike.workflow.data.readers", "READERS")
    require_known(f"{where}.layout" if is_own else f"{where}, layout", about.layout, readers)
    if about.generator:
        presets = keys_of("figurines.preset", "PRESETS")
        require_known(f"{where}, generator.preset", about.generator.preset, presets)
    return Dataset(name, stands_for, about, is_own, folder)
