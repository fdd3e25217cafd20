"""Ten minutes on a card that nobody has seen: whether all is right there, what it takes, what makes it quicker.

    python benchmarks/gpu_day.py OUT --pictures FOLDER --weights squeezenet1_1_imagenet.pth [--only PART ...]

Every part is a process with a limit of its own, and every line of ``OUT/gpu_day.jsonl`` is written as it is known: what
ends a part, or all of them, leaves what was found until then. `PARTS` lie in the order in which they are worth their
time. Behind the last one, figures become ``OUT/gpu_day.json``, as of every benchmark, and what `lookalike plan` reads
of a card lies in ``params/cards`` and ``OUT/cards``. ``GPU_DAY_SMALL=1`` makes all of it small enough for a processor,
and draws the pictures. Commit both once a card was there. To a machine that is lent go wheels that it lacks, the
weights (5 MB) and 50 species of cub100.tar (30 MB):

    mkdir pictures
    tar -tf data/archives/cub100.tar | grep -o '.*/images/[^/]*/' | sort -u | head -75 | tail -50 > species
    tar -xf data/archives/cub100.tar -C pictures --strip-components 2 --files-from species
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measure import Finding, conclude
from PIL import Image
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lookalike.app.command.costs.cards import card_of, write_card
from lookalike.app.command.costs.measurement import measure_card, measure_kind, pictures_in
from lookalike.app.command.costs.overview import _trainings as trainings_of
from lookalike.app.own.step_cost import kind_of, measured_learner, now
from lookalike.base.files import read_tensors
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.metrics.search import FirstRank, SearchOfClasses
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.running.devices import loading_threads
from lookalike.workflow.running.machine import device_name, job_device
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.stages.train import train as train_stage
from lookalike.workflow.training import loop
from lookalike.workflow.training.evaluation import SCORINGS
from lookalike.workflow.training.images import Images, Loader, in_order
from lookalike.workflow.training.learner import Learner
from lookalike.workflow.training.methods import LEARNERS
from lookalike.workflow.training.steps import Steps

SMALL = bool(os.environ.get("GPU_DAY_SMALL"))
CLASSES = 8  # of a small step
SOP_IMAGES, SOP_CLASSES = (600, 120) if SMALL else (60_502, 11_318)
Line = dict[str, Any]


@dataclass(frozen=True)
class Day:
    """What every part is told."""

    out: Path
    pictures: Path
    weights: str

    @property
    def device(self) -> torch.device:
        return job_device()


class Drawn(TorchFunctionMode):
    """Inside, draws are those of the processor, whatever the device: else miners choose other tuples on each."""

    DRAWS = frozenset({torch.multinomial, torch.rand, torch.randn, torch.randint, torch.randperm})

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function not in self.DRAWS:
            return function(*args, **kwargs)
        device = kwargs.pop("device", None) or next((each.device for each in args if isinstance(each, Tensor)), "cpu")
        here = [each.cpu() if isinstance(each, Tensor) else each for each in args]
        return function(*here, **kwargs).to(device)


def kinds_of_steps() -> dict[str, Train]:
    """A training of scale `paper` for each way in which a step compares what it has embedded, on a small network."""
    kinds: dict[str, Train] = {}
    for training in trainings_of(_plan("paper")):
        train = training.settings
        if train.loss is None:
            continue
        options = train.method.options
        parts = [train.method.name if train.method.name != "embedder" else "", options.get("kind", ""), train.loss.name]
        parts += [train.loss.options.get("miner") or "", "regularised" if train.regulariser else ""]
        parts += ["scaled" if train.mixed_precision else ""]
        kinds.setdefault(" ".join(filter(None, parts)), train)
    return {kind: _small(train) for kind, train in sorted(kinds.items())}


def _small(train: Train) -> Train:
    side = 64 if isinstance(train.image.crop_px, int) else [96, 48]
    view = {"resize_px": None, "crop_px": side}
    backbone = {**train.backbone.dump(), "name": "tiny", "weights": None}
    over: Line = {"backbone": backbone, "image": view, "test_image": view, "batch_size": 24, "embedding": {"dim": 48}}
    if train.method.name == "avsl":
        over["method"] = {"k": 16}
    return Train.model_validate(merge(train.dump(), over))


def small_batch(train: Train) -> tuple[Tensor, Tensor]:
    """Pictures that resemble those of their class, and the classes."""
    generator = torch.Generator().manual_seed(1)
    height, width = np.broadcast_to(train.image.crop_px, 2).tolist()
    labels = torch.arange(train.batch_size) % CLASSES
    shown = torch.randn(CLASSES, 3, height, width, generator=generator)
    return shown[labels] + torch.randn(train.batch_size, 3, height, width, generator=generator), labels


def small_step(train: Train, device: torch.device) -> tuple[Learner, Steps, Callable[[], Tensor]]:
    """A learner past any warm-up, what takes its steps, and a call that takes one and gives its loss."""
    learner, steps = measured_learner(train, classes=CLASSES, device=device)
    pictures, labels = (each.to(device) for each in small_batch(train))
    return learner, steps, _stepper(learner, steps, pictures, labels)


def _stepper(learner: Learner, steps: Steps, pictures: Tensor, labels: Tensor) -> Callable[[], Tensor]:
    steps.begin(0)

    def step() -> Tensor:
        steps.optimiser.zero_grad()
        loss: Tensor = learner(pictures, labels)
        steps.take(loss)
        return loss

    return step


def ceilings(day: Day) -> Iterator[Line]:
    """What everything else is divided by: copies and products."""
    device, on_card = day.device, day.device.type == "cuda"
    if on_card:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,power.limit", "--format=csv,noheader"]
        yield {"nvidia_smi": subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()}
    yield {"torch": torch.__version__, "cuda": torch.version.cuda, "device": device_name(device)}
    source = torch.empty(10**6 if SMALL else 2 * 10**9, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    yield _finding("copying", "GB/s", 2 * len(source) / 1e9 / _seconds(partial(target.copy_, source), device))
    side = 128 if SMALL else 8192
    for name, dtype, tf32 in (
        ("bfloat16", torch.bfloat16, False), ("TF32", torch.float32, True), ("float32", torch.float32, False),
        ("float64", torch.float64, False),
    ):  # fmt: skip
        torch.backends.cuda.matmul.allow_tf32 = tf32
        square = torch.randn(side, side, device=device).to(dtype)
        seconds = _seconds(partial(torch.matmul, square, square), device)
        yield _finding(f"products in {name}", "TFLOP/s", 2 * side**3 / 1e12 / seconds)


def agreement(day: Day) -> Iterator[Line]:
    """Loss, gradient and scores of the device against those of the processor."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    kinds = kinds_of_steps()
    for kind in list(kinds)[:: 12 if SMALL else 1]:
        train = kinds[kind].model_copy(update={"mixed_precision": False})
        found = [_loss_and_gradient(train, device) for device in (torch.device("cpu"), day.device)]
        apart = max(abs(one - other) / max(abs(one), 1e-6) for one, other in zip(*found, strict=True))
        yield {"kind": kind, "of_processor": found[0], "of_device": found[1]} | _finding(
            f"loss and gradient of {kind}", "relative error", apart, 1e-4
        )
    for name, side, model, options in _scorings():
        metrics = []
        for device in (torch.device("cpu"), day.device):
            labels = torch.arange(len(side["labels"]), device=device) // 5
            given = {key: value.to(device) for key, value in side.items() if key != "labels"}
            search = SearchOfClasses(labels, labels, [1, 2, 4], self_match=True)
            network = None if model is None else model.to(device)
            with torch.no_grad():
                metrics.append(SCORINGS[name](network, given, given, search, **options))  # type: ignore[arg-type]
        apart = max(abs(metrics[0][key] - metrics[1][key]) for key in metrics[0])
        yield {"metrics": metrics} | _finding(f"metrics of {name} {options or ''}".strip(), "", apart, 1e-4)


def _loss_and_gradient(train: Train, device: torch.device) -> tuple[float, float]:
    with Drawn():
        learner, _, step = small_step(train, device)
        torch.manual_seed(5)
        loss = step()
    gradients = [each.grad for each in learner.parameters() if each.grad is not None]
    return float(loss.detach()), float(torch.nn.utils.get_total_norm(gradients))


def _scorings() -> Iterator[tuple[str, dict[str, Tensor], AVSL | None, Line]]:
    count, generator = 40 if SMALL else 1500, torch.Generator().manual_seed(0)
    labels = torch.arange(count) // 5

    def near(*shape: int) -> Tensor:
        centres = torch.randn(count // 5 + 1, *shape, generator=generator)[labels]
        return centres + 4 * torch.randn(count, *shape, generator=generator)  # so that neighbours are not all right

    flat = {"labels": labels, "embedding": near(128)}
    regions = torch.nn.functional.normalize(near(16, 128), dim=-1)
    mean = torch.nn.functional.normalize(regions.mean(1), dim=-1)
    located = {"labels": labels, "embedding": mean, "regions": regions}
    yield "cosine", flat, None, {}
    yield "shared_neighbours", flat, None, {"k": 4, "beta": 0.1}
    yield "structural_matching", located, None, {}
    yield "structural_matching", {name: each[:20] for name, each in located.items()}, None, {"solver": "exact"}
    model, state = _graph(count, generator, noise=8.0)
    for scoring in ("graph", "fixed_weights"):
        yield scoring, {"labels": labels, **state}, model, {}


def _graph(
    count: int, generator: torch.Generator, *, slope: float = 2.0, noise: float = 2.4
) -> tuple[AVSL, dict[str, Tensor]]:
    """A model with weights of a slope, and the state of some pictures, five of each class."""
    train = next(each.settings for each in trainings_of(_plan("paper")) if each.recipe == "avsl_proxy_anchor")
    model = LEARNERS["avsl"].build(_small(train).model_copy(update={"embedding": train.embedding})).eval()
    assert isinstance(model, AVSL)
    with torch.no_grad():
        model.alpha.copy_(slope * (2 * torch.rand(model.alpha.shape, generator=generator) - 1))
        model.beta.copy_(3 * torch.rand(model.beta.shape, generator=generator) - 1.3)
        model.edge_states.copy_(torch.rand(model.edge_states.shape, generator=generator))
        model.edges_initialised.fill_(True)
    labels, nodes = torch.arange(count) // 5, model.alpha.shape[1]
    levels = [torch.randn(count // 5 + 1, nodes, generator=generator)[labels] for _ in range(3)]
    embeddings = tuple(level + noise * torch.randn(count, nodes, generator=generator) for level in levels)
    statistics = tuple(0.01 * (0.5 + torch.rand(count, nodes, generator=generator)) for _ in range(3))
    return model, Representation(embeddings, statistics).state()


def tests(day: Day) -> Iterator[Line]:
    """The project's own tests on a card, of three subjects."""
    chosen = ("workflow/running/test_machine.py", "methods/avsl/test_similarity.py", "methods/diml/test_similarity.py")
    line = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", *(f"tests/{name}" for name in chosen)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    yield {"said": done.stdout.strip().splitlines()[-1:], "status": done.returncode}


def resumed(day: Day) -> Iterator[Line]:
    """How far a training that was killed ends from one that was not."""
    for recipe in ("proxy_anchor", "avsl_margin", "diml_trained_margin")[: 1 if SMALL else None]:
        states = []
        for killed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                run = _training(day, recipe, Path(folder), classes=4, epochs=3, batches=2, image=64)
                if killed:
                    _killed(run)
                run()
                states.append(read_tensors(Path(folder) / "model")[0])
        apart = torch.cat([(states[0][name].double() - states[1][name].double()).abs().flatten() for name in states[0]])
        yield {"largest": float(apart.max())} | _finding(
            f"weights of {recipe} that a kill moved by more than 0.0001", "share", float((apart > 1e-4).double().mean())
        )


def _killed(run: Callable[[], None]) -> None:
    report, seen = loop._report, []

    def kill(*line: Any) -> None:
        seen.append(line)
        if len(seen) == 2:
            raise KeyboardInterrupt

    loop._report = kill
    try:
        run()
    except KeyboardInterrupt:
        return
    finally:
        loop._report = report


def _training(
    day: Day, recipe: str, folder: Path, *, classes: int, epochs: int, batches: int, image: int, weights: str = ""
) -> Callable[[], None]:
    """The stage `train` on pictures of some classes, which searches those of as many others."""
    plan = _plan("mini")
    train = plan.settings(recipe, next(iter(plan.datasets))).train
    shown = {"resize_px": image * 8 // 7, "crop_px": image}
    backbone = {"name": "squeezenet1_1", "weights": weights} if weights else {"name": "tiny", "weights": None}
    budget = {"epochs": epochs, "batches_per_epoch": batches, "evaluate_every": 1, "patience": None, "collapse": None}
    over: Line = {"backbone": backbone, "image": shown, "test_image": shown, "budget": budget}
    over |= {"sampler": {"name": "m_per_class", "per_class": 4}, "batch_size": 16 if not weights else 64}
    listed = folder / "manifest.csv"
    folders = sorted(path for path in day.pictures.iterdir() if path.is_dir())[: 2 * classes]
    with listed.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["path", "label", "role"])
        for label, each in enumerate(folders):
            for path in sorted(each.iterdir()):
                name = path.relative_to(day.pictures).as_posix()
                lines.writerow([name, label, "train" if label < len(folders) // 2 else "test"])
    files = {name: str(folder / name) for name in ("model", "history", "resume")}
    workers = loading_threads() - 1 if day.device.type == "cuda" else 0
    settings = Train.model_validate(merge(train.dump(), over))
    return lambda: train_stage(
        settings, seed=0, code="gpu_day", manifest=str(listed), root=str(day.pictures), **files,
        decoded=str(folder / "decoded"), decoded_gb=4.0, workers=workers,
    )  # fmt: skip


def card(day: Day) -> Iterator[Line]:
    """Every kind of training of scale `paper`, for `plan`; each is written at once."""
    steps = 1 if SMALL else 25
    trainings = [each.settings for each in trainings_of(_plan("mini" if SMALL else "paper")) if each.settings.loss]
    if SMALL:
        trainings = [trainings[0].model_copy(update={"batch_size": 8})]
    for kind, values in measure_card(trainings, day.pictures, device=day.device, steps=steps):
        written = write_card(card_of(device_name(day.device), steps, {kind: values}))
        (day.out / "cards").mkdir(exist_ok=True)
        shutil.copy(written, day.out / "cards")
        yield asdict(values) | _finding(f"{kind}", "pictures/s", 1000 / values.step_ms)
        yield _finding(f"{kind}, of the network alone", "share", values.share, 0.95, at_least=True)


def quicker(day: Day) -> Iterator[Line]:
    """What each way of `acceleration` brings, on three kinds of training."""
    wanted = ("avsl_proxy_anchor", "margin", "contextual_256")[: 1 if SMALL else None]
    ways = (["bfloat16"],) if SMALL else (["cudnn_benchmark"], ["bfloat16"], ["compile"])
    trainings = {each.recipe: each.settings for each in reversed(trainings_of(_plan("paper")))}
    paths, labels = pictures_in(day.pictures)
    for recipe in wanted:
        train = _small(trainings[recipe]) if SMALL else trainings[recipe]
        with tempfile.TemporaryDirectory() as folder:
            given: Line = {"device": day.device, "steps": 1 if SMALL else 15, "folder": Path(folder)}
            plain = measure_kind(train, paths, labels, **given)
            for way in ways:
                other = measure_kind(train.model_copy(update={"acceleration": way}), paths, labels, **given)
                what = f"{kind_of(train)}, {way[0]}: a picture of a step on a batch at hand"
                yield _finding(what, "ms", other.alone_ms, plain=plain.alone_ms)


def profile(day: Day) -> Iterator[Line]:
    """Where five steps leave the device idle, which kernels fill it, and how often the program waits."""
    on_card = day.device.type == "cuda"
    kinds = {each.recipe: each.settings for each in reversed(trainings_of(_plan("paper")))}
    for recipe in ("avsl_margin", "diml_trained_margin", "contextual")[: 1 if SMALL else None]:
        train = _small(kinds[recipe]) if SMALL else kinds[recipe]
        _, _, step = small_step(train, day.device)
        step()
        began = now(day.device)
        activities = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if on_card else [])]
        with torch.profiler.profile(activities=activities) as seen:
            for _ in range(1 if SMALL else 5):
                step()
            seconds = now(day.device) - began
        events = seen.key_averages()
        if on_card:
            events = sorted(events, key=lambda each: -each.self_device_time_total)
            busy = sum(each.self_device_time_total for each in events) / 1e6
            yield _finding(f"the card at work in a step of {recipe}", "share", busy / seconds)
        waits = sum(each.count for each in events if "Synchronize" in each.key)
        times = [(each.key, round(getattr(each, "self_device_time_total", 0) / 1e3, 3)) for each in events[:15]]
        yield {"recipe": recipe, "waits": waits, "kernels_ms": times}


def learning(day: Day) -> Iterator[Line]:
    """Whether a training learns: R@1 of classes that it never saw, before and behind."""
    for recipe in ("proxy_anchor", "diml_trained_margin")[: 1 if SMALL else None]:
        with tempfile.TemporaryDirectory() as folder:
            size = {"classes": 4, "epochs": 2, "batches": 2, "image": 64} if SMALL else {
                "classes": 25, "epochs": 6, "batches": 50, "image": 224
            }  # fmt: skip
            _training(day, recipe, Path(folder), **size, weights=day.weights)()
            with (Path(folder) / "history").open() as file:
                history = list(csv.DictReader(file))
        scores = [100 * float(line["R@1"]) for line in history]
        loss = [float(line["loss"]) for line in history]
        yield {"loss": loss, "R@1": scores} | _finding(f"best R@1 of {recipe}", "%", max(scores), plain=scores[0])


def searches(day: Day) -> Iterator[Line]:
    """A test set as large as that of Stanford Online Products, searched by cosine and by AVSL's graph."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.arange(SOP_IMAGES) // 5).to(day.device)
    embedding = {"embedding": torch.randn(SOP_IMAGES, 512, generator=generator).to(day.device)}
    for kind in (FirstRank, SearchOfClasses):
        search = kind(labels, labels, (1,), self_match=True)
        cosine = partial(SCORINGS["cosine"], torch.nn.Identity(), embedding, embedding, search)
        seconds = _seconds(cosine, day.device, 1)
        yield _finding(f"{kind.__name__} of {SOP_IMAGES} by cosine", "s", seconds)
    for slope in (0.0, 3.0):
        model, state = _graph(SOP_IMAGES, generator, slope=slope)
        model, state = model.to(day.device), {name: each.to(day.device) for name, each in state.items()}
        search = SearchOfClasses(labels, labels, (1,), self_match=True)
        with torch.no_grad():
            seconds = _seconds(partial(SCORINGS["graph"], model, state, state, search), day.device, 1)
        yield _finding(f"AVSL's search of {SOP_IMAGES}, slope {slope:g}", "s", seconds, 5.0) | _memory(day.device)


def reranking(day: Day) -> Iterator[Line]:
    """Structural re-ranking of the 100 nearest of a test set as large as that of Stanford Online Products."""
    count, generator = SOP_IMAGES // (20 if SMALL else 4), torch.Generator().manual_seed(0)
    regions = torch.nn.functional.normalize(torch.randn(count, 16, 128, generator=generator), dim=-1).to(day.device)
    side = {"regions": regions, "embedding": torch.nn.functional.normalize(regions.mean(1), dim=-1)}
    labels = (torch.arange(count) % (count // 5)).to(day.device)
    search = FirstRank(labels, labels, (1,), self_match=True)
    seconds = _seconds(
        lambda: SCORINGS["structural_matching"](torch.nn.Identity(), side, side, search, truncation=100), day.device, 1
    )
    yield _finding(f"structural re-ranking of 100 candidates, {count} queries", "ms a query", 1e3 * seconds / count)


def proxies(day: Day) -> Iterator[Line]:
    """AVSL's step with the proxies of a batch and with those of all classes of Stanford Online Products."""
    classes = SOP_CLASSES
    train = next(each.settings for each in trainings_of(_plan("paper")) if each.recipe == "avsl_proxy_anchor")
    train = _small(train) if SMALL else train
    for most in (1000 if not SMALL else 10, 10**6):
        some = Train.model_validate(merge(train.dump(), {"loss": {"all_proxies_up_to": most}}))
        learner, steps = measured_learner(some, classes=classes, device=day.device)
        pictures, labels = small_batch(train)
        pictures, labels = pictures.to(day.device), (torch.arange(len(labels)) // 2).to(day.device)
        if day.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        what = "those of the batch" if most < classes else f"all {classes}"
        seconds = _seconds(_stepper(learner, steps, pictures, labels), day.device, 2)
        yield _finding(f"AVSL's step, proxies: {what}", "ms", 1e3 * seconds) | _memory(day.device)


def loading(day: Day) -> Iterator[Line]:
    """Pictures a second that the loading processes give, without a network."""
    paths, _ = pictures_in(day.pictures)
    paths = list(paths) * (1 if SMALL else math.ceil(4096 / len(paths)))
    train = next(each.settings for each in trainings_of(_plan("paper")) if each.recipe == "margin")
    workers = 0 if SMALL else loading_threads() - 1
    for title, view in (("training", train.image), ("test", train.test_image)):
        loader = Loader(Images(paths, view), device=day.device, workers=workers)
        for _ in loader.batches(in_order(2, 1), seed=0):
            pass  # starts the processes
        began = now(day.device)
        for _ in loader.batches(in_order(len(paths), 112), seed=0):
            pass
        rate = len(paths) / (now(day.device) - began)
        yield _finding(f"{title} pictures from their files, {workers} processes", "pictures/s", rate)


class Part(NamedTuple):
    """A part of the day, and the seconds that it has on a card."""

    run: Callable[[Day], Iterator[Line]]
    seconds: int


PARTS = {
    "ceilings": Part(ceilings, 20),
    "agreement": Part(agreement, 60),
    "tests": Part(tests, 15),
    "resumed": Part(resumed, 25),
    "card": Part(card, 170),
    "searches": Part(searches, 25),
    "proxies": Part(proxies, 20),
    "quicker": Part(quicker, 60),
    "profile": Part(profile, 25),
    "learning": Part(learning, 90),
    "reranking": Part(reranking, 15),
    "loading": Part(loading, 30),
}
TOGETHER = 555  # seconds, of the ten minutes that a call on a lent machine has


def _plan(scale: str) -> Plan:
    return Plan({"scale": scale, "seeds": [0], "archives": "data/archives", "tracking": False})


def _seconds(call: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Seconds of a call, the shortest of several behind one that warms up."""
    taken = []
    for _ in range(repeats + 1):
        began = now(device)
        call()
        taken.append(now(device) - began)
    return max(min(taken[1:]), 1e-9)


def _memory(device: torch.device) -> Line:
    return {"gb": round(torch.cuda.max_memory_allocated(device) / 1e9, 2)} if device.type == "cuda" else {}


def _finding(what: str, unit: str, measured: float, limit: float | None = None, **more: Any) -> Line:
    return asdict(Finding(what, unit, float(measured), limit, **more))


def _draw(folder: Path, classes: int, each: int) -> None:
    """Pictures whose colour tells their class."""
    generator = np.random.default_rng(0)
    for label in range(classes):
        (folder / f"{label:02}").mkdir(parents=True, exist_ok=True)
        colour = generator.integers(40, 215, 3)
        for number in range(each):
            pixels = (colour + generator.integers(-40, 40, (80, 96, 3))).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{label:02}" / f"{number:02}.jpg", quality=92)


def run_part(name: str, day: Day) -> None:
    """A part in this process; its lines are added to the file as they come."""
    with (day.out / "gpu_day.jsonl").open("a") as file:
        try:
            for line in PARTS[name].run(day):
                file.write(json.dumps({"part": name, **line}) + "\n")
                file.flush()
        except Exception as error:
            file.write(json.dumps({"part": name, "error": f"{type(error).__name__}: {error}"[:500]}) + "\n")
            raise


def run_day(names: Sequence[str], day: Day, command: Sequence[str]) -> bool:
    """All parts, each in a process that is ended when its time is over; whether all of them ended well."""
    lines, well = day.out / "gpu_day.jsonl", True
    for name in names:
        began, limit = time.monotonic(), 120 if SMALL else PARTS[name].seconds
        process = subprocess.Popen([*command, "--part", name], start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        seconds = round(time.monotonic() - began, 1)
        with lines.open("a") as file:
            file.write(json.dumps({"part": name, "ended": status, "seconds": seconds, "limit_s": limit}) + "\n")
        well = well and status == 0
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    figures = [line for line in found if line.keys() >= Finding.__dataclass_fields__.keys()]
    known = [Finding(**{name: line[name] for name in Finding.__dataclass_fields__}) for line in figures]
    conclude([each for each in known if math.isfinite(each.measured)], day.out / "gpu_day.json")
    return well


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path, help="folder of what is found")
    options.add_argument("--pictures", type=Path, metavar="FOLDER", help="with a folder of each class; drawn without")
    options.add_argument("--weights", default="", metavar="FILE", help="of SqueezeNet, for the part `learning`")
    options.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    options.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    day = Day(given.out, given.pictures or given.out / "pictures", given.weights)
    if given.part:
        run_part(given.part, day)
        return 0
    if not day.pictures.exists():
        _draw(day.pictures, *((8, 8) if SMALL else (50, 24)))
    return 0 if run_day(given.only, day, [sys.executable, *sys.argv]) else 1


if __name__ == "__main__":
    sys.exit(main())
