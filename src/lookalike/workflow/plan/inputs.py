"""Inputs and parameters of the rules' jobs: from the names in a file's path to files and settings.

Rules ask by ``wildcards``, whose attributes are the names that a path was matched by, such as ``recipe``, ``dataset``
and ``seed``. All paths are relative to the project's root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lookalike.base.paths import episodes_of, project_root
from lookalike.methods import METHODS
from lookalike.workflow.data.checksums import recorded_digest, weights_digest
from lookalike.workflow.data.contents import contents_digest
from lookalike.workflow.plan.needs import check_inputs
from lookalike.workflow.plan.origin import rebuilding_options
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import kind_of, rates_file, trial_settings, tried_as
from lookalike.workflow.plan.results import result_file, result_pattern, scoring_of, training_of
from lookalike.workflow.plan.reuse import Reference
from lookalike.workflow.plan.scales import Dataset, of_half
from lookalike.workflow.plan.start import Start, read_start
from lookalike.workflow.settings.datasets import PictureCache
from lookalike.workflow.settings.layers import Tree, settings_digest
from lookalike.workflow.settings.sources.code import code_digest

TRAINING = "lookalike.workflow.stages.train:train"
WORDS = {"title", "page", "licence", "manual"}  # of what is known of a data set
# That, and where it is had; its content is told by the split.
APART = WORDS | {"archive", "archives", "folder", "counts"}
# What no split reads: words, cut-offs, a count from before there is a split, and copies.
NOT_OF_SPLIT = WORDS | {"published_as", "recall_at", "largest_class", "picture_cache"}


class Inputs:
    """Files and settings of data sets and runs.

    Args:
        plan: of the call.

    A name that does not exist is a ``ValueError`` with the nearest one, a run that cannot be likewise.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.results_folder = f"results/{plan.folder}"
        self._reference = Reference(plan, self.today)
        self.reference_folder = self._reference.folder
        self._wanted: set[tuple[str, str]] = set()
        self._rated: set[tuple[str, str]] = set()
        self._digest_of_weights = cache(weights_digest)
        self._makers: dict[tuple[str, str, str], dict[str, str]] = {}
        self._splits: dict[tuple[str, ...], dict[str, str]] = {}
        self._codes: dict[tuple[tuple[str, ...], str, str, str | None], str] = {}

    @property
    def notices(self) -> list[str]:
        """Notices of a call before its first job, also on metrics that it reads in place of making them."""
        folder = self.reference_folder
        read = f"{folder}: metrics that fit are read there, not made; `--config suffix=again` makes all anew"
        return [*self.plan.notices, *([read] if self._reference.is_there else [])]

    def code(self, *entry_points: str, stage: str | None = "evaluate") -> Callable[[Any], str]:
        """Digest of the code behind a rule, for the parts that a job's recipe names up to a stage."""

        def digest(wildcards: Any) -> str:
            if hasattr(wildcards, "recipe"):
                return self._code_of(entry_points, wildcards.recipe, wildcards.dataset, stage)
            return code_digest(entry_points, self.specification(wildcards) if hasattr(wildcards, "dataset") else None)

        return digest

    @property
    def call(self) -> dict[str, Any]:
        """Scale and overlays that a command makes the same plan of."""
        return ({} if self.plan.is_overlay else {"scale": self.plan.scale}) | {"overlays": list(self.plan.overlays)}

    @property
    def start(self) -> Start:
        """The start of the network that learns from drawn data."""
        return read_start()

    def code_of_start(self, *entry_points: str) -> str:
        """Digest of the code that makes the start."""
        return recipe_digest(entry_points, {"train": self.start.train})

    def training_code(self, recipe: str, dataset: str) -> str:
        """Digest of the code that would train a run now."""
        return self._code_of((TRAINING,), recipe, dataset, "train")

    def turn(self, stage: str = "") -> Callable[[Any], float]:
        """Priority of a job of ``train``, ``score`` or a data set: a table after the other.

        Data come first; what is trained is scored before the next training, and stays if a call is killed.
        """

        def priority(wildcards: Any) -> float:
            named = (stage, wildcards.recipe, wildcards.dataset) if stage else (wildcards.dataset,)
            return self._turns.get(named, 0) + (stage != "train") / 2

        return priority

    @cached_property
    def _turns(self) -> dict[tuple[str, ...], int]:
        """Priorities of data sets, trainings and scorings: the higher, the earlier their first table.

        Comparisons come first, then tables of few trainings, so that there is something to read soon.
        """
        jobs: dict[str, set[tuple[str, ...]]] = {}
        for table in self.plan.table_names:
            runs = {*self.plan.runs_of(table)[["recipe", "dataset"]].itertuples(index=False, name=None)}
            jobs[table] = {(dataset,) for _, dataset in runs}
            for recipe, dataset in runs:
                training, scoring = (of(self.plan, recipe, dataset, 0) for of in (training_of, scoring_of))
                jobs[table] |= {("train", *training[:2]), ("score", *scoring[:2]), (training.dataset,)}

        def place(table: str) -> tuple[bool, int]:
            return not self.plan.table(table).terms, sum(job[0] == "train" for job in jobs[table])

        order = sorted(jobs, key=place)
        return {job: turn for turn, table in enumerate(order[::-1], start=1) for job in jobs[table]}

    def settings(self, stage: str) -> Callable[[Any], Tree]:
        """One section of a job's recipe."""
        return lambda wildcards: self.all_settings(wildcards)[stage]

    def weights(self, wildcards: Any) -> str | None:
        """Digest of the file that a training starts from: another one of the same name is another start."""
        return self._weights_of(wildcards.recipe, wildcards.dataset)

    def settings_of_trials(self, wildcards: Any) -> Tree:
        """Section ``train`` of all trials of a recipe, below their rates and budget."""
        self._check_wanted(wildcards.recipe, wildcards.dataset)
        return trial_settings(self.plan, wildcards.recipe, wildcards.dataset)

    def rates(self, wildcards: Any) -> Tree:
        """Settings of the scale's search of rates, empty where it has none."""
        return self.plan.rates.dump() if self.plan.rates else {}

    def all_settings(self, wildcards: Any) -> Tree:
        """All sections of a job's recipe."""
        return self.plan.deciding(wildcards.recipe, wildcards.dataset, half=self.half(wildcards))

    def pattern(self, kind: str) -> str:
        """Files of a kind of `lookalike.workflow.plan.results.KINDS`, of whatever run."""
        return f"{self.results_folder}/{result_pattern(kind)}"

    def made(self, kind: str, recipe: str, dataset: str, seed: int) -> str:
        """File that a run leaves, under the name of the recipe that stands for all with equal settings."""
        self.plan.refuse_unknown(recipe=recipe, dataset=dataset)
        return f"{self.results_folder}/{result_file(self.plan, kind, recipe, dataset, int(seed))}"

    def stored(self, kind: str, recipe: str, dataset: str, seed: int) -> str:
        """File of a run where it is read: `made`, but for metrics that are committed and fit."""
        made = self.made(kind, recipe, dataset, seed)
        if kind not in ("metrics", "evaluation", "classes"):
            return made
        return made.replace(self.results_folder, self.read_in(recipe, dataset, seed), 1)

    def read_in(self, recipe: str, dataset: str, seed: int) -> str:
        """Folder in which the metrics of a run are read, with the times of its jobs."""
        committed = self._reference.has(recipe, dataset, int(seed))
        return self.reference_folder if committed else self.results_folder

    def result_of(self, kind: str) -> Callable[[Any], str]:
        """File of an earlier stage of a job's run."""

        def file(wildcards: Any) -> str:
            self.plan.check_run(wildcards.recipe, wildcards.dataset)
            self._check_wanted(wildcards.recipe, wildcards.dataset)
            return self.stored(kind, wildcards.recipe, wildcards.dataset, wildcards.seed)

        return file

    def made_by(self, wildcards: Any) -> dict[str, str]:
        """Digests that the record of metrics holds beside those of their training: see `today`."""
        return self._made_by(wildcards.recipe, wildcards.dataset, self.half(wildcards))

    def today(self, recipe: str, dataset: str, seed: int) -> dict[str, str]:
        """Digests that decide a run's metrics now, see `lookalike.workflow.plan.reuse.MADE_BY`.

        Returns:
            ``code`` of the training and the ``weights`` that it starts from; ``settings`` of all stages; ``scored_by``,
            the code of the stage behind it; ``reads``, what is known of the data set and how it is read; and where
            the split is there ``data``, that of its bytes.
        """
        today = {"code": self.training_code(recipe, dataset), "weights": self._weights_of(recipe, dataset) or "none"}
        trained_on = self.plan.training_dataset(recipe, dataset)
        made_by = self._made_by(recipe, dataset, self.plan.half_of(dataset, seed))
        return today | made_by | self._data_of(trained_on, recipe, seed)

    def selection(self, wildcards: Any) -> str | list[str]:
        """History of the training that chooses the epoch, nothing where the test pictures choose it."""
        if not self.plan.holds_out:
            return []
        return f"{self.results_folder}/selection/{wildcards.recipe}/{wildcards.dataset}/seed{wildcards.seed}.csv"

    def dataset(self, wildcards: Any) -> Dataset:
        """Data set of a job."""
        self.plan.refuse_unknown(dataset=wildcards.dataset)
        return self.plan.datasets[wildcards.dataset]

    def specification(self, wildcards: Any) -> Tree:
        """Settings of a job's data set, as its file states them."""
        return self.dataset(wildcards).about.dump()

    def divided(self, wildcards: Any) -> Tree:
        """Settings of a job's data set that decide its split: neither its names nor its scoring."""
        about = self.dataset(wildcards).about
        return about.model_dump(exclude_unset=True, exclude=NOT_OF_SPLIT)

    def manifest(self, wildcards: Any) -> str:
        """Split of a job's data set, for the half that its seed trains on."""
        return self.dataset(wildcards).manifest_of(self.half(wildcards))

    def half(self, wildcards: Any, dataset: str = "") -> str:
        """Half of a data set's classes, by default of the job's, that a job trains on.

        That of its seed; a job without one may name it, in a file as ``.second``.
        """
        if hasattr(wildcards, "seed"):
            return self.plan.half_of(dataset or self.dataset(wildcards).name, int(wildcards.seed))
        return str(getattr(wildcards, "half", "")).removeprefix(".")

    def root(self, wildcards: Any) -> str:
        """Folder of the pictures of a job's data set."""
        return self.dataset(wildcards).root

    def record(self, wildcards: Any) -> str:
        """Record that the download of a job's data set leaves."""
        return self.dataset(wildcards).record

    def not_yet_downloaded(self) -> str:
        """Regular expression of the data sets that have no record yet; it matches nothing where all have one."""
        missing = [
            name for name, dataset in self.plan.datasets.items() if not (project_root() / dataset.record).is_file()
        ]
        return "|".join(missing) or "(?!)"

    def download(self, wildcards: Any) -> str | list[str]:
        """Record of the download that a job's split follows; nothing where nothing is downloaded."""
        return self.record(wildcards) if self.dataset(wildcards).is_downloaded else []

    def contents(self, archives: str) -> Callable[[Any], str]:
        """Digest of the contents of a job's data set that is the user's own folder or archive, else nothing.

        DVC looks after the project's own.

        Args:
            archives: folder in which digests of archives are recorded.
        """

        def digest(wildcards: Any) -> str:
            dataset = self.dataset(wildcards)
            if dataset.own and dataset.about.folder:
                return contents_digest(project_root() / dataset.about.folder, project_root() / dataset.contents)
            if dataset.own and dataset.about.archive and (archive := project_root() / dataset.about.archive).is_file():
                return recorded_digest(archive, "sha256", Path(archives))
            return ""

        return digest

    def broken_pictures(self, wildcards: Any) -> str:
        """Handling of a picture that cannot be read, by a job's split: ``stop`` or ``skip``."""
        return self.plan.broken_of(wildcards.dataset)

    def recall_cut_offs(self, wildcards: Any) -> list[int]:
        """The k of Recall@k on a job's data set."""
        return self.dataset(wildcards).about.recall_at

    def hierarchy_levels(self, wildcards: Any) -> dict[str, str]:
        """Coarser labels that a job's data set is scored by."""
        return self.dataset(wildcards).about.levels

    def pictures(self, wildcards: Any) -> str:
        """Split whose pictures a training or an embedding reads: of the copies where there are to be any."""
        dataset = self.dataset(wildcards).name
        if hasattr(wildcards, "recipe"):
            self._check_wanted(wildcards.recipe, dataset)
        return self._copied_manifest(dataset, self.half(wildcards))

    def training_pictures(self, wildcards: Any) -> str:
        """`pictures` of a training that is reported, which follows the choice of rates where its scale makes one.

        Raises:
            ValueError: if nothing is chosen yet, or for one half of the classes alone, naming the call that chooses.
        """
        listed, dataset = self.pictures(wildcards), wildcards.dataset
        if (wildcards.recipe, dataset) in self._rated:
            return listed
        self._rated.add((wildcards.recipe, dataset))
        plan, chosen = self.plan, rates_file(self.plan.rates_of)
        if (kind := kind_of(plan.settings(wildcards.recipe, dataset).train)) is None:
            return listed
        line = f"`snakemake --cores all rates{rebuilding_options(plan)}`"
        if plan.rates and not chosen.is_file():
            raise ValueError(
                f"{plan.scale_file}, rates: {chosen.relative_to(project_root())} does not exist, and without it rows "
                f"are not at equal terms; {line} makes it"
            )
        halves = plan.halves_of(dataset)
        if len({tried_as(kind, plan.rates_of_half(half)) is None for half in halves}) > 1:
            raise ValueError(
                f"{plan.scale_file}, halves: {chosen.relative_to(project_root())} holds rates for one half of the "
                f"classes alone, which seeds of the other are tested on ({kind.method} with {kind.loss}); {line} "
                "chooses for both"
            )
        return listed

    def pictures_root(self, wildcards: Any) -> str:
        """Folder of these pictures."""
        return self._copied_root(self.dataset(wildcards).name)

    def strangers(self, wildcards: Any) -> str | list[str]:
        """Split whose pictures replace some of a training's, nothing where none are replaced."""
        self.plan.refuse_unknown(recipe=wildcards.recipe, dataset=wildcards.dataset)
        strangers = self.plan.strangers(wildcards.recipe, wildcards.dataset)
        if not strangers:
            return []
        return self._copied_manifest(strangers.name, self.half(wildcards, strangers.name))

    def strangers_root(self, wildcards: Any) -> str:
        """Folder of these pictures, empty where there are none."""
        strangers = self.plan.strangers(wildcards.recipe, wildcards.dataset)
        return self._copied_root(strangers.name) if strangers else ""

    def strangers_super(self, wildcards: Any) -> int | None:
        """Coarse class that these pictures are taken from, as `Plan.strangers_super`."""
        return self.plan.strangers_super(wildcards.recipe, wildcards.dataset)

    @property
    def copies(self) -> dict[str, PictureCache]:
        """Data sets of which copies are read, with the form of these."""
        caches = {name: self.plan.picture_cache_of(name) for name in self.plan.datasets}
        return {name: cache for name, cache in caches.items() if cache}

    def episodes(self, wildcards: Any) -> str:
        """The list of a job's recipe: queries of one class, or of two."""
        return episodes_of(self.manifest(wildcards), self.plan.ways_of(wildcards.recipe, wildcards.dataset))

    def episodes_digest(self, wildcards: Any) -> str:
        """Its SHA-256."""
        return f"{self.episodes(wildcards)}.sha256"

    def longest_episodes(self, wildcards: Any) -> dict[str, int]:
        """Shots, episodes and draws that a data set's list of episodes must hold for every recipe of this scale."""
        recipes = self.plan.recipe_names
        sections = [self.plan.deciding(recipe, wildcards.dataset, "segment")["segment"] for recipe in recipes]
        asked = [section for section in sections if section]
        return {name: max(section[name] for section in asked) for name in ("shots", "episodes", "draws")}

    def _code_of(self, entry_points: tuple[str, ...], recipe: str, dataset: str, stage: str | None) -> str:
        """Digest of the code behind a recipe up to a stage, found once for all seeds."""
        key = (entry_points, recipe, dataset, stage)
        if key not in self._codes:
            self._codes[key] = recipe_digest(entry_points, self.plan.deciding(recipe, dataset, stage))
        return self._codes[key]

    def _weights_of(self, recipe: str, dataset: str) -> str | None:
        return self._digest_of_weights(self.plan.settings(recipe, dataset).train.backbone.weights)

    def _made_by(self, recipe: str, dataset: str, half: str) -> dict[str, str]:
        if (recipe, dataset, half) not in self._makers:
            last = self.plan.last_stage(recipe)
            code = self._code_of((f"lookalike.workflow.stages.{last}:{last}",), recipe, dataset, last)
            read = self.plan.datasets[dataset].about.model_dump(exclude=APART, exclude_unset=True)
            strangers = self.plan.strangers(recipe, dataset)
            cache = self.plan.picture_cache_of(dataset)
            others: list[Any] = [cache.dump() if cache else None, strangers.name if strangers else None]
            others += [self.plan.strangers_super(recipe, dataset), *filter(None, [half])]
            self._makers[recipe, dataset, half] = {
                "settings": settings_digest(self.plan.deciding(recipe, dataset, last, half)),
                "scored_by": settings_digest([code]),
                "reads": settings_digest([read, *others]),
            }
        return self._makers[recipe, dataset, half]

    def _data_of(self, dataset: str, recipe: str, seed: int) -> dict[str, str]:
        """Digest of the splits that a training reads, nothing as long as one of them is missing."""
        strangers = self.plan.strangers(recipe, dataset)
        names = (dataset, *([strangers.name] if strangers else []))
        splits = tuple(self._copied_manifest(name, self.plan.half_of(name, seed)) for name in names)
        if splits not in self._splits:
            there = [project_root() / split for split in splits]
            whole = all(split.is_file() for split in there)
            content = b"".join(split.read_bytes() for split in there) if whole else b""
            self._splits[splits] = {"data": hashlib.sha256(content).hexdigest()} if whole else {}
        return self._splits[splits]

    def _check_wanted(self, recipe: str, dataset: str) -> None:
        """Refuse a run that cannot be trained, also one that no table holds and that was asked for by its file."""
        if (recipe, dataset) not in self._wanted:
            self.plan.check_training(recipe, dataset)
            check_inputs(self.plan, [(recipe, dataset)])
            self._wanted.add((recipe, dataset))

    def _copied_manifest(self, dataset: str, half: str) -> str:
        cache, listed = self.plan.picture_cache_of(dataset), self.plan.datasets[dataset].manifest
        if cache:
            listed = f"{self.plan.data_folder}/pictures/{dataset}-{form_of(cache)}.csv"
        return of_half(listed, half)

    def _copied_root(self, dataset: str) -> str:
        if self.plan.picture_cache_of(dataset):
            return f"{self.plan.data_folder}/pictures"
        return self.plan.datasets[dataset].root


def form_of(cache: PictureCache) -> str:
    """Name of the form of a data set's copies: their shorter side and encoding."""
    return f"{cache.shorter_side_px}px-{cache.encoding}"


def recipe_digest(entry_points: Iterable[str], sections: Tree) -> str:
    """Digest of the code that makes a result of a recipe: that of a stage, and that of its method's learner.

    Args:
        entry_points: functions that the stage starts from, for `code_digest`.
        sections: the recipe's sections, as far as the stage reads them.
    """
    learner = METHODS[sections["train"]["method"]["name"]].learner
    return code_digest([*entry_points, learner], sections)
