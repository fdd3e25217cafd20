"""Measured explanations and their protocol: read from ``params/explanations.yaml``, checked, laid out as rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lookalike.base.checks import require_known, require_own_labels
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.inputs import recipe_digest
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.scales import Dataset
from lookalike.workflow.settings import pages
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import Tree, merge
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.sources.code import keys_of

FILE = "params/explanations.yaml"
PROTOCOL = ("seed", "grid", "steps", "substitutes")  # what a measurement depends on, beside model and triplets
CONTROLS = ("random", "centre", "edges")  # that know neither model nor pair, as `lookalike.explanations` has them
CHOICE = "lookalike.explanations.choice"


@dataclass(frozen=True)
class Explained:
    """A row of the table of explanations on a data set, for one seed."""

    block: str
    dataset: str
    label: str
    recipe: str
    explainer: str
    seed: int
    half: str = ""  # of the classes that the seed trains on; its triplets are of the other


class Explanations:
    """Rows of the table of explanations, and the files behind them.

    Args:
        evidence: of the call.

    Attributes:
        settings: as `read_explanations` gives them.

    Raises:
        ValueError: as `read_explanations`.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._inputs, self._plan = evidence, evidence.inputs, evidence.plan
        self.settings = read_explanations(evidence.plan)

    @cached_property
    def _rows(self) -> list[Explained]:
        return explanation_rows(self._plan, self.settings)

    def neutral_embeddings(self, wildcards: Any) -> str:
        """Embeddings under which the triplets of a data set are drawn, on the classes that a half tests."""
        neutral = self.settings.neutral
        self._plan.check_run(neutral.recipe, wildcards.dataset)
        pair = (neutral.seed, neutral.seed ^ 1)
        of_half = {self._plan.half_of(wildcards.dataset, seed): seed for seed in reversed(pair)}
        seed = of_half.get(self._inputs.half(wildcards), neutral.seed)
        return self._inputs.stored("embeddings", neutral.recipe, wildcards.dataset, seed)

    def triplets_of(self, wildcards: Any) -> str:
        """Triplets of a job's data set, of the classes that its seed is tested on."""
        return self._drawn(wildcards.dataset, self._inputs.half(wildcards))

    def model(self, wildcards: Any) -> str:
        """Model of a job that measures its explanations."""
        self._plan.refuse_unknown(recipe=wildcards.recipe, dataset=wildcards.dataset)
        check_explainer(self._plan, wildcards.recipe, wildcards.dataset, wildcards.explainer)
        return self._inputs.result_of("model")(wildcards)

    @property
    def protocol(self) -> Tree:
        """Settings by which all explanations are measured."""
        return self.settings.model_dump(include={*PROTOCOL})

    def code(self, wildcards: Any) -> str:
        """Digest of the code that measures one method's explanations of a recipe's model."""
        sections = self._plan.deciding(wildcards.recipe, wildcards.dataset, "train")
        chosen = {"explained": [wildcards.explainer, *self.settings.substitutes]}
        return recipe_digest(["lookalike.workflow.stages.explain:explain"], sections | chosen)

    def triplets(self, wildcards: Any) -> list[str]:
        """Files with the triplets, a data set after the other."""
        datasets = [each.name for each in explained_datasets(self._plan, self.settings)]
        halves = {(row.dataset, row.half): None for row in self._rows}
        return [self._drawn(*each) for name in datasets for each in halves if each[0] == name]

    def measures(self, wildcards: Any) -> list[str]:
        """Files with the measures of the rows of the table, in their order.

        Raises:
            ValueError: for a row of whose seeds one is alone on its half of the classes.
        """
        seeds: dict[tuple[str, ...], list[int]] = {}
        for row in self._rows:
            seeds.setdefault((row.dataset, row.block, row.label, row.explainer), []).append(row.seed)
        for (dataset, *_), of_row in seeds.items():
            self._plan.check_halves(dataset, of_row)
        return [self._file(row) for row in self._rows]

    def metrics(self, wildcards: Any) -> list[str]:
        """Files with the metrics of the explained runs, in the order of the rows."""
        return [self._inputs.stored("metrics", row.recipe, row.dataset, row.seed) for row in self._rows]

    def rows(self, wildcards: Any, input: Any) -> list[Tree]:
        """Rows of the table of explanations, one for each seed."""
        self._evidence.check_results(input.metrics, [(row.recipe, row.dataset, row.seed) for row in self._rows])
        return [asdict(row) for row in self._rows]

    def _drawn(self, dataset: str, half: str) -> str:
        return f"{self._inputs.results_folder}/explanations/{dataset}{half and f'.{half}'}.triplets.csv"

    def _file(self, row: Explained) -> str:
        trained_on = self._plan.training_dataset(row.recipe, row.dataset)
        recipe = self._plan.shared("train", row.recipe, trained_on)
        folder = f"{self._inputs.results_folder}/explanations/{recipe}/{row.dataset}"
        return f"{folder}/{row.explainer}-seed{row.seed}.json"


def read_explanations(plan: Plan) -> pages.Explanations:
    """Read ``params/explanations.yaml``, with the scale's own settings laid over it.

    Raises:
        ValueError: naming file, key and what would be right, for an unknown recipe, explainer or substitute.
    """
    place = f"{plan.scale_file}, explanations" if plan.explanations else FILE
    laid_over = merge(read(FILE, pages.Explanations).dump(), plan.explanations)
    settings = checked(pages.Explanations, laid_over, place)
    require_known(f"{place}, neutral.recipe", settings.neutral.recipe, plan.recipe_names)
    known = keys_of("lookalike.explanations.quality.deletion", "SUBSTITUTES")
    for substitute in settings.substitutes:
        require_known(f"{place}, substitutes", substitute, known)
    if settings.steps > settings.grid**2:
        raise ValueError(f"{place}, steps: {settings.steps} is more than the {settings.grid**2} cells of the grid")
    for number, block in enumerate(settings.blocks):
        for row in block.rows:
            where = f"{place}, blocks.{number}, row {row.label!r}"
            require_known(f"{where}, recipe", row.recipe, plan.recipe_names)
            require_known(f"{where}, explainer", row.explainer, explainers())
        labels = (f"{row.label!r} by {row.explainer}" for row in block.rows)
        require_own_labels(f"{place}, blocks.{number}", labels)
    return settings


def explainers() -> tuple[str, ...]:
    """All methods of explanation, the controls last."""
    return (*keys_of(CHOICE, "OF_EMBEDDERS"), *keys_of(CHOICE, "OF_GRAPHS"), *CONTROLS)


def check_explainer(plan: Plan, recipe: str, dataset: str, explainer: str, where: str = FILE) -> None:
    """Refuse an explainer that cannot explain the model of a recipe.

    Raises:
        ValueError: naming the recipe and the methods that can.
    """
    method = plan.settings(recipe, dataset).train.method.name
    able = keys_of(CHOICE, "OF_GRAPHS" if method == "avsl" else "OF_EMBEDDERS")
    if explainer not in (*able, *CONTROLS):
        raise ValueError(
            f"{where}: explainer {explainer!r} does not explain recipe {recipe}, which trains {method}; "
            f"these do: {', '.join((*able, *CONTROLS))}"
        )


def explained_datasets(plan: Plan, settings: pages.Explanations) -> list[Dataset]:
    """Data sets of this scale that are named, or that stand for those that are.

    Raises:
        ValueError: for none, or one whose test pictures do not search each other.
    """
    wanted = settings.datasets
    found = [each for each in plan.datasets.values() if each.name in wanted or each.stands_for in wanted]
    if not found:
        raise ValueError(
            f"{FILE}, datasets: no data set of scale {plan.scale} is or stands for {' or '.join(map(repr, wanted))}; "
            f"it has {', '.join(plan.datasets)}"
        )
    for each in found:
        if not each.about.self_match:
            raise ValueError(f"{FILE}, datasets: {each.name} has queries and a gallery; triplets are drawn of one set")
    return found


def explanation_rows(plan: Plan, settings: pages.Explanations) -> list[Explained]:
    """One entry per block, data set, row and seed.

    Args:
        plan: of this call; its seeds are taken if there are at least two, unless a row has its own.
        settings: as `read_explanations` gives them.

    Raises:
        ValueError: for a recipe that cannot run at this scale or that the explainer does not explain.
    """
    rows = [
        Explained(
            block.title, dataset.name, row.label, row.recipe, row.explainer, seed, plan.half_of(dataset.name, seed)
        )
        for block in settings.blocks
        for dataset in explained_datasets(plan, settings)
        for row in block.rows
        for seed in row.seeds or plan.several_seeds
    ]
    for each in rows:
        plan.check_run(each.recipe, each.dataset)
        check_explainer(plan, each.recipe, each.dataset, each.explainer, f"{FILE}, row {each.label!r}")
    return rows
