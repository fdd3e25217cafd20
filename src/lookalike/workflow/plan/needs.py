"""Needs of a call, looked for before any job starts: folders, archives, weights, and pictures that fill batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from lookalike.base.paths import project_root
from lookalike.workflow.data import fetched_by_hand
from lookalike.workflow.data.splits import LEAST_CLASSES, held_out_classes
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.plan.sizes import Sizes, role_sizes
from lookalike.workflow.settings.recipes import Train

# Samplers whose batches hold distinct classes, so many as the batch has groups.
OF_DISTINCT_CLASSES = ("balanced", "cyclic", "grouped")


class Need(NamedTuple):
    """Need of a batch: ``number`` of ``what``, classes or pictures, and the ``largest`` batch that those there fill."""

    number: int
    what: str
    largest: int


def unmet_need(train: Train, pictures: int, classes: int) -> Need | None:
    """Shortage of pictures or classes for the batches of a training, ``None`` if they can be filled.

    Args:
        train: the recipe's ``train`` section.
        pictures: number of pictures of the training classes.
        classes: among them.
    """
    if train.loss is None:
        return None
    sampler, batch_size = train.sampler, train.batch_size
    if sampler.name == "plain" and pictures < batch_size:
        return Need(batch_size, "pictures", pictures)
    per_class = int(sampler.options.get("per_class", 1))
    groups = batch_size // per_class
    if sampler.name in OF_DISTINCT_CLASSES and classes < groups:
        return Need(groups, "classes", classes * per_class)
    return None


Run = tuple[str, str]  # recipe and data set
# Weights of torchvision have such names; which of them a network has, only torch can tell.
OF_TORCHVISION = re.compile(r"(?!DEFAULT)[A-Z][A-Z0-9_]+")


def check_inputs(plan: Plan, runs: Sequence[Run]) -> None:
    """Refuse runs whose data or weights are not there, or whose pictures do not fill their batches.

    What will be downloaded or drawn, and what is known only after the split, is not missed.

    Args:
        plan: what the call runs.
        runs: recipes with the data sets that they run on, which `Plan.check_run` has passed.

    Raises:
        ValueError: in one line, naming what is missing, where that is asked for, and what would be right.
    """
    trainings = dict.fromkeys((recipe, plan.training_dataset(recipe, dataset)) for recipe, dataset in runs)
    strangers = [each.name for training in trainings if (each := plan.strangers(*training)) is not None]
    for name in dict.fromkeys([*(dataset for pairs in (runs, trainings) for _, dataset in pairs), *strangers]):
        _check_data(plan.datasets[name], plan.scale_file, _told(plan))
    _check_weights(plan, trainings)
    for name in dict.fromkeys(dataset for _, dataset in trainings):
        check_batches(
            plan,
            name,
            role_sizes(plan.datasets[name]),
            [recipe for recipe, trained_on in trainings if trained_on == name],
        )


def check_batches(plan: Plan, dataset: str, sizes: Sizes, recipes: Iterable[str]) -> None:
    """Refuse training classes that do not fill the batches of some recipes.

    Args:
        plan: what the call runs.
        dataset: name of the data set that is trained on.
        sizes: pictures and classes of its roles; nothing is said of a role that is not among them. Of crossed halves
            the test classes train, too.
        recipes: recipes that are trained on it.

    Raises:
        ValueError: naming all recipes that fail, and what would be enough for all of them.
    """
    for half in plan.halves_of(dataset):
        if (role := "test" if half else "train") in sizes:
            where = f"{dataset}, {half} half" if half else dataset
            _check_filled(plan, dataset, where, sizes[role], list(recipes))


def _check_filled(plan: Plan, dataset: str, where: str, size: tuple[int, int], recipes: Iterable[str]) -> None:
    pictures, classes = size
    if plan.holds_out and classes < LEAST_CLASSES:
        least = f"to hold some out it takes at least {LEAST_CLASSES}"
        raise ValueError(f"{where} has {classes} training classes; {least}")
    share = (classes - held_out_classes(classes)) / classes if plan.holds_out else 1.0
    unmet: dict[str, tuple[Train, Need]] = {}
    for recipe in recipes:
        train = plan.settings(recipe, dataset).train
        kept = share * train.noise.classes
        if (need := unmet_need(train, round(kept * pictures), round(kept * classes))) is not None:
            unmet[recipe] = train, need
    if unmet:
        held = " without those held out" if plan.holds_out else ""
        raise ValueError(
            f"{where}: {pictures} pictures of {classes} training classes{held} do not fill a batch of "
            f"{', '.join(_asked(recipe, *each) for recipe, each in unmet.items())}. "
            f"Enough: {_enough([need for _, need in unmet.values()], plan.scale_file)}"
        )


def _asked(recipe: str, train: Train, need: Need) -> str:
    return f"{recipe} (batch_size {train.batch_size} takes {need.number} {need.what})"


def _enough(needs: Sequence[Need], file: str) -> str:
    """Words on the remedy for batches that cannot be filled: more classes or pictures, or a smaller batch."""
    numbers = {need.what: max(each.number for each in needs if each.what == need.what) for need in needs}
    more = " and ".join(f"{number} training {what}" for what, number in numbers.items())
    largest = min(need.largest for need in needs)
    return more + (f", or recipe.train.batch_size: {largest} in {file}" if largest > 1 else "")


def check_archives(datasets: Iterable[Dataset], archives: Path) -> None:
    """Refuse data sets whose archives somebody has to fetch by hand and that are not there.

    Args:
        datasets: data sets that a call is about to unpack.
        archives: folder in which archives are looked for.

    Raises:
        ValueError: naming all of them with their files, and what to do.
    """
    missing = []
    for dataset in datasets:
        root = project_root() / dataset.root
        has_archives = "archives" in dataset.about.model_fields_set  # of pictures, if none is listed
        if has_archives and (files := fetched_by_hand(dataset.about, root, archives)):
            missing.append(f"{dataset.name} needs {', '.join(files)} ({dataset.about.manual or 'download it'})")
    if missing:
        raise ValueError(f"not in {archives}, and without an address to fetch it from: {'; '.join(missing)}")


def _told(plan: Plan) -> str:
    """Where a study of this repository says which files it wants."""
    file = f"params/overlays/{plan.scale}.yaml"
    return f"; the first lines of {file} say which" if (project_root() / file).is_file() else ""


def _check_data(dataset: Dataset, file: str, told: str) -> None:
    """Refuse a user's folder or archive, or a hierarchy, that does not exist."""
    about, where = dataset.about, f"{file}, datasets.{dataset.name}"
    root = project_root()
    if about.hierarchy:
        path = root / "params" / "hierarchies" / f"{about.hierarchy}.csv"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in path.parent.glob("*.csv")))
            raise ValueError(f"{where}.hierarchy: {path} does not exist; known: {known}")
    if not dataset.own:
        return
    split = (root / dataset.manifest).is_file()
    if about.folder:
        if not (folder := root / about.folder).is_dir():
            raise ValueError(f"{where}.folder: {folder} is no folder; it should be the one that holds the pictures")
    elif about.archive:
        if not (archive := root / about.archive).is_file() and not split:
            raise ValueError(f"{where}.archive: {archive} is no file; it should be the archive with the pictures{told}")
    elif not ({"archives", "generator"} & about.model_fields_set or (root / dataset.root).is_dir()):
        raise ValueError(f"{where}: does not say where the pictures are; `folder` or `archive` does")


def _check_weights(plan: Plan, trainings: Iterable[Run]) -> None:
    first: dict[str, Run] = {}
    for recipe, dataset in trainings:
        weights = plan.settings(recipe, dataset).train.backbone.weights
        first.setdefault(weights or "", (recipe, dataset))
    for weights, (recipe, dataset) in first.items():
        if weights and not (project_root() / weights).is_file() and not OF_TORCHVISION.fullmatch(weights):
            stated = plan.stated(recipe, dataset)["train"]["backbone"]["weights"]
            where = plan.place_of(recipe, dataset, of_scale=stated != weights)
            raise ValueError(
                f"{where}, train.backbone.weights: {project_root() / weights} is no file; give "
                f"a file in torchvision's layout, a name of torchvision's such as IMAGENET1K_V1, or null{_told(plan)}"
            )
