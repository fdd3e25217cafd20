"""Plan of a call: recipes x data sets x seeds, read from ``params/`` and checked before any job starts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache, cached_property

import pandas as pd

from lookalike.base.checks import require_known
from lookalike.base.paths import project_root
from lookalike.base.text import counted
from lookalike.methods import METHODS
from lookalike.metrics.names import of_table
from lookalike.workflow.plan.checks import IncompatibleError, check_recipe, right
from lookalike.workflow.plan.on_data import RecipesOnData
from lookalike.workflow.plan.pairs import Compared, besides, pair_notes
from lookalike.workflow.plan.rates import kind_of, rates_note
from lookalike.workflow.plan.recipes import part_of
from lookalike.workflow.plan.scales import HELD_OUT, SECOND, TABLES_OF_OVERLAY, Dataset, cut_offs, half_of_seed
from lookalike.workflow.plan.sweeps import Point, by_reason
from lookalike.workflow.plan.tables import tables_of_papers
from lookalike.workflow.plan.terms import Row, constant_note, terms_notes
from lookalike.workflow.settings.call import Configuration, read_overlay
from lookalike.workflow.settings.datasets import PictureCache
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.tables import PlannedRow, PlannedTable

SEEDS = [0, 1, 2]  # of comparisons in a call with a single one
SEEDS_OF_HALVES = [0, 1, 2, 3]  # two of each half
HALVES = (
    "Two fixed training halves: even seeds train on the training classes of a data set and are tested on its test "
    "classes, odd seeds the other way round. Means are those of both halves' means, deviations of seeds within halves. "
    "Intervals do not cover other training classes."
)


class Plan(RecipesOnData):
    """Recipes, data sets and tables of one call.

    Args:
        config: the configuration, as ``params/config.yaml`` describes it.

    Raises:
        ValueError: naming file, key and what would be right, for the first thing that does not fit.
    """

    def __init__(self, config: Tree) -> None:
        call = checked(Configuration, _typed(config), "configuration")
        super().__init__(call)
        self.is_crossed = self._scale.settings.halves == "crossed"
        self.halves_of_call, self.only = call.halves, call.only
        self.trials_as_printed = call.seeds == "paper"
        self.seeds = [0] if call.seeds == "paper" else call.seeds
        self.tracking, self.mixed, self.suffix = call.tracking, call.mixed, call.suffix
        self.missing = call.missing
        self.held = call.held
        self.holds_out = call.selection == "held_out"
        self.picture_cache = call.picture_cache
        self.decoded_gb = call.decoded_gb
        self._checked: set[tuple[str, str]] = set()
        self._runs_of: dict[str, pd.DataFrame] = {}
        self._planned = cache(self._planned_table)
        self.overlays = call.overlays
        self.table_names = _named(call.tables or self._scale.settings.tables)
        for name in self.table_names:
            if name not in self._tables:
                chosen_in = "configuration" if call.tables and not self.is_overlay else self.scale_file
                require_known(f"{chosen_in}, tables", name, [*self._tables, *self.sweeps])

    @property
    def compared_as(self) -> str:
        """Whose committed numbers a call is held against: one per scale and way to choose the epoch."""
        return f"{self.scale}{HELD_OUT}" if self.holds_out else self.scale

    @property
    def folder(self) -> str:
        """Folder of results: beside the others with a suffix, where the call has one."""
        return f"{self.compared_as}_{self.suffix}" if self.suffix else self.compared_as

    @property
    def notices(self) -> list[str]:
        """Notices of a call before its first job.

        Papers' trials, chosen rates that hold in place of those of overlays, and the data sets that keep one half.
        """
        said = [self._trials_said()] if self.trials_as_printed else []
        rates = part_of(part_of(part_of(self.overlay, "train"), "optimiser"), "lr")
        replaced = [part for part in ("trunk", "head") if part in rates]
        if self.is_overlay and self._chosen_rates and replaced:
            said.append(
                f"params/rates/{self.rates_of}.csv: for methods and losses that were tried, rates chosen there hold in "
                f"place of those of {self.scale_file}, recipe.train.optimiser.lr ({' and '.join(replaced)})"
            )
        reasons = {name: reason for name in self.datasets if (reason := self._one_half(name))}
        if self.is_crossed and reasons:
            listed = "; ".join(f"{name}, as {reason}" for name, reason in reasons.items())
            said.append(f"halves: crossed: all seeds train on the training classes of {listed}")
        return said

    @property
    def halves(self) -> tuple[str, ...]:
        """Halves of the classes that seeds train on: a data set's training classes are the one without a name."""
        return ("", SECOND) if self.is_crossed else ("",)

    def halves_of(self, dataset: str) -> tuple[str, ...]:
        """Those of one data set, of which some keep one half."""
        return ("",) if self._one_half(dataset) else self.halves

    def half_of(self, dataset: str, seed: int) -> str:
        """Half of a data set's classes that a seed trains on; the seed is tested on the other."""
        return half_of_seed(seed) if len(self.halves_of(dataset)) > 1 else ""

    def check_halves(self, dataset: str, seeds: Sequence[int]) -> None:
        """Refuse seeds of which one is alone on its half, as nothing tells how others would differ from it.

        Raises:
            ValueError: naming it.
        """
        halves = [self.half_of(dataset, seed) for seed in seeds]
        alone = [seed for seed, half in zip(seeds, halves, strict=True) if halves.count(half) == 1]
        if alone and len(seeds) > 1:
            raise ValueError(
                f"seeds {', '.join(map(str, seeds))}: {alone[0]} alone trains on its half of the classes of "
                f"{dataset}; with halves: crossed two of each half are enough, such as {SEEDS_OF_HALVES}"
            )

    def _one_half(self, dataset: str) -> str:
        """Why a data set's classes cannot change sides, empty where they can."""
        if trained_on := self.datasets[dataset].trained_on:
            return f"models of {trained_on} embed it"
        embedded = [each.name for each in self.datasets.values() if each.trained_on == dataset]
        # Whose classes nothing tells from those of either half.
        return f"its models embed {embedded[0]}" if embedded else self.datasets[dataset].one_half

    def _trials_said(self) -> str:
        tables: dict[int, list[str]] = {}
        for name in self.table_names:
            tables.setdefault(len(self.seeds_of(name)), []).append(name)
        each = (
            f"{counted(trials, 'training')} of each run of {', '.join(tables[trials])}" for trials in sorted(tables)
        )
        return f"seeds=paper: {'; '.join(each)}"

    def seeds_of(self, table: str) -> list[int]:
        """Seeds of a table's rows: those of the call, or as many as its paper's numbers are means of."""
        return [*range(self._entry(table).trials)] if self.trials_as_printed else self.seeds

    @property
    def several_seeds(self) -> list[int]:
        """Seeds of comparisons: a single one, which has no interval, makes way for `SEEDS`, or those of halves."""
        if len(self.seeds) > 1:
            return self.seeds
        return SEEDS_OF_HALVES if self.is_crossed else SEEDS

    def picture_cache_of(self, dataset: str) -> PictureCache | None:
        """Copies that trainings on a data set read: those the call asks for, else the data set's own, or ``None``."""
        return self.picture_cache or self.datasets[dataset].about.picture_cache

    def broken_of(self, dataset: str) -> str:
        """Handling of a picture that cannot be read, as copies of the data set state it: ``stop`` or ``skip``."""
        return copies.broken if (copies := self.picture_cache_of(dataset)) else "stop"

    def table(self, name: str) -> PlannedTable:
        """A table, with the plan's ``remarks`` on it; that of a sweep has a row per point.

        Its metrics are those that its data sets have.
        """
        return self._planned(name)

    def _planned_table(self, name: str) -> PlannedTable:
        entry = self._entry(name)
        entry = entry if name in self._tables else self._beside_print(entry)
        remarks = [
            f"Not possible, as {reason}: {'; '.join(points)}."
            for reason, points in by_reason(self._refused(name)).items()
        ]
        rows = self._terms(name)
        if entry.terms:
            remarks += terms_notes(rows)
        remarks += constant_note(rows)
        pairs = self.pairs_of(name)
        remarks += pair_notes(self, pairs)
        found = {(pair.labels[0], pair.changed, key) for pair in pairs for key in besides(self, pair)}
        kinds = [(row.label, kind) for row in rows if (kind := kind_of(row.train))]
        if kinds and (self._chosen_rates or self.rates):
            remarks.append(rates_note(self.rates_of, kinds, self._chosen_rates))
        if any(len(self.halves_of(dataset.name)) > 1 for dataset in self.datasets_of(name)):
            remarks.append(HALVES)
        metrics = of_table(entry.metrics, cut_offs(dataset.about for dataset in self.datasets_of(name)))
        selected = {"checkpoint": "selected"} if self.holds_out else {}
        marked = []
        for row in entry.rows:
            own = [key for key in row.as_in_paper if (row.label, row.recipe, key) in found]
            stated = {key: value for key, value in row.dump().items() if key != "as_in_paper"}
            marked.append(type(row)(**stated | ({"as_in_paper": own} if own else {})))
        return entry.model_copy(update={"metrics": metrics, "remarks": remarks, "rows": marked, **selected})

    def pairs_of(self, table: str) -> list[Compared]:
        """Rows of a table beside those that they are held against, on each data set that both are of."""
        entry = self._entry(table)
        return [
            Compared(
                *(row.recipe, other.recipe, dataset.name),
                *(row.under_test or entry.under_test, row.as_in_paper, (row.label, other.label)),
            )
            for dataset in self.datasets_of(table)
            for row in entry.rows
            for other in entry.rows
            if row.against == other.label and _both_on(dataset, row, other)
        ]

    def _terms(self, table: str) -> list[Row]:
        """Trained rows of a table on each of its data sets, with and without the overlay of the scale."""
        pairs = [
            Row(
                row.label,
                self.stated(row.recipe, dataset.name)["train"],
                self.settings(row.recipe, dataset.name).train,
            )
            for dataset in self.datasets_of(table)
            for _, row in self._possible(table)
        ]
        return [row for row in pairs if row.train.loss is not None]

    @cached_property
    def tables_of_scale(self) -> list[str]:
        """All tables of the scale, of which the command line may have chosen some; it can of an overlay's, too."""
        of_scale = self._scale.settings.tables
        if self.is_overlay and self.overlays:
            of_scale = read_overlay([project_root() / each for each in self.overlays]).get("tables", TABLES_OF_OVERLAY)
        return _named(of_scale)

    @property
    def tables_page(self) -> str:
        """The page of the call's tables, below the results: some of a scale's tables leave the page of all as it is."""
        if self.table_names == self.tables_of_scale:
            return "tables.html"
        return f"tables/{self.table_names[0] if len(self.table_names) == 1 else 'selected'}.html"

    @property
    def tables(self) -> dict[str, Tree]:
        """The call's tables, as jobs are given them."""
        return {name: self.table(name).dump() for name in self.table_names}

    def runs_of(self, table: str) -> pd.DataFrame:
        """Runs behind one table: ``row, label, recipe, dataset, published, seed, trivial, comparable``.

        ``published`` is the data set that is stood in for, ``trivial`` whether the row is of ``params/trivial.yaml``,
        ``comparable`` whether data, backbone, setting and choice of the epoch are the printed ones.

        Raises:
            ValueError: for a recipe that cannot run on a data set of this scale.
        """
        if table not in self._runs_of:
            self._runs_of[table] = self._runs(table)
        runs = self._runs_of[table].copy()
        as_printed = {name for name, dataset in self.datasets.items() if dataset.is_published}
        as_printed -= {name for name in as_printed if len(self.halves_of(name)) > 1}
        unchanged = not (self.overlay or self.is_overlay or self.picture_cache or self.holds_out)
        runs["comparable"] = runs["dataset"].isin(as_printed) & unchanged
        return runs

    def published_digest(self, table: str) -> str:
        """Digest of the printed numbers that stand beside a table, empty for a table of our own."""
        entry = self.table(table)
        printed = [entry.published, *(point.table for row in entry.rows for point in row.prints.values())]
        files = {project_root() / "params" / "published" / f"{each.paper}.csv" for each in printed if each}
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files)))
        return digest.hexdigest()[:16] if files else ""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Runs behind all tables of the call: ``table`` and the columns of `runs_of`."""
        return pd.concat([self.runs_of(name).assign(table=name) for name in self.table_names], ignore_index=True)

    def _runs(self, table: str) -> pd.DataFrame:
        rows = [
            {"row": number, "label": row.label, "recipe": row.recipe}
            | {"dataset": dataset.name, "published": dataset.stands_for or "", "seed": seed}
            | {"trivial": row.trivial}
            for number, row in self._possible(table)
            for dataset in self.datasets_of(table)
            if not row.datasets or dataset.stands_for in row.datasets
            for seed in row.seeds or self.seeds_of(table)
        ]
        frame = pd.DataFrame(rows, columns=["row", "label", "recipe", "dataset", "published", "seed", "trivial"])
        for recipe, dataset in frame[["recipe", "dataset"]].drop_duplicates().itertuples(index=False):
            self.check_run(recipe, dataset)
        return frame

    def _possible(self, table: str) -> list[tuple[int, PlannedRow]]:
        """Rows of a table that can run, with their numbers."""
        rows = self._entry(table).rows
        refused = {point.name for point, _ in self._refused(table)}
        return [(number, row) for number, row in enumerate(rows) if row.recipe not in refused]

    def _refused(self, table: str) -> list[tuple[Point, str]]:
        """Points of a sweep whose parts cannot be combined, with the reasons; none for a table of the files."""
        refused = []
        for point in () if table in self._tables else self.sweeps[table].points:
            try:
                for dataset in self.datasets_of(table):
                    self.check_run(point.name, dataset.name)
            except IncompatibleError as error:
                refused.append((point, error.reason))
        return refused

    def datasets_of(self, table: str) -> list[Dataset]:
        """Data sets of this scale that fill a table, in the table's order; none that models of another one embed.

        Those that are segmented fill no table of a scale's own data sets, as nothing is searched in them.
        """
        entry = self._entry(table)
        filling = [each for each in self.datasets.values() if each.trained_on is None]
        if entry.datasets == "own":
            return [each for each in filling if each != self._scale.strangers and each.about.layout != "pascal5i"]
        return [each for name in entry.datasets for each in filling if each.stands_for == name]

    def check_training(self, recipe: str, dataset: str) -> None:
        """Refuse an unknown or an impossible recipe with a ``ValueError``.

        The message begins with the file whose value is wrong: what a scale lays over the recipe may be.
        """
        self.refuse_unknown(recipe=recipe, dataset=dataset)
        if not right(sections := self.deciding(recipe, dataset)):
            of_scale = right(self.stated(recipe, dataset)) is not None
            check_recipe(sections, self.place_of(recipe, dataset, of_scale=of_scale))

    def check_run(self, recipe: str, dataset: str) -> None:
        """Refuse a recipe that cannot run on a data set of this scale, with a ``ValueError``, as `check_training`."""
        if (recipe, dataset) in self._checked:
            return
        self.check_training(recipe, dataset)
        where, sections = self.place_of(recipe, dataset), self.settings(recipe, dataset)
        about = self.datasets[dataset].about
        if sections.evaluate.scoring.name == "shared_neighbours" and not about.self_match:
            raise ValueError(
                f"{where}, evaluate.scoring.name: 'shared_neighbours' needs a test set that searches itself, "
                "not queries and gallery"
            )
        if about.layout == "pascal5i" or sections.segment:
            if about.layout != "pascal5i":
                raise ValueError(
                    f"{where}, segment: only data of layout 'pascal5i' have episodes, not {about.layout!r}"
                )
            if not sections.segment:
                raise ValueError(f"{where}, segment: data of layout 'pascal5i' need this section, not null")
            if not METHODS[method := sections.train.method.name].has_attention:
                having = " or ".join(repr(name) for name, each in METHODS.items() if each.has_attention)
                raise ValueError(f"{where}, train.method.name: attention is that of {having}, not {method!r}")
            self.training_dataset(recipe, dataset)
        if sections.train.noise.images > 0 and self._scale.strangers is None:
            reason = f"train.noise.images: scale {self.scale} names no data set as its strangers"
            raise IncompatibleError(f"{where}, ", reason)
        self._checked.add((recipe, dataset))


def _both_on(dataset: Dataset, *rows: PlannedRow) -> bool:
    return all(not row.datasets or dataset.stands_for in row.datasets for row in rows)


def _named(tables: str | Sequence[str] | None) -> list[str]:
    return tables_of_papers() if isinstance(tables, str) else list(tables or [])


def _typed(config: Tree) -> Tree:
    """Values as ``--config`` gives them: Snakemake reads lists, ``true`` and ``false`` there as text."""
    typed = dict(config)
    for key in ("tracking", "mixed"):
        if str(typed.get(key)).lower() in ("true", "false"):
            typed[key] = str(typed[key]).lower() == "true"
    if isinstance(typed.get("seeds"), list):
        typed["seeds"] = [int(seed) if re.fullmatch(r"-?\d+", str(seed)) else seed for seed in typed["seeds"]]
    return typed
