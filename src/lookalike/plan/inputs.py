"""What the rules' jobs read and are told: from the names in a file's path to files and settings.

Rules ask by ``wildcards``, whose attributes are the names that a path was matched by, such as ``recipe``, ``dataset``
and ``seed``. All paths are relative to the project's root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from lookalike.data.checksums import weights_digest
from lookalike.paths import episodes_of, project_root
from lookalike.plan.digests import recipe_digest
from lookalike.plan.needs import check_inputs
from lookalike.plan.origin import rebuilding_options
from lookalike.plan.plan import Plan
from lookalike.plan.rates import kind_of, rates_file, trial_settings
from lookalike.plan.results import result_file, result_pattern
from lookalike.plan.scales import Dataset
from lookalike.plan.start import Start, read_start
from lookalike.settings.layers import Tree, settings_digest
from lookalike.sources.code import code_digest

TRAINING = "lookalike.stages.train:train"
SCORED_BY = {"embed": "lookalike.stages.embed:embed", "evaluate": "lookalike.stages.evaluate:evaluate"}
# Of what is known of a data set: words, and where it is had; its content is told by the split.
APART = ("title", "page", "licence", "manual", "archive", "archives", "folder", "counts")


class Inputs:
    """Files and settings of data sets and runs.

    Args:
        plan: of the call.
        made_of: input files that Snakemake made a file of, ``None`` for a file that it has not made.

    A name that does not exist is a ``ValueError`` with the nearest one, a run that cannot be likewise.
    """

    def __init__(self, plan: Plan, made_of: Callable[[str], list[str] | None] = lambda file: None) -> None:
        self.plan = plan
        self.made_of = made_of
        self.results_folder = f"results/{plan.folder}"
        self._wanted: set[tuple[str, str]] = set()
        self._digests: dict[str | None, str | None] = {}
        self._makers: dict[tuple[str, str], dict[str, str]] = {}
        self._splits: dict[tuple[str, ...], dict[str, str]] = {}
        self._codes: dict[tuple[tuple[str, ...], str, str, str | None], str] = {}

    def code(self, *entry_points: str, stage: str | None = "evaluate") -> Callable[[Any], str]:
        """Digest of the code behind a rule, for the parts that a job's recipe names up to a stage."""

        def digest(wildcards: Any) -> str:
            if hasattr(wildcards, "recipe"):
                return self._code_of(entry_points, wildcards.recipe, wildcards.dataset, stage)
            return code_digest(entry_points, self.specification(wildcards) if hasattr(wildcards, "dataset") else None)

        return digest

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

    def settings(self, stage: str) -> Callable[[Any], Tree]:
        """One section of a job's recipe."""
        return lambda wildcards: self.all_settings(wildcards)[stage]

    def weights(self, wildcards: Any) -> str | None:
        """Digest of the file that a training starts from: another one of the same name is another start."""
        return self._weights_of(wildcards.recipe, wildcards.dataset)

    def settings_of_trial(self, wildcards: Any) -> Tree:
        """Section ``train`` of one trial of rates."""
        self._check_wanted(wildcards.recipe, wildcards.dataset)
        return trial_settings(self.plan, wildcards.recipe, wildcards.dataset, int(wildcards.trial))

    def all_settings(self, wildcards: Any) -> Tree:
        """All sections of a job's recipe."""
        return self.plan.deciding(wildcards.recipe, wildcards.dataset)

    def pattern(self, kind: str) -> str:
        """Files of a kind of `lookalike.plan.results.KINDS`, of whatever run."""
        return f"{self.results_folder}/{result_pattern(kind)}"

    def stored(self, kind: str, recipe: str, dataset: str, seed: int) -> str:
        """File of a run, under the name of the recipe that stands for all with equal settings."""
        self.plan.refuse_unknown(recipe=recipe, dataset=dataset)
        return f"{self.results_folder}/{result_file(self.plan, kind, recipe, dataset, int(seed))}"

    def result_of(self, kind: str) -> Callable[[Any], str]:
        """File of an earlier stage of a job's run."""

        def file(wildcards: Any) -> str:
            self.plan.check_run(wildcards.recipe, wildcards.dataset)
            self._check_wanted(wildcards.recipe, wildcards.dataset)
            return self.stored(kind, wildcards.recipe, wildcards.dataset, wildcards.seed)

        return file

    def made_by(self, wildcards: Any) -> dict[str, str]:
        """Digests that an evaluation says of itself, beside those that its model says: see `today`."""
        return self._made_by(wildcards.recipe, wildcards.dataset)

    def today(self, recipe: str, dataset: str) -> dict[str, str | None]:
        """Digests of what decides a run's metrics now, see `lookalike.plan.reuse.MADE_BY`.

        Returns:
            ``code`` of the training and the ``weights`` that it starts from; ``settings`` of all stages; ``scored_by``,
            the code of embedding and evaluation; ``reads``, what is known of the data set and how it is read; and where
            the split is there ``data``, that of its bytes.
        """
        today = {"code": self.training_code(recipe, dataset), "weights": self._weights_of(recipe, dataset)}
        trained_on = self.plan.training_dataset(recipe, dataset)
        return today | self._made_by(recipe, dataset) | self._data_of(trained_on, recipe)

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
        """What is known of a job's data set."""
        return dict(self.dataset(wildcards).specification)

    def manifest(self, wildcards: Any) -> str:
        """Split of a job's data set."""
        return self.dataset(wildcards).manifest

    def root(self, wildcards: Any) -> str:
        """Folder of the pictures of a job's data set."""
        return str(self.dataset(wildcards).root)

    def record(self, wildcards: Any) -> str:
        """What the download of a job's data set leaves."""
        return str(self.dataset(wildcards).record)

    def not_yet_downloaded(self) -> str:
        """Regular expression of the data sets that have no record yet; it matches nothing where all have one."""
        missing = [
            name for name, dataset in self.plan.datasets.items() if not (project_root() / dataset.record).is_file()
        ]
        return "|".join(missing) or "(?!)"

    def download(self, wildcards: Any) -> str | list[str]:
        """Record of the download that a job's split follows.

        Nothing where nothing is downloaded. Nothing either for a split that is there and was made before splits read
        the record: Snakemake would take it for a new input, and make the split and every training on it again.
        """
        manifest = self.manifest(wildcards)
        is_older = self.made_of(manifest) == [] and (project_root() / manifest).is_file()
        return self.record(wildcards) if self.dataset(wildcards).is_downloaded and not is_older else []

    def broken_pictures(self, wildcards: Any) -> str:
        """What a job's split does about a picture that cannot be read."""
        return self.plan.broken_of(wildcards.dataset)

    def recall_cut_offs(self, wildcards: Any) -> list[int]:
        """The k of Recall@k on a job's data set."""
        return list(self.specification(wildcards)["recall_at"])

    def hierarchy_levels(self, wildcards: Any) -> dict[str, str]:
        """Coarser labels that a job's data set is scored by."""
        return dict(self.specification(wildcards).get("levels", {}))

    def pictures(self, wildcards: Any) -> str:
        """Split whose pictures a training or an embedding reads: of the copies where there are to be any."""
        dataset = self.dataset(wildcards).name
        if hasattr(wildcards, "recipe"):
            self._check_wanted(wildcards.recipe, dataset)
        return self._copied_manifest(dataset)

    def training_pictures(self, wildcards: Any) -> str:
        """`pictures` of a training that is reported, which follows the choice of rates where its scale makes one.

        Raises:
            ValueError: if nothing is chosen yet, naming the call that chooses.
        """
        plan, chosen = self.plan, rates_file(self.plan.rates_of)
        if plan.rates and not chosen.is_file() and kind_of(plan.settings(wildcards.recipe, wildcards.dataset).train):
            raise ValueError(
                f"{plan.scale_file}, rates: {chosen.relative_to(project_root())} does not exist, and without it rows "
                f"are not at equal terms; `snakemake --cores all rates{rebuilding_options(plan)}` makes it"
            )
        return self.pictures(wildcards)

    def pictures_root(self, wildcards: Any) -> str:
        """Folder of these pictures."""
        return self._copied_root(self.dataset(wildcards).name)

    def strangers(self, wildcards: Any) -> str | list[str]:
        """Split whose pictures replace some of a training's, nothing where none are replaced."""
        self.plan.refuse_unknown(recipe=wildcards.recipe, dataset=wildcards.dataset)
        strangers = self.plan.strangers(wildcards.recipe, wildcards.dataset)
        return self._copied_manifest(strangers.name) if strangers else []

    def strangers_root(self, wildcards: Any) -> str:
        """Folder of these pictures, empty where there are none."""
        strangers = self.plan.strangers(wildcards.recipe, wildcards.dataset)
        return self._copied_root(strangers.name) if strangers else ""

    def strangers_super(self, wildcards: Any) -> int | None:
        """Coarse class that these pictures are taken from, as `Plan.strangers_super`."""
        return self.plan.strangers_super(wildcards.recipe, wildcards.dataset)

    @property
    def copies(self) -> dict[str, Tree]:
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
        """How long the list of episodes of a data set must be for every recipe of this scale."""
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
        weights = self.plan.settings(recipe, dataset).train.backbone.weights
        if weights not in self._digests:
            self._digests[weights] = weights_digest(weights)
        return self._digests[weights]

    def _made_by(self, recipe: str, dataset: str) -> dict[str, str]:
        if (recipe, dataset) not in self._makers:
            code = [self._code_of((entry,), recipe, dataset, stage) for stage, entry in SCORED_BY.items()]
            read = {key: value for key, value in self.plan.datasets[dataset].specification.items() if key not in APART}
            strangers = self.plan.strangers(recipe, dataset)
            others = [self.plan.picture_cache_of(dataset), strangers.name if strangers else None]
            self._makers[recipe, dataset] = {
                "settings": settings_digest(self.plan.deciding(recipe, dataset, self.plan.last_stage(recipe))),
                "scored_by": settings_digest(code),
                "reads": settings_digest([read, *others, self.plan.strangers_super(recipe, dataset)]),
            }
        return self._makers[recipe, dataset]

    def _data_of(self, dataset: str, recipe: str) -> dict[str, str]:
        """What a training says of the splits that it reads, where these are there."""
        strangers = self.plan.strangers(recipe, dataset)
        splits = tuple(self._copied_manifest(name) for name in (dataset, *([strangers.name] if strangers else [])))
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

    def _copied_manifest(self, dataset: str) -> str:
        cache, manifest = self.plan.picture_cache_of(dataset), self.plan.datasets[dataset].manifest
        return f"{self.plan.data_folder}/pictures/{dataset}-{form_of(cache)}.csv" if cache else manifest

    def _copied_root(self, dataset: str) -> str:
        if self.plan.picture_cache_of(dataset):
            return f"{self.plan.data_folder}/pictures"
        return str(self.plan.datasets[dataset].root)


def form_of(cache: Tree) -> str:
    """What tells copies of a data set's pictures from others."""
    return f"{cache['shorter_side_px']}px-{cache['encoding']}"
