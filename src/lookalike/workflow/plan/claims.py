"""The papers' claims in words, and the runs that they are held against."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lookalike.base.checks import require_known
from lookalike.methods import METHODS
from lookalike.metrics.names import OF_ATTENTION, ON_TRAINING
from lookalike.workflow.plan.on_data import RCA, START
from lookalike.workflow.plan.pairs import Compared, besides
from lookalike.workflow.plan.rates import COMPARED
from lookalike.workflow.plan.scales import measured_metrics
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import dataset_names, read, read_entries
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.pages import Claim
from lookalike.workflow.settings.recipes import Recipe

if TYPE_CHECKING:
    from lookalike.workflow.plan.evidence import Evidence
    from lookalike.workflow.plan.plan import Plan

FILE = "params/claims.yaml"
SIDES = ("changed", "baseline")
READ = (*SIDES, "learned", "started", "mapped")
Stated = Mapping[str, Claim]  # entries of `FILE` by name


@dataclass(frozen=True)
class Comparison:
    """The two recipes that a claim is held against on a data set, for one seed."""

    claim: str
    metric: str
    published: str
    dataset: str
    network: str
    changed: str
    baseline: str
    learners: tuple[str, ...]
    """Recipes that have to have learned: the baseline, or what both sides are without their disturbance; none if these
    were not trained, so that nobody knows.
    """
    seed: int
    besides: str = ""
    """Keys in which the baseline, as the paper's own does, differs from the changed recipe besides what is tested."""
    has_rca: bool = False
    """Whether both sides are about retrieval by one vector at the start, which RCA can map."""
    decides: bool = True
    """Whether its claim follows from it: not from a pair as in the paper where a clean one stands."""

    @property
    def pool(self) -> tuple[str, str]:
        """Whose comparisons tell of each other's seeds."""
        return self.dataset, self.network

    def read(self, side: str) -> list[tuple[str, str]]:
        """Kind of file and recipe of each file of a side.

        ``changed`` and ``baseline`` are the metrics or the attention that the claim is about. ``learned`` and
        ``started`` are metrics of the learners after and before training. ``mapped`` are those of both sides before any
        training but after RCA.
        """
        if side == "mapped":
            return [("metrics", f"{RCA}{getattr(self, each)}") for each in SIDES if self.has_rca]
        if side in ("changed", "baseline"):
            return [("attribution" if self.metric in OF_ATTENTION else "metrics", getattr(self, side))]
        return [("metrics", f"{START if side == 'started' else ''}{recipe}") for recipe in self.learners]


class Claims:
    """Claims of one call, and the files of their runs' results.

    Args:
        evidence: of the call.

    Attributes:
        stated: as `read_claims` gives them.

    Raises:
        ValueError: as `read_claims` and `claim_runs`.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.stated = read_claims(evidence.plan)
        self._asked = claim_runs(evidence.plan, self.stated)

    def on(self, datasets: Collection[str]) -> Claims:
        """The same on some data sets alone."""
        narrowed = copy(self)
        for found in ("_runs", "_left"):  # of all data sets, where somebody has asked before
            vars(narrowed).pop(found, None)
        narrowed._asked = [run for run in self._asked if run.dataset in datasets]
        return narrowed

    def files(self, side: str) -> Callable[[Any], list[str]]:
        """Files of all runs in order, of a side of `Comparison.read`."""
        stored, plan = self._evidence.inputs.stored, self._evidence.plan

        def files(wildcards: Any) -> list[str]:
            for dataset in self.datasets:
                plan.check_halves(dataset, plan.several_seeds)
            return [
                stored(kind, recipe, run.dataset, run.seed) for run in self._runs for kind, recipe in run.read(side)
            ]

        return files

    @property
    def datasets(self) -> list[str]:
        """Those with claims."""
        return sorted({run.dataset for run in self._asked})

    @cached_property
    def _runs(self) -> list[Comparison]:
        """All that claims are held against, without rows that are not run."""
        unknown = self._wanting(["learned", "started"])
        runs = [run for run in self._asked if replace(run, seed=0) not in self._left]
        return [replace(run, learners=()) if replace(run, seed=0) in unknown else run for run in runs]

    @cached_property
    def _left(self) -> list[Comparison]:
        """Rows, each as of seed 0, that are not run."""
        return self._wanting(SIDES)

    def _wanting(self, sides: Sequence[str]) -> list[Comparison]:
        """Rows, each as of seed 0, a side of which wants a training that is not there, in a call that is to say so."""
        wants = self._evidence.wants_training
        left = (
            run
            for run in self._asked
            for side in sides
            for kind, recipe in run.read(side)
            if wants(recipe, run.dataset, run.seed, kind)
        )
        return list(dict.fromkeys(replace(run, seed=0) for run in left))

    def not_run(self, wildcards: Any) -> list[Tree]:
        """Rows that are said to be not run, as `runs`."""
        return [asdict(run) for run in self._left]

    def models(self, wildcards: Any) -> list[tuple[str, int]]:
        """Recipe and seed of all models of a data set that claims or the comparison speak of."""
        plan, dataset = self._evidence.plan, wildcards.dataset
        recipes = {
            recipe for run in self._runs if run.dataset == dataset for side in READ for _, recipe in run.read(side)
        }
        if COMPARED in plan.known_tables:
            compared = plan.runs_of(COMPARED)
            recipes |= {*compared.loc[compared["dataset"] == dataset, "recipe"]}
        return [(recipe, seed) for recipe in sorted(recipes) for seed in plan.several_seeds]

    def metrics(self, wildcards: Any) -> list[str]:
        """Metrics of each of `models`."""
        stored = self._evidence.inputs.stored
        return [stored("metrics", recipe, wildcards.dataset, seed) for recipe, seed in self.models(wildcards)]

    def runs(self, wildcards: Any, input: Any) -> list[Tree]:
        """The runs that claims are held against, without their files; refuses results of older code."""
        for side in READ:
            recipes = [(recipe, run.dataset, run.seed) for run in self._runs for _, recipe in run.read(side)]
            self._evidence.check_results(getattr(input, side), recipes)
        return [asdict(run) for run in self._runs]


def read_claims(plan: Plan) -> dict[str, Claim]:
    """All claims by name, those without data at this scale too.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe or published data set.
    """
    claims = read_entries(FILE, Claim)
    datasets = dataset_names()
    of_retrieval = measured_metrics([read(f"params/datasets/{dataset}.yaml", Dataset) for dataset in datasets])
    for name, claim in claims.items():
        require_known(f"{FILE}, {name}.metric", claim.metric, {*of_retrieval, *OF_ATTENTION})
        for dataset in claim.datasets:
            require_known(f"{FILE}, {name}.datasets", dataset, datasets)
        for place, pair in enumerate(claim.pairs):
            sides = [(side, getattr(pair, side)) for side in SIDES]
            for side, recipe in [*sides, *(("undisturbed", recipe) for recipe in pair.undisturbed)]:
                require_known(f"{FILE}, {name}.pairs.{place}.{side}", recipe, plan.recipe_names)
    return claims


def claim_runs(plan: Plan, claims: Stated) -> list[Comparison]:
    """One entry per claim, data set of this scale that has its metric, pair and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two.
        claims: as `read_claims` gives them.

    Raises:
        ValueError: for a pair that cannot run at this scale, or a metric that one of its recipes does not measure.
    """
    held = [
        (name, claim, published, dataset.name)
        for name, claim in claims.items()
        for published in claim.datasets
        for dataset in plan.datasets.values()
        if dataset.stands_for == published and claim.metric in {*OF_ATTENTION, *measured_metrics([dataset.about])}
    ]
    comparisons = []
    for name, claim, published, dataset in held:
        pairs = []
        for pair in claim.pairs:
            learners = tuple(pair.undisturbed) or (pair.baseline,)
            for recipe in (pair.changed, pair.baseline, *learners, *(f"{START}{learner}" for learner in learners)):
                plan.check_run(recipe, dataset)
            for recipe in (pair.changed, pair.baseline):
                _check_measured(plan.settings(recipe, dataset), claim.metric, recipe, f"{FILE}, {name}.metric")
            network = plan.settings(pair.baseline, dataset).train.backbone.name
            sides = pair.changed, pair.baseline
            own = ", ".join(besides(plan, Compared(*sides, dataset, claim.under_test, pair.as_in_paper)))
            poolings = {plan.settings(recipe, dataset).train.embedding.pooling for recipe in sides}
            has_rca = claim.metric not in OF_ATTENTION and "stripes" not in poolings
            pairs.append(Comparison(name, claim.metric, published, dataset, network, *sides, learners, 0, own, has_rca))
        stand_beside = not all(pair.besides for pair in pairs)
        comparisons += [
            replace(pair, seed=seed, decides=not (pair.besides and stand_beside))
            for pair in pairs
            for seed in plan.several_seeds
        ]
    return comparisons


def _check_measured(settings: Recipe, metric: str, recipe: str, place: str) -> None:
    method = settings.train.method.name
    if metric in OF_ATTENTION and not METHODS[method].has_attention:
        allowed = " or ".join(name for name, each in METHODS.items() if each.has_attention)
        raise ValueError(f"{place}: {metric} needs train.method {allowed}; recipe {recipe} trains {method}")
    if metric.startswith(ON_TRAINING) and not settings.embed.training_pictures:
        raise ValueError(f"{place}: {metric} needs embed.training_pictures, which recipe {recipe} does not set")
