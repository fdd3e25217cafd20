"""Where a paper and its released code disagree: the options, their levels, and the document that lists them.

``fidelity: recommended | paper | released`` in a recipe sets all options of its paper at once. The files below
``params/fidelity`` say what the paper says, what the released code does, what we take, and which settings of a recipe
that means; ``workflow/schemas/fidelity.schema.yaml`` describes their form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lookalike.parameters import Settings, canonical, merge, read

LEVELS = ("recommended", "paper", "released")
PAPERS = {"avsl": "AVSL", "diml": "DIML", "contextual": "Contextual similarity", "sam": "Similarity attention"}
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
DASH = "–"

_INTRODUCTION = """\
# Fidelity to paper and released code

The papers and their released code disagree, and both leave things open. All such points that we know of stand here,
with what we take. Where both choices make sense the point is an option, set by the key of a recipe that is named;
`fidelity: paper` or `fidelity: released` in a recipe sets all options of its paper at once. Without it, or with
`fidelity: recommended`, our choices hold. Where a paper is silent its level falls back to ours, and so does that of
the code. Misprints are listed but are no options. The code of similarity attention was never released, so `released`
is refused there.

*Change at mini* is the trial minus the unchanged recipe at the scale `mini`, in percent points: the mean over paired
seeds, with a confidence interval. One choice is tried at a time. *No effect* means that every number is the same, *not
run* that there is none, and *set by mini* that the scale lays its own values over the ones to be tried. What a small
network does on drawn pictures says which points matter there; it is no estimate for the papers' networks.

Made by `snakemake --cores all fidelity` from `params/fidelity` and the runs that it starts."""


@dataclass(frozen=True)
class Trial:
    """One choice of one option that is not the recommended one, to be run against the unchanged recipe.

    Attributes:
        paper: whose option it is.
        option: its name, unique among all papers.
        level: ``paper``, ``released``, ``paper_released`` where both choose alike, or the name of an alternative.
        recipe: on which it is tried.
        settings: to be laid over the recipe, in the form of one: sections, and values per data set.
    """

    paper: str
    option: str
    level: str
    recipe: str
    settings: Settings

    @property
    def name(self) -> str:
        """Name of the recipe that tries it."""
        return f"fidelity_{self.option}_{self.level}"

    def is_overruled(self, scale: str = "mini") -> bool:
        """Whether a scale lays its own values over all that is tried, so that nothing of it is left there."""
        return _is_overruled(self.settings, scale)


def choices(paper: str) -> Settings:
    """Options and fixed points of a paper, as its file states them.

    Raises:
        ValueError: for an unknown paper, or a file against the schema.
    """
    if paper not in PAPERS:
        raise ValueError(f"fidelity: nothing is known about {paper!r}; known papers: {', '.join(PAPERS)}")
    return read(f"params/fidelity/{paper}.yaml", "fidelity")


def overrides(paper: str, level: str, recipe: Mapping[str, Any] | None = None) -> Settings:
    """Settings of all options at a level. An option for which the level says nothing takes the recommended choice.

    Args:
        paper: a key of `PAPERS`.
        level: one of `LEVELS`.
        recipe: leave out options that do not concern it, such as those of another loss; ``None`` takes all.

    Returns:
        What is to be laid over a recipe, in the form of one: sections, and values per data set.

    Raises:
        ValueError: for an unknown paper or level, or ``released`` where no code was released.
    """
    content = choices(paper)
    if level not in LEVELS:
        raise ValueError(f"fidelity: unknown level {level!r} for {paper}; known: {', '.join(LEVELS)}")
    if level == "released" and not content["released"]:
        raise ValueError(
            f"fidelity: 'released' is impossible for {paper}, no code was released; known: {', '.join(LEVELS[:2])}"
        )
    chosen: Settings = {}
    for option in content["options"].values():
        where = merge(content.get("where", {}), option.get("where", {}))
        if recipe is None or _holds(recipe, where):
            chosen = merge(chosen, option["set"].get(level, option["set"]["recommended"]))
    return chosen


def trials() -> list[Trial]:
    """Every choice of every option that differs from the recommended one."""
    contents = {paper: choices(paper) for paper in PAPERS}
    return [
        Trial(paper, name, level, option.get("recipe", content["recipe"]), settings)
        for paper, content in contents.items()
        for name, option in content["options"].items()
        for level, settings in _departures(option).items()
    ]


def document(cells: pd.DataFrame | None = None) -> str:
    """``docs/fidelity.md``: per paper its options with what each choice changes, then what is fixed.

    Args:
        cells: one row per trial and metric: ``option, level, metric, difference, low, high, n``, the trial minus the
            unchanged recipe in percent points over ``n`` paired seeds with a confidence interval (empty for one seed);
            ``None`` before anything ran.
    """
    parts = [_INTRODUCTION]
    for paper, title in PAPERS.items():
        content = choices(paper)
        options = [row for name, option in content["options"].items() for row in _option_rows(name, option, cells)]
        fixed = [{**_said(point), "because": point["because"]} for point in content["fixed"]]
        parts += [f"## {title}", f"Tried on the recipe `{content['recipe']}` unless another one is named."]
        parts += [_markdown(options), "Without an option:", _markdown(fixed)]
    parts += ["## Why there is no option", "\n".join(f"- *{name}*: {reason}." for name, reason in REASONS.items())]
    return "\n\n".join(parts) + "\n"


def _departures(option: Settings) -> dict[str, Settings]:
    """What is tried of an option, by level: whatever differs from the recommended settings."""
    stated = {level: option["set"][level] for level in LEVELS[1:] if level in option["set"]}
    if len(stated) == 2 and stated["paper"] == stated["released"]:
        stated = {"paper_released": stated["paper"]}
    tried = {**stated, **option.get("alternatives", {})}
    return {level: settings for level, settings in tried.items() if settings != option["set"]["recommended"]}


def _is_overruled(settings: Mapping[str, Any], scale: str) -> bool:
    overlay = read(f"params/scales/{scale}.yaml", "scale").get("recipe", {})
    sections = {key: value for key, value in settings.items() if key != "per_dataset"}
    return all(merge(each, overlay) == overlay for each in (sections, *settings.get("per_dataset", {}).values()))


def _holds(settings: Any, where: Mapping[str, Any]) -> bool:
    """Whether settings have all the values of a smaller tree."""
    return isinstance(settings, Mapping) and all(
        _holds(settings.get(key), value) if isinstance(value, Mapping) else key in settings and settings[key] == value
        for key, value in where.items()
    )


def _option_rows(name: str, option: Settings, cells: pd.DataFrame | None) -> Iterator[dict[str, str]]:
    """A row per choice that is not ours; what was said stands in the first one."""
    recipe = option.get("recipe")
    said = {**_said(option), "option": f"`{name}`" + (f" on `{recipe}`" if recipe else "")}
    for level, settings in _departures(option).items():
        change = "set by mini" if _is_overruled(settings, "mini") else _change(name, level, cells)
        yield {**said, "level": f"{level}: {', '.join(_leaves(settings))}", "change at mini": change}
        said = dict.fromkeys(said, "")


def _said(point: Settings) -> dict[str, str]:
    return {
        "point": point["point"],
        "paper": point["paper"] or DASH,
        "released": point["released"] or DASH,
        "ours": point["recommended"],
    }


def _leaves(settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as ``key: value``, the key without the sections it lies in."""
    for key, value in settings.items():
        if key == "per_dataset":
            yield from (f"{leaf} on {name}" for name, own in value.items() for leaf in _leaves(own))
        elif isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield f"`{key}: {value if isinstance(value, str) else canonical(value)}`"


def _change(name: str, level: str, cells: pd.DataFrame | None) -> str:
    """What a trial changed, metric by metric."""
    if cells is None:
        return "not run"
    own = cells[(cells["option"] == name) & (cells["level"] == level)]
    if own.empty:
        return "not run"
    if (own["difference"] == 0).all():
        return "no effect"
    return "; ".join(_difference(cell) for cell in own.to_dict("records"))


def _difference(cell: Mapping[Any, Any]) -> str:
    interval = "" if pd.isna(cell["low"]) else f" ({cell['low']:+.1f} to {cell['high']:+.1f})"
    return f"{cell['metric']} {cell['difference']:+.1f}{interval}, n = {cell['n']:.0f}"


def _markdown(rows: list[dict[str, str]]) -> str:
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines)
