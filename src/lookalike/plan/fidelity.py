"""Where a paper and its released code disagree: the options, their levels, and what tries each choice.

``fidelity: recommended | paper | released`` in a recipe sets all options of its paper at once. The files below
``params/fidelity`` say what the paper says, what the released code does, what we take, and which settings of a recipe
that means; `lookalike.settings.fidelity.Disagreements` is their form. `lookalike.reports.fidelity` plans the runs
of the trials and writes the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookalike.checks import require_known
from lookalike.paths import project_root
from lookalike.settings.fidelity import Disagreements
from lookalike.settings.files import read
from lookalike.settings.layers import Tree, merge

LEVELS = ("recommended", "paper", "released")
REASONS = {
    "misprint": "the paper contradicts itself or leaves something out, and what it means is plain",
    "silent": "the paper says nothing, or less than is needed; the released code decides, and where it cannot, we do",
    "agree": "both come to the same",
    "equivalent": "no result depends on it beyond rounding and exact ties",
    "defect": "a slip of the released code that is not repeated",
    "sensible": "only one of the two works",
    "set_up": "differs by set-up, table or data set, whose recipes hold their own",
    "reporting": "is about how numbers are reported, not how they come about",
    "unreleased": "is not in the released code; built from the paper's words",
    "not_offered": "the recipes do not offer the other choice",
}


@dataclass(frozen=True)
class Trial:
    """One choice of one option that is not the recommended one, to be run against the unchanged recipe.

    Attributes:
        paper: paper that the option belongs to.
        option: name of the option, unique among all papers.
        level: ``paper``, ``released``, ``paper_released`` where both choose alike, or the name of an alternative.
        recipe: recipe that it is tried on.
        settings: what is laid over the recipe, in the form of one: sections, and values per data set.
    """

    paper: str
    option: str
    level: str
    recipe: str
    settings: Tree

    @property
    def name(self) -> str:
        """Name of the recipe that tries it."""
        return f"fidelity_{self.option}_{self.level}"

    def is_overruled(self, overlay: Mapping[str, Any]) -> bool:
        """Whether what a scale lays over every recipe replaces all that is tried, so that nothing of it is left."""
        sections = {key: value for key, value in self.settings.items() if key != "per_dataset"}
        tried = (sections, *self.settings.get("per_dataset", {}).values())
        return all(merge(each, overlay) == overlay for each in tried)


@dataclass(frozen=True)
class Departure:
    """A listed point on which printed rows were made otherwise than ours, or on which nobody says how.

    Attributes:
        point: the point in the words of the file.
        where: what a recipe must hold to be concerned, one of these.
        datasets: published data sets that are concerned, empty for all.
        as_printed: settings with which a recipe follows the released code after all, if there are any.
    """

    point: str
    where: tuple[Tree, ...]
    datasets: tuple[str, ...]
    as_printed: Tree | None = None

    def concerns(self, sections: Mapping[str, Any], published: str) -> bool:
        """Whether a recipe, as its sections apply to the data set that stands for a published one, rests on it."""
        if self.datasets and published not in self.datasets:
            return False
        if self.as_printed is not None:
            values = {key: value for key, value in self.as_printed.items() if key != "per_dataset"}
            values = merge(values, self.as_printed.get("per_dataset", {}).get(published, {}))
            if values and _holds(sections, values):
                return False
        return any(_holds(sections, where) for where in self.where)


def departures(paper: str, table: str) -> list[Departure]:
    """The departures that can concern rows of a printed table, in the order of the paper's file; none without a file.

    Raises:
        ValueError: as `choices`.
    """
    if paper not in papers():
        return []
    content = choices(paper)
    listed = []
    for point in (*content["options"].values(), *content["fixed"]):
        departs = point.get("departs")
        if departs is None or table not in departs.get("tables", [table]):
            continue
        conditions = merge(content.get("where", {}), point.get("where", {})) if "set" in point else {}
        where = tuple(departs.get("where", [conditions]))
        released = point.get("set", {}).get("released")
        listed.append(Departure(point["point"], where, tuple(departs.get("datasets", ())), released))
    return listed


def choices(paper: str) -> Tree:
    """Options and fixed points of a paper, as its file states them.

    Raises:
        ValueError: for an unknown paper, or a file against the schema.
    """
    require_known("fidelity, paper", paper, papers())
    return read(f"params/fidelity/{paper}.yaml", Disagreements).dump()


def papers() -> list[str]:
    """The papers whose choices are known: the files in ``params/fidelity``."""
    return sorted(path.stem for path in (project_root() / "params" / "fidelity").glob("*.yaml"))


def overrides(paper: str, level: str, recipe: Mapping[str, Any] | None = None) -> Tree:
    """Tree of all options at a level. An option for which the level says nothing takes the recommended choice.

    Args:
        paper: one of `papers`.
        level: one of `LEVELS`.
        recipe: leave out options that do not concern it, such as those of another loss; ``None`` takes all.

    Returns:
        What is to be laid over a recipe, in the form of one: sections, and values per data set.

    Raises:
        ValueError: for an unknown paper or level, or ``released`` where no code was released.
    """
    content = choices(paper)
    require_known(f"fidelity of {paper}", level, LEVELS)
    if level == "released" and not content["released"]:
        raise ValueError(
            f"fidelity: 'released' is impossible for {paper}, no code was released; known: {', '.join(LEVELS[:2])}"
        )
    settings: Tree = {}
    for option in content["options"].values():
        where = merge(content.get("where", {}), option.get("where", {}))
        if recipe is None or _holds(recipe, where):
            settings = merge(settings, option["set"].get(level, option["set"]["recommended"]))
    return settings


def trials() -> list[Trial]:
    """Every choice of every option that differs from the recommended one."""
    contents = {paper: choices(paper) for paper in papers()}
    return [
        Trial(paper, name, level, option.get("recipe", content["recipe"]), settings)
        for paper, content in contents.items()
        for name, option in content["options"].items()
        for level, settings in _departures(option).items()
    ]


def _departures(option: Tree) -> dict[str, Tree]:
    """What is tried of an option, by level: whatever differs from the recommended settings."""
    stated = {level: option["set"][level] for level in LEVELS[1:] if level in option["set"]}
    if len(stated) == 2 and stated["paper"] == stated["released"]:
        stated = {"paper_released": stated["paper"]}
    tried = {**stated, **option.get("alternatives", {})}
    return {level: settings for level, settings in tried.items() if settings != option["set"]["recommended"]}


def _holds(settings: Any, where: Mapping[str, Any]) -> bool:
    """Whether settings have all the values of a smaller tree."""
    return isinstance(settings, Mapping) and all(
        _holds(settings.get(key), value) if isinstance(value, Mapping) else key in settings and settings[key] == value
        for key, value in where.items()
    )
