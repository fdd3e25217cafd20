"""Recipes as they apply to the data sets of a scale, and the results that they share.

A recipe has one section per stage. Runs whose sections are equal up to a stage share the result of that stage, under
the name of the recipe that is defined first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from lookalike.base.checks import require_known
from lookalike.workflow.plan.checks import right
from lookalike.workflow.plan.halving import Candidate
from lookalike.workflow.plan.rates import Kind, chosen_rates, rates_layers
from lookalike.workflow.plan.recipes import StatedRecipe, Terms, layers_on, read_recipes, sections_on
from lookalike.workflow.plan.scales import Dataset, read_scale
from lookalike.workflow.plan.sweeps import Point, Sweep, read_sweeps
from lookalike.workflow.plan.tables import StandIns, check_table, rca_of, read_tables, start_of, trivial_rows
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.layers import Layer, Tree, canonical
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Recipe
from lookalike.workflow.settings.scales import RateTrials
from lookalike.workflow.settings.tables import PlannedTable, PrintedPoint

# Which sections decide the result of a stage.
SECTIONS = {
    "train": ("train",),
    "embed": ("train", "embed"),
    "evaluate": ("train", "embed", "evaluate"),
    "segment": ("train", "segment"),
}
UNTRAINED = "untrained"  # recipe of features as they come
START = "start_of_"  # before the name of a recipe: the same without training
MAPPED, RCA = "untrained_relevant", "rca_of_"  # and that after relevant component analysis


class RecipesOnData:
    """Recipes, tables and sweeps of ``params/`` on the data sets of one scale.

    Args:
        config: the configuration, as ``params/config.yaml`` describes it, checked.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """

    def __init__(self, config: Configuration) -> None:
        self._scale = scale = read_scale(config)
        self.scale, self.is_overlay, self.data_folder = scale.name, scale.own, scale.data_folder
        self.title: str = scale.settings.title
        self.overlay = scale.overlay  # what the scale lays over every recipe
        rates = scale.settings.rates
        self.rates = rates if isinstance(rates, RateTrials) else None  # how `lookalike.workflow.plan.rates` searches
        self.rates_of: str = scale.rates_of
        self.figures = scale.settings.figures or {}  # over params/figures.yaml, and the only ones
        self.figure_seeds = scale.settings.figure_seeds  # of figures with more than `SEEDS`
        self.explanations = scale.settings.explanations  # over params/explanations.yaml
        self.page = scale.settings.page  # over params/page.yaml
        self._chosen_rates = chosen_rates(scale.rates_of)
        self._before_rates = Terms(scale.layers, scale.settings.embedding_dims, scale.file)
        self._terms_of_scale = replace(
            self._before_rates, rates=lambda train: rates_layers(train, self._chosen_rates, scale.rates_of)
        )
        self._rates_of_halves = {"": self._chosen_rates}
        self.datasets = scale.datasets
        self._recipes = read_recipes()
        self._values_of: dict[tuple[str, str], str | None] = {}
        self._resolved: dict[tuple[str, str | None], tuple[Tree, dict[str, str]]] = {}
        self._typed: dict[tuple[str, str | None], Recipe] = {}
        self._stated: dict[tuple[str, str | None], Tree] = {}
        self._shared: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
        self._tables = read_tables(self._recipes, self._stand_ins)
        files = dict(self._recipes)
        for name, entry in self._tables.items():
            rows, recipes = trivial_rows(name, entry, files, files[entry.rows[0].recipe])
            self._tables[name] = entry.with_rows(rows)
            self._recipes |= recipes

    @property
    def recipe_names(self) -> list[str]:
        """All recipes of ``params/recipes``, in order of definition."""
        return list(self._recipes)

    @property
    def known_tables(self) -> list[str]:
        """All tables of ``params/tables``, without those of sweeps."""
        return list(self._tables)

    @property
    def scale_file(self) -> str:
        """File of the scale, as messages call it."""
        return self._scale.file

    def paper_of(self, recipe: str) -> str:
        """File of ``params/recipes`` that defines a recipe, its paper, or of ``params/sweeps`` its family."""
        return self._stated_recipe(recipe).paper

    def place_of(self, recipe: str, dataset: str, *, of_scale: bool = False) -> str:
        """Beginning of messages on a run: the recipe's files, or the scale's where its overlay is wrong."""
        file = f"{self.scale_file}, recipe" if of_scale else self._files(recipe, dataset)
        return f"{file}: recipe {recipe} on {dataset}"

    def refuse_unknown(self, *, recipe: str = "", dataset: str = "", table: str = "") -> None:
        """Refuse names that a file was asked for by and that do not exist, with a ``ValueError``."""
        if recipe and recipe not in self._recipes and recipe not in self._points:
            require_known("params/recipes and params/sweeps", recipe, [*self._recipes, *self._points])
        if dataset and dataset not in self.datasets:
            require_known(f"data set of scale {self.scale}", dataset, self.datasets)
        if table and table not in self._tables and table not in self.sweeps:
            require_known("params/tables and params/sweeps", table, [*self._tables, *self.sweeps])

    def settings(self, recipe: str, dataset: str) -> Recipe:
        """A recipe as it applies to a data set at this scale.

        Raises:
            ValueError: naming the recipe's files, key and what would be right, where it is not that of a recipe.
        """
        key = recipe, self._published(recipe, dataset)
        if key not in self._typed:
            sections, _ = self._sections(recipe, dataset)
            self._typed[key] = right(sections) or checked(Recipe, sections, self.place_of(recipe, dataset))
        return self._typed[key]

    def deciding(self, recipe: str, dataset: str, stage: str | None = None, half: str = "") -> Tree:
        """The sections that decide the result of a stage, or all of them, as they are written.

        Of another half of the classes than a data set's own they differ in the rates, which that half has chosen.
        """
        sections = self._of_half(recipe, dataset, half) if half else self._sections(recipe, dataset)[0]
        return {section: sections[section] for section in (SECTIONS[stage] if stage else sections)}

    def stated(self, recipe: str, dataset: str) -> Tree:
        """Sections of a recipe on a data set without the overlay of this scale."""
        published = self._published(recipe, dataset)
        if (recipe, published) not in self._stated:
            self._stated[recipe, published] = sections_on(self._stated_recipe(recipe), published, Terms())
        return self._stated[recipe, published]

    def before_rates(self, recipe: str, dataset: str) -> Tree:
        """Sections of a recipe on a data set at this scale without the rates that were chosen for it."""
        return sections_on(self._stated_recipe(recipe), self._published(recipe, dataset), self._before_rates)

    def layers(self, recipe: str, dataset: str) -> list[Layer]:
        """Layers of a recipe on a data set at this scale, each over those before it."""
        return layers_on(self._stated_recipe(recipe), self._published(recipe, dataset), self._terms_of_scale)

    def shared(self, stage: str, recipe: str, dataset: str) -> str:
        """Recipe under whose name the result of a stage is stored: the first one with equal sections."""
        group = "" if recipe in self._recipes else self._points[recipe][0]
        if (dataset, group) not in self._shared:
            self._shared[dataset, group] = self._sharing(dataset, group)
        return self._shared[dataset, group][stage, recipe]

    def ways_of(self, recipe: str, dataset: str) -> int:
        """Classes of an episode of a recipe that segments."""
        return int(self.deciding(recipe, dataset)["segment"]["ways"])

    def last_stage(self, recipe: str) -> str:
        """Stage whose metrics fill the tables: ``segment`` for recipes that segment, else ``evaluate``."""
        return "segment" if self._stated_recipe(recipe).trained_on else "evaluate"

    def training_dataset(self, recipe: str, dataset: str) -> str:
        """Data set that the model of a run learns from: the run's own, but where recipe or data set name another.

        Raises:
            ValueError: if no data set of this scale stands for the one that the recipe names.
        """
        trained_on = self._stated_recipe(recipe).trained_on
        if trained_on is None:
            return self.datasets[dataset].trained_on or dataset
        names = [each.name for each in self.datasets.values() if each.stands_for == trained_on]
        if not names:
            raise ValueError(
                f"recipe {recipe}, segment.trained_on: no data set of scale {self.scale} stands for {trained_on!r}"
            )
        return names[0]

    def strangers(self, recipe: str, dataset: str) -> Dataset | None:
        """Data set whose pictures replace training pictures, ``None`` for a recipe without image noise."""
        noisy = self.settings(recipe, dataset).train.noise.images > 0
        return self._scale.strangers if noisy else None

    def strangers_super(self, recipe: str, dataset: str) -> int | None:
        """Coarse class that the strangers of a recipe are taken from, ``None`` without strangers or for all of them."""
        return self._scale.settings.strangers_super if self.strangers(recipe, dataset) else None

    @cached_property
    def sweeps(self) -> dict[str, Sweep]:
        """All sweeps of ``params/sweeps``.

        Raises:
            ValueError: as `read_sweeps` and `check_table`, and for a sweep with the name of a table.
        """
        sweeps = read_sweeps(self._recipes)
        for name in sweeps.keys() & self._tables.keys():
            raise ValueError(f"params/sweeps/{sweeps[name].family}.yaml: a table named {name!r} exists already")
        for name, sweep in sweeps.items():
            check_table(sweep.table, f"params/sweeps/{sweep.family}.yaml, {name}", self._stand_ins)
            rows, recipes = trivial_rows(name, sweep.table, self._recipes, sweep.points[0].recipe)
            points = tuple(Point(recipe, {}, replace(stated, paper=sweep.family)) for recipe, stated in recipes.items())
            sweeps[name] = replace(sweep, table=sweep.table.with_rows(rows), trivial=points)
        return sweeps

    def _beside_print(self, sweep: PlannedTable) -> PlannedTable:
        """A sweep whose points have the printed numbers of those rows of tables that have all of their settings."""
        rows = []
        for row in sweep.rows:
            found = {
                dataset.stands_for: self._printed.get((dataset.stands_for, self._text_of(row.recipe, dataset.name)))
                for dataset in self.datasets.values()
                if dataset.stands_for in sweep.named_datasets
            }
            prints = {dataset: point for dataset, point in found.items() if point}
            rows.append(row.model_copy(update={"prints": prints | row.prints}))
        return sweep.model_copy(update={"rows": rows})

    @cached_property
    def _printed(self) -> dict[tuple[str | None, str], PrintedPoint]:
        """Printed rows by published data set and settings as the recipe states them, the first of equal ones."""
        found: dict[tuple[str | None, str], PrintedPoint] = {}
        for table in self._tables.values():
            for row in table.rows:
                if not (table.published and row.published):
                    continue
                point = PrintedPoint(table=table.published, row=row.published)
                for dataset in self.datasets.values():
                    if dataset.stands_for in (row.datasets or table.datasets):
                        found.setdefault((dataset.stands_for, self._text_of(row.recipe, dataset.name)), point)
        return found

    def _text_of(self, recipe: str, dataset: str) -> str:
        return canonical(self.stated(recipe, dataset))

    def _entry(self, table: str) -> PlannedTable:
        if table not in self._tables:
            require_known("table", table, (*self._tables, *self.sweeps))
        return self._tables[table] if table in self._tables else self.sweeps[table].table

    @property
    def _stand_ins(self) -> StandIns:
        return [(each.stands_for, each.about) for each in self.datasets.values()]

    def _sharing(self, dataset: str, group: str) -> dict[tuple[str, str], str]:
        """By stage and recipe, the first recipe of equal sections: of those in the files and in the group, if any."""
        points = [point.name for point in self._groups[group]] if group else []
        first: dict[tuple[str, ...], str] = {}
        shared: dict[tuple[str, str], str] = {}
        for recipe in (*self._recipes, *points):
            _, texts = self._sections(recipe, dataset)
            for stage, sections in SECTIONS.items():
                key = (stage, *(texts[section] for section in sections))
                shared[stage, recipe] = first.setdefault(key, recipe)
        return shared

    def _sections(self, recipe: str, dataset: str) -> tuple[Tree, dict[str, str]]:
        """Sections of a recipe on a data set, and each as text that is equal for equal sections."""
        published = self._published(recipe, dataset)
        if (recipe, published) not in self._resolved:
            sections = sections_on(self._stated_recipe(recipe), published, self._terms_of_scale)
            self._resolved[recipe, published] = sections, {key: canonical(value) for key, value in sections.items()}
        return self._resolved[recipe, published]

    def _of_half(self, recipe: str, dataset: str, half: str) -> Tree:
        rates = self.rates_of_half(half)
        terms = replace(self._terms_of_scale, rates=lambda train: rates_layers(train, rates, self.rates_of))
        return sections_on(self._stated_recipe(recipe), self._published(recipe, dataset), terms)

    def rates_of_half(self, half: str) -> dict[Kind, Candidate]:
        """Rates by kind, chosen on classes held out of a half, read once."""
        if half not in self._rates_of_halves:
            self._rates_of_halves[half] = chosen_rates(self.rates_of, half)
        return self._rates_of_halves[half]

    def _files(self, recipe: str, dataset: str) -> str:
        """Files with the values of a recipe: its own and those of the recipes that it is like.

        Of a recipe that cannot be, the file of the first of these that cannot be either.
        """
        recipe = recipe.removeprefix(START).removeprefix(RCA)
        if recipe not in self._recipes or self.paper_of(recipe) == "fidelity":
            return f"params/{'fidelity' if recipe in self._recipes else f'sweeps/{self.paper_of(recipe)}.yaml'}"
        names = [recipe]
        while (like := self._recipes[names[-1]].like) is not None:
            names.append(like)
        names = [name for name in names if not right(self.stated(name, dataset))][-1:] or names
        return ", ".join(dict.fromkeys(f"params/recipes/{self.paper_of(name)}.yaml" for name in names))

    def _published(self, recipe: str, dataset: str) -> str | None:
        """Published data set whose values a recipe takes, ``None`` where none has values of its own.

        Most recipes are the same on all data sets, and so are resolved once.
        """
        if (recipe, dataset) not in self._values_of:
            learned = self.datasets[self.datasets[dataset].trained_on or dataset]
            stated = self._stated_recipe(recipe)
            published = stated.trained_on or learned.stands_for
            layers = [layer.values for layer in (*stated.layers, *self._scale.layers)]
            has_own = stated.level != "recommended" or any(published in each.get("per_dataset", ()) for each in layers)
            self._values_of[recipe, dataset] = published if has_own else None
        return self._values_of[recipe, dataset]

    def _stated_recipe(self, recipe: str) -> StatedRecipe:
        return self._recipes[recipe] if recipe in self._recipes else self._points[recipe][1].recipe

    @cached_property
    def _groups(self) -> dict[str, tuple[Point, ...]]:
        """Recipes that are derived from those of the files: points of each sweep, and untrained starts.

        A group shares results with the files and within itself.
        """
        untrained, mapped = self._recipes[UNTRAINED], self._recipes[MAPPED]
        learning = [(name, stated) for name, stated in self._recipes.items() if not stated.trained_on]
        starts = tuple(Point(f"{START}{name}", {}, start_of(untrained, stated)) for name, stated in learning)
        after_rca = tuple(Point(f"{RCA}{name}", {}, rca_of(mapped, stated)) for name, stated in learning)
        return {name: sweep.every for name, sweep in self.sweeps.items()} | {START: (*starts, *after_rca)}

    @cached_property
    def _points(self) -> dict[str, tuple[str, Point]]:
        """The same by the name of their recipe, each with the name of its group."""
        return {point.name: (name, point) for name, points in self._groups.items() for point in points}
