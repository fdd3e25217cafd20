"""Disagreements of a paper and its released code: the options, their levels, and the trials of each choice.

``fidelity: recommended | paper | released`` in a recipe sets all options of its paper at once. The files below
``params/fidelity`` say what the paper says, what the released code does, what we take, and which settings of a recipe
that means; `lookalike.workflow.settings.fidelity.Disagreements` is their form. `lookalike.workflow.report.fidelity`
plans the runs
of the trials and writes the document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.base.checks import require_known
from lookalike.base.paths import project_root
from lookalike.workflow.settings.fidelity import Disagreements, Fixed, Option, OptionSettings
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import Tree, merge

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
        settings: what is laid over the recipe.
    """

    paper: str
    option: str
    level: str
    recipe: str
    settings: OptionSettings

    @property
    def name(self) -> str:
        """Name of the recipe that tries it."""
        return f"fidelity_{self.option}_{self.level}"

    def is_overruled(self, overlay: Tree) -> bool:
        """Whether a scale's overlay of every recipe replaces all tried settings, so that none of them is left."""
        tried = (self.settings.anywhere(), *(own.dump() for own in self.settings.per_dataset.values()))
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
    as_printed: OptionSettings | None = None

    def concerns(self, sections: Tree, published: str) -> bool:
        """Whether a recipe, as its sections apply to the data set that stands for a published one, rests on it."""
        if self.datasets and published not in self.datasets:
            return False
        if self.as_printed and (values := self.as_printed.on(published)) and _holds(sections, values):
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
    points: list[Option | Fixed] = [*content.options.values(), *content.fixed]
    for point in points:
        departs = point.departs
        if departs is None or (departs.tables and table not in departs.tables):
            continue
        where, released = [each.dump() for each in departs.where], None
        if isinstance(point, Option):
            where, released = where or [_conditions(content, point)], point.set.released
        listed.append(Departure(point.point, tuple(where or [{}]), tuple(departs.datasets), released))
    return listed


def choices(paper: str) -> Disagreements:
    """Options and fixed points of a paper, as its file states them.

    Raises:
        ValueError: for an unknown paper, or a file against the schema.
    """
    require_known("fidelity, paper", paper, papers())
    return read(f"params/fidelity/{paper}.yaml", Disagreements)


def papers() -> list[str]:
    """The papers whose choices are known: the files in ``params/fidelity``."""
    return sorted(path.stem for path in (project_root() / "params" / "fidelity").glob("*.yaml"))


def overrides(paper: str, level: str, recipe: Tree | None = None) -> Tree:
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
    if level == "released" and not content.released:
        raise ValueError(
            f"fidelity: 'released' is impossible for {paper}, no code was released; known: {', '.join(LEVELS[:2])}"
        )
    settings: Tree = {}
    for option in content.options.values():
        if recipe is None or _holds(recipe, _conditions(content, option)):
            settings = merge(settings, option.set.at(level).dump())
    return settings


def trials() -> list[Trial]:
    """Every choice of every option that differs from the recommended one."""
    contents = {paper: choices(paper) for paper in papers()}
    return [
        Trial(paper, name, level, option.recipe or content.recipe, settings)
        for paper, content in contents.items()
        for name, option in content.options.items()
        for level, settings in _departures(option).items()
    ]


def _conditions(content: Disagreements, option: Option) -> Tree:
    """Settings that a recipe must hold for an option to concern it."""
    return merge(content.where.dump(), option.where.dump())


def _departures(option: Option) -> dict[str, OptionSettings]:
    """Settings of an option to be tried, by level: all that differ from the recommended ones."""
    paper, released = option.set.paper, option.set.released
    if paper and paper == released:
        stated = {"paper_released": paper}
    else:
        stated = {level: own for level, own in (("paper", paper), ("released", released)) if own}
    return {level: own for level, own in {**stated, **option.alternatives}.items() if own != option.set.recommended}


def _holds(settings: Any, where: Tree) -> bool:
    """Whether settings have all the values of a smaller tree."""
    return isinstance(settings, dict) and all(
        _holds(settings.get(key), value) if isinstance(value, dict) else key in settings and settings[key] == value
        for key, value in where.items()
    )
