"""Cost of a call, as ``lookalike plan`` prints it: numbers known at once, then those that have to be measured."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from lookalike.app.command.costs.cards import Card, read_cards
from lookalike.app.command.costs.disk import (
    Decoded,
    archive_bytes,
    copies_bytes,
    decoded_bytes,
    model_bytes,
)
from lookalike.app.command.costs.jobs import (
    STAGES,
    distinct_jobs,
    distinct_runs,
    job_counts,
    strangers_of,
    training_steps,
)
from lookalike.app.own.step_cost import H100, PICTURES, Kind, StepCost, kind_of, step_cost, work_of
from lookalike.base.paths import project_root
from lookalike.base.text import WIDTH, aligned, counted, human_bytes, human_seconds
from lookalike.workflow.data.roles import SEARCHED
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.rates import least_trials, rates_file, tried
from lookalike.workflow.plan.results import REFERENCE
from lookalike.workflow.plan.sizes import role_sizes, training_composition
from lookalike.workflow.plan.timings import seconds, timing_pattern
from lookalike.workflow.running.machine import device_name, job_device
from lookalike.workflow.settings.recipes import Train

if TYPE_CHECKING:
    import torch

INDENT = " " * 11
MONTH = 2.5e17  # floating point operations that a core of a processor does in one
NOUNS = {"train": "trainings", "evaluate": "evaluations", "segment": "segmentations"}


@dataclass(frozen=True)
class Training:
    """One distinct training; ``steps`` is ``None`` where the pictures are not counted yet."""

    recipe: str
    dataset: str
    seed: int
    settings: Train
    steps: int | None

    @property
    def searches(self) -> int:
        """Searches between epochs and after the last one."""
        budget = self.settings.budget
        return -(-budget.epochs // budget.evaluate_every) if self.steps else 0

    @property
    def pictures(self) -> int:
        """Pictures of all its steps, each counted as often as it is seen; 0 while unknown."""
        return (self.steps or 0) * self.settings.batch_size

    def seconds(self, cost: StepCost) -> float:
        """Of all its steps."""
        return (self.steps or 0) * cost.of(self.settings.batch_size)


def print_plan(plan: Plan, *, measure: bool) -> int:
    """Print jobs, steps and disk, then hours.

    Args:
        plan: of the call.
        measure: whether to measure a step of each kind of training that has not finished yet.

    Returns:
        How many files of cards cannot be read, which are told.

    Raises:
        ValueError: naming recipe and data set, if the pictures cannot fill a batch of the recipe.
    """
    trainings = _trainings(plan)
    _print_jobs(plan)
    _print_table(plan, trainings)
    _print_disk(plan, trainings)
    cards, faults = read_cards()
    for fault in faults:
        print(f"lookalike: {fault}", file=sys.stderr)
    _print_hours(plan, trainings, cards, measure=measure)
    return len(faults)


def _trainings(plan: Plan) -> list[Training]:
    trainings = []
    for job in distinct_jobs(plan):
        if job.stage != "train":
            continue
        settings = plan.settings(job.recipe, job.dataset).train
        pictures = training_composition(plan.datasets[job.dataset], plan.half_of(job.dataset, job.seed))
        try:
            steps = training_steps(settings, pictures) if pictures else 0 if settings.loss is None else None
        except ValueError as error:  # a sampler that these pictures cannot fill
            raise ValueError(f"recipe {job.recipe} on {job.dataset}, train.sampler: {error}") from None
        trainings.append(Training(job.recipe, job.dataset, job.seed, settings, steps))
    return trainings


def _print_jobs(plan: Plan) -> None:
    counts = job_counts(plan)
    runs = len(distinct_runs(plan))
    seeds = f"seed{'s' if len(plan.seeds) > 1 else ''} {', '.join(map(str, plan.seeds))}"
    listed = ", ".join(f"{count:,} {rule}" for rule, count in counts.items() if count)
    print(f"Scale {plan.scale}: {plan.title}\n")
    size = f"{counted(len(plan.table_names), 'table')}, {seeds}: {counted(runs, 'run')} (recipe x data set x seed)"
    _print_fact("runs", size)
    shared = "results that runs share are made once; those on disk are not made again"
    _print_fact("jobs", f"{sum(counts.values()):,} at most: {listed}; {shared}")


def _print_table(plan: Plan, trainings: Sequence[Training]) -> None:
    """Per data set and in total: runs, jobs, and steps."""
    jobs, runs = distinct_jobs(plan), distinct_runs(plan)
    stages = [stage for stage in STAGES if any(job.stage == stage for job in jobs)]
    rows = [["data set", "runs", *(NOUNS[stage] for stage in stages), "steps each", "steps"]]
    named = {run.dataset for run in runs} | {job.dataset for job in jobs}
    used = [name for name in plan.datasets if name in named]
    for title, names in (*((name, [name]) for name in used), ("together", used)):
        stages_here = [job.stage for job in jobs if job.dataset in names]
        rows.append(
            [title, f"{sum(run.dataset in names for run in runs):,}"]
            + [f"{stages_here.count(stage):,}" for stage in stages]
            + _steps([each for each in trainings if each.dataset in names])
        )
    print(f"\n{aligned(rows)}\n")


def _steps(trainings: Sequence[Training]) -> list[str]:
    """Least and most steps of a training, and those of all."""
    known = [each.steps for each in trainings if each.steps]
    if any(each.steps is None for each in trainings):
        return ["unknown before the split", "unknown"]
    if not known:
        return ["0", "0"]
    least, most = min(known), max(known)
    return [f"{least:,}" if least == most else f"{least:,} to {most:,}", f"{sum(known):,}"]


def _print_disk(plan: Plan, trainings: Sequence[Training]) -> None:
    jobs = distinct_jobs(plan)
    names = strangers_of(plan, jobs) | {job.dataset for job in jobs}
    archives = {name: archive_bytes(each) for name, each in plan.datasets.items() if name in names}
    sizes = {name: "unknown" if size is None else human_bytes(size) for name, size in archives.items() if size != 0}
    told = ", ".join(f"{name} {size}" for name, size in sizes.items())
    models = sum(model_bytes(each.settings) for each in trainings)
    copies = copies_bytes(plan, [name for name in plan.datasets if name in names])
    decoded = decoded_bytes(plan, jobs)
    download = sum(size or 0 for size in archives.values())
    total = 2 * download + models + sum(size or 0 for size in copies.values())
    least = total + decoded.least_bytes
    total += decoded.test_bytes + decoded.training_bytes
    free = shutil.disk_usage(project_root()).free
    unknown = " and what is unknown" if None in (*archives.values(), *copies.values()) else ""
    _print_fact("download", f"{told}; unpacked about the same again" if told else "nothing")
    if copies:
        told = ", ".join(f"{name} {'unknown' if size is None else human_bytes(size)}" for name, size in copies.items())
        _print_fact("copies", f"about {told}: smaller pictures, as `picture_cache` asks for")
    if plan.decoded_gb:
        _print_fact("decoded", _decoded(decoded, plan.decoded_gb, plan.data_folder))
    _print_fact("models", f"up to {human_bytes(models)}: two checkpoints of each training, the last epoch and the best")
    scarce = ": TOO LITTLE" if least >= free else "; whether that is enough is known after the split"
    enough = "" if total < free else scarce
    _print_fact("disk", f"up to {human_bytes(total)}{unknown}; {human_bytes(free)} are free here{enough}")


def _decoded(sizes: Decoded, limit_gb: float, folder: str) -> str:
    """Bytes of decoded pictures, and where they rest on the limit."""
    text = (
        f"about {human_bytes(sizes.test_bytes)} of pictures that are searched, up to "
        f"{human_bytes(sizes.training_bytes)} of those that are learned from"
    )
    if sizes.unknown:
        text += f", {sizes.unknown} of them counted at the limit before their sizes are known"
    if sizes.beyond:
        text += f"; {sizes.beyond} over the limit, decoded whenever they are read"
    return f"{text} (`decoded_gb` {limit_gb:g} for each split and view; {folder}/decoded may be deleted at any time)"


def _print_hours(plan: Plan, trainings: Sequence[Training], told: Sequence[Card], *, measure: bool) -> None:
    finished = {
        (each.recipe, each.dataset): finished_seconds(plan.folder, each.recipe, each.dataset) for each in trainings
    }
    taken = {key: fmean(seconds) for key, seconds in finished.items() if seconds}
    done = [each for each in trainings if (each.recipe, each.dataset) in taken]
    open_ = [each for each in trainings if (each.recipe, each.dataset) not in taken and each.steps != 0]
    floored = False
    if done:
        hours = human_seconds(sum(taken[each.recipe, each.dataset] for each in done))
        runs = counted(sum(map(len, finished.values())), "finished run")
        _print_fact("finished", f"{counted(len(done), 'training')} in {hours}, from {runs}, whatever the device was")
    if not open_:
        _print_fact("time", "every training has finished once")
    elif any(each.steps is None for each in open_):
        _print_fact("time", "unknown before the split, which counts the pictures")
    elif not measure:
        _print_fact("time", "not measured")
    elif (here := device_at_hand())[0].type == "cpu":  # a few steps tell little of a GPU, which its card does below
        rest = "the other trainings" if done else "all trainings"
        if not (floored := _print_floor(plan, open_, rest)):
            costs = _measure_kinds(open_, *here)
            seconds = sum(each.seconds(costs[kind_of(each.settings)]) for each in open_)
            _print_fact("time", f"{human_seconds(seconds)} for the steps of {rest}, one after the other, on {here[1]}")
    countable = open_ and all(each.steps is not None for each in open_)
    if not any(card.is_gpu for card in told):
        _print_fact("GPU hours", "not measured on any card; `lookalike measure` does so" if open_ else "none")
    for card in told if countable else []:
        _print_fact("GPU hours" if card.is_gpu else "CPU hours", _hours_on(card, plan, open_))
    parts = "loading of pictures" + ", searches between epochs" * (not floored) + " (of `time`)" * bool(told)
    rest = "decoding, which is done once for all runs, scores of searches, embedding, evaluation, segmentation"
    _print_fact("left out", f"{parts}, {rest}")
    if plan.rates and not rates_file(plan.rates_of).is_file():
        kinds = counted(len(tried(plan)), "kind")
        trials = f"{least_trials(plan.rates)} trainings or more of each, not counted above"
        _print_fact("rates", f"not searched yet; the target `rates` does, for {kinds}: {trials}")


def _print_floor(plan: Plan, trainings: Sequence[Training], rest: str) -> bool:
    """Print a card's least time for work of more than a month on a processor; return whether it was as much."""
    flop = moved = seconds = 0.0
    trained = searched = 0
    for each in trainings:
        shown, found = each.pictures, each.searches * _searched(plan, each)
        for work in (one.times(count) for one, count in zip(work_of(each.settings), (shown, found), strict=True)):
            flop, moved = flop + work.flop, moved + work.moved
            seconds += work.seconds(H100, half=each.settings.mixed_precision)
        trained, searched = trained + shown, searched + found
    if flop <= MONTH:
        return False
    pictures = f"{trained / 1e6:,.0f} M pictures of steps and {searched / 1e6:,.0f} M of searches"
    _print_fact("time", "not measured on a processor, which would take months")
    _print_fact("counted", f"{flop:.2g} FLOP and {moved / 1e15:.3g} PB moved by the networks of {rest}: {pictures}")
    _print_fact("floor", f"{human_seconds(seconds)} on one {H100.name} by its data sheet, whatever else a step does")
    return True


def _hours_on(card: Card, plan: Plan, trainings: Sequence[Training]) -> str:
    """Hours of steps and searches on a measured card, or the kinds that were not measured there."""
    kinds = {str(kind_of(each.settings)) for each in trainings}
    about = f"on {card.name} ({card.date}, torch {card.versions.get('torch', 'unknown')})"
    if missing := sorted(kinds - card.kinds.keys()):
        return f"unknown {about}, where {', '.join(missing)} was not measured"
    steps = sum(card.kinds[str(kind_of(each.settings))].step_ms * each.pictures for each in trainings) / 1000
    searches = sum(
        card.kinds[str(kind_of(each.settings))].search_ms * each.searches * _searched(plan, each) for each in trainings
    )
    searches /= 1000
    parts = f"{human_seconds(steps)} of steps, {human_seconds(searches)} of searches"
    return f"{human_seconds(steps + searches)} {about}: {parts}"


def _searched(plan: Plan, training: Training) -> int:
    """Pictures that a search between epochs represents."""
    sizes = role_sizes(plan.datasets[training.dataset], plan.half_of(training.dataset, training.seed))
    return sum(images for role, (images, _) in sizes.items() if role in SEARCHED)


def _measure_kinds(trainings: Sequence[Training], device: torch.device, name: str) -> dict[Kind, StepCost]:
    """Measure the cost of a step by kind, and print each as soon as it is known."""
    of_kind: dict[Kind, list[Training]] = {}
    for each in trainings:
        of_kind.setdefault(kind_of(each.settings), []).append(each)
    print()
    _print_fact(
        "measuring",
        f"one optimisation step of each of {counted(len(of_kind), 'kind')} of training on {name}, with {PICTURES} "
        "random pictures and weights, scaled to the recipe's batch, losses of all plans between its pairs with its "
        "square; other losses of a kind count as equal",
    )
    costs = {}
    for kind, own in sorted(of_kind.items()):
        print(f"{INDENT}{kind}: ", end="", flush=True)
        costs[kind] = step_cost(own[0].settings, device)
        hours = human_seconds(sum(each.seconds(costs[kind]) for each in own))
        print(f"{human_seconds(costs[kind].of(PICTURES))}, {counted(len(own), 'training')}, {hours}", flush=True)
    return costs


def _print_fact(title: str, text: str) -> None:
    start = f"{title:<{len(INDENT)}}"
    print(
        textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=INDENT, break_on_hyphens=False), flush=True
    )


def finished_seconds(scale: str, recipe: str, dataset: str) -> list[float]:
    """Seconds that finished trainings of a recipe took, one per seed: here, or else where its times are committed."""
    pattern = timing_pattern("train").format(recipe=recipe, dataset=dataset, seed="*")
    for folder in (f"results/{scale}", f"{REFERENCE}/{scale}"):
        measured = [seconds(path) for path in sorted((project_root() / folder).glob(pattern))]
        if found := [each for each in measured if each is not None]:
            return found
    return []


def device_at_hand() -> tuple[torch.device, str]:
    """The device that jobs would use, and its name."""
    device = job_device()
    name = device_name(device)
    return device, name if device.type == "cuda" else f"one core of the CPU ({name})"
