"""Training continues where it was killed, and with nothing else.

What makes a training quicker changes nothing but the rounding, and is asked for by name.
"""

import itertools
import math
import os
import signal
import time

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.models.backbones import Trunk
from lookalike.sampling.samplers import build_sampler
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.recipes import TrainingView
from lookalike.workflow.training.checkpoint import ResumeFile
from lookalike.workflow.training.images import Images, Loader
from lookalike.workflow.training.loop import accelerate, fit, seed_everything
from lookalike.workflow.training.methods import LEARNERS
from lookalike.workflow.training.steps import take_step
from trainings import CROP, METHODS, batch, section
from trainings import learner as build

CPU = torch.device("cpu")
PRETENDED = "LOOKALIKE_PRETENDED_CARD" in os.environ
VIEW = TrainingView(resize_px=28, crop_px=24, scale=[0.5, 1.0], ratio=[0.8, 1.25], flip=0.5)
OVER = {
    "test_image": {"resize_px": None},
    "optimiser": {"lr": {"trunk": 1e-3, "head": 1e-3, "projector": 1e-3}, "clip_norm": 10.0},
    "schedule": {"step_epochs": 2, "factor": 0.5, "warm_up_epochs": 1},
    "budget": {"epochs": 4, "batches_per_epoch": 3},
}


COSINE = {"schedule": {"decay": "cosine", "step_epochs": None, "factor": 1.0}}


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    generator = np.random.default_rng(0)
    for number in range(24):
        Image.fromarray(generator.integers(0, 255, (30, 36, 3), dtype=np.uint8)).save(folder / f"{number:02}.png")
    return sorted(folder.iterdir())


# Every method, and losses with parameters and with miners of their own.
TRAINED = {
    "margin": {"loss": {"name": "margin"}},
    "proxy_anchor": {"loss": {"name": "proxy_anchor"}},
    "projected": {"loss": {"name": "triplet_distance"}, "projector": {"width": 12}},
    "avsl": {"method": {"name": "avsl", "k": 4}, "loss": {"name": "margin"}},
    "diml": {"method": {"name": "diml", "side": 3}, "loss": {"name": "margin"}},
    "diverging": {"loss": {"name": "npair"}},
    "sam": {"method": {"name": "sam", "kind": "triplet"}, "loss": {"name": "triplet"}},
    "cosine": {"loss": {"name": "margin"}, **COSINE},
}


def trained(method, over=None):
    """The section of one of `TRAINED`."""
    return section("embedder", merge(merge(OVER, TRAINED[method]), over or {}))


def run(pictures, resume, *, method="projected", kill_after=None, scores=(), over=None, device=CPU):
    seed_everything(7)
    labels = torch.arange(24) % 6
    settings = trained(method, over)
    learner = LEARNERS[settings.method.name](settings, classes=6).to(device)
    sampler = build_sampler("m_per_class", {"per_class": 2}, labels=labels, batch_size=8, seed=7, batches=3)
    scores, epochs = iter(scores), itertools.count(1)

    def measure():
        if next(epochs) == kill_after:
            raise Killed
        return {"R@1": next(scores, 0.5)}

    return fit(
        learner, Loader(Images(pictures, VIEW), device=device), labels, sampler, settings,
        seed=7, measure=measure, resume=resume, device=device,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "kill_after", "device"),
    [(method, kill_after, "cpu") for method in TRAINED for kill_after in (2, 3)]
    + [pytest.param(method, 3, "cuda", marks=pytest.mark.gpu) for method in ("projected", "avsl", "diml", "sam")],
    indirect=["device"],
)
def test_a_resumed_training_ends_with_the_weights_of_an_unbroken_one(pictures, tmp_path, method, kill_after, device):
    unbroken = run(pictures, ResumeFile(tmp_path / "unbroken", "x"), method=method, device=device)
    with pytest.raises(Killed):
        run(pictures, ResumeFile(tmp_path / "killed", "x"), method=method, kill_after=kill_after, device=device)
    resumed = run(pictures, ResumeFile(tmp_path / "killed", "x"), method=method, device=device)
    assert resumed.last.keys() == unbroken.last.keys()
    pairs = [(resumed.last[name].cpu(), unbroken.last[name].cpu()) for name in unbroken.last]
    if device.type == "cuda" and not PRETENDED:  # sums there have no fixed order
        apart = torch.cat([(one.double() - other.double()).abs().flatten() for one, other in pairs])
        assert (apart < 1e-4).double().mean() > 0.95
    else:
        assert resumed.history == unbroken.history
        assert all(torch.equal(*pair) for pair in pairs)


def test_training_does_not_continue_from_another_recipe(pictures, tmp_path):
    with pytest.raises(Killed):
        run(pictures, ResumeFile(tmp_path / "state", "old digest"), kill_after=3)
    assert ResumeFile(tmp_path / "state", "new digest").read() is None
    fresh = run(pictures, ResumeFile(tmp_path / "state", "new digest"))
    unbroken = run(pictures, ResumeFile(tmp_path / "other", "new digest"))
    assert fresh.history == unbroken.history


def test_a_state_is_written_again_only_when_so_much_time_has_gone(pictures, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(ResumeFile, "write", lambda file, state: written.append(state["epoch"]))
    run(pictures, ResumeFile(tmp_path / "often", "x"))
    assert written == [1, 2, 3]  # the last epoch leaves a model instead
    written.clear()
    run(pictures, ResumeFile(tmp_path / "seldom", "x", every_s=3600))
    assert written == []


def test_an_epoch_that_is_reported_is_kept_whoever_then_ends_the_training(pictures, tmp_path, monkeypatch):
    def reported(*line):
        raise Killed

    monkeypatch.setattr("lookalike.workflow.training.loop._report", reported)
    with pytest.raises(Killed), ResumeFile(tmp_path / "state", "x", every_s=3600) as resume:
        run(pictures, resume)
    assert ResumeFile(tmp_path / "state", "x").read()["epoch"] == 1


def test_the_time_until_a_state_is_written_counts_from_the_last_one(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("lookalike.workflow.training.checkpoint.time.monotonic", lambda: now[0])
    file = ResumeFile(tmp_path / "state", "x", every_s=600)
    for moment, due in ((599, False), (600, True)):
        now[0] = moment
        assert file.is_due == due
    file.write({"epoch": 1})
    for moment, due in ((1199, False), (1201, True)):
        now[0] = moment
        assert file.is_due == due


def test_a_damaged_resume_file_starts_again(pictures, tmp_path, caplog):
    (tmp_path / "state").write_bytes(b"PK\x03\x04 half a file")
    fitted = run(pictures, ResumeFile(tmp_path / "state", "x"))
    assert len(fitted.history) == 4
    assert "damaged" in caplog.text


def test_the_best_epoch_is_the_first_of_equals_and_its_weights_are_kept(pictures, tmp_path):
    fitted = run(pictures, ResumeFile(tmp_path / "state", "x"), scores=[0.1, 0.9, 0.9, 0.3])
    assert fitted.best_epoch == 2
    until_then = run(pictures, ResumeFile(tmp_path / "two", "x"), over={"budget": {"epochs": 2}})
    assert all(torch.equal(fitted.best[name], until_then.last[name]) for name in fitted.best)


def test_patience_ends_a_training_that_no_longer_improves(pictures, tmp_path):
    over = {"budget": {"patience": 2}}
    fitted = run(pictures, ResumeFile(tmp_path / "state", "x"), scores=[0.9, 0.1, 0.1, 0.1], over=over)
    assert len(fitted.history) == 3


def test_a_training_ends_when_its_score_collapses(pictures, tmp_path):
    over = {"budget": {"collapse": 0.6}}
    fitted = run(pictures, ResumeFile(tmp_path / "state", "x"), scores=[0.5, 0.31, 0.3, 0.5], over=over)
    assert len(fitted.history) == 3


def test_the_trunk_rests_during_warm_up(pictures, tmp_path):
    seed_everything(7)
    start = LEARNERS["embedder"](trained("projected"), classes=6).model.state_dict()
    fitted = run(pictures, ResumeFile(tmp_path / "state", "x"), over={"budget": {"epochs": 1}})
    assert torch.equal(fitted.last["model.trunk.stages.stage1.0.weight"], start["trunk.stages.stage1.0.weight"])
    assert not torch.equal(fitted.last["model.head.weight"], start["head.weight"])


def test_rates_fall_along_a_cosine_over_the_batches_of_the_whole_training(pictures, tmp_path, monkeypatch):
    taken = []

    def watched(steps, *given):
        taken.append({group["name"]: group["lr"] for group in steps.optimiser.param_groups})
        take_step(steps, *given)

    monkeypatch.setattr("lookalike.workflow.training.loop.take_step", watched)
    over = merge(COSINE, {"budget": {"epochs": 4}})
    run(pictures, ResumeFile(tmp_path / "state", "x"), over=over)
    slow = [1e-3 * (1 + math.cos(math.pi * step / 12)) / 2 for step in range(12)]  # 4 epochs of 3 batches
    assert [rates["head"] for rates in taken] == pytest.approx(slow)
    assert [rates["trunk"] for rates in taken] == pytest.approx([0, 0, 0, *slow[3:]])  # rests in the first epoch


def test_a_diverging_training_says_so(pictures, tmp_path):
    rates = dict.fromkeys(("trunk", "head", "projector", "proxies", "boundaries"), 1e30)
    schedule = {"step_epochs": None, "factor": 1.0, "warm_up_epochs": 0, "warm_up_counts": False, "resting": []}
    over = {"optimiser": {"lr": rates}, "schedule": schedule}
    with pytest.raises(ValueError, match=r"loss is (nan|inf) at epoch \d, batch \d: training diverged"):
        run(pictures, ResumeFile(tmp_path / "state", "x"), method="diverging", over=over)


def diverging(pictures, resume, *, after, said="training diverged"):
    """A training whose loss is no number from a batch on, and what it says."""
    settings = trained("margin")

    class Diverging(LEARNERS["embedder"]):
        taken = 0

        def forward(self, images, labels):
            Diverging.taken += 1
            return super().forward(images, labels) * (torch.nan if Diverging.taken > after else 1)

        def measures(self):
            return {"metric": 0.25, "mining": float("nan")}

    labels = torch.arange(24) % 6
    sampler = build_sampler("m_per_class", {"per_class": 2}, labels=labels, batch_size=8, seed=7, batches=3)
    loader = Loader(Images(pictures, VIEW), device=torch.device("cpu"))
    with pytest.raises(ValueError, match=said) as refused, resume:
        fit(
            Diverging(settings, classes=6), loader, labels, sampler, settings,
            seed=7, measure=lambda: {"R@1": 0.5}, resume=resume, device=torch.device("cpu"),
        )  # fmt: skip
    return str(refused.value)


def test_a_loss_that_is_no_number_from_the_first_step_on_is_named(pictures, tmp_path):
    said = diverging(pictures, ResumeFile(tmp_path / "state", "x"), after=0, said="MarginLoss is nan")
    assert said.startswith("MarginLoss is nan at epoch 1, batch 1, a scalar before anything was learned (metric 0.25")


def test_a_loss_that_is_no_number_says_what_it_consists_of_and_what_is_kept(pictures, tmp_path):
    state = tmp_path / "state"
    said = diverging(pictures, ResumeFile(state, "x", every_s=3600), after=7)
    where = "loss is nan at epoch 3, batch 2: training diverged"
    assert said == f"{where} (metric 0.25, mining nan). The state after epoch 2 is kept in {state}"
    assert ResumeFile(state, "x").read()["epoch"] == 2
    said = diverging(pictures, ResumeFile(tmp_path / "other", "x", every_s=3600), after=1)
    assert said.endswith("(metric 0.25, mining nan). No epoch was finished")


def test_a_loading_process_that_dies_ends_the_training_and_its_state_is_kept(pictures, tmp_path):
    class Dying(Images):
        """Pictures whose loading process is killed when it has loaded some of them, as by the system out of memory."""

        def __getitem__(self, asked):
            if torch.utils.data.get_worker_info() and (tmp_path / "now").exists():
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(asked)

    labels, settings = torch.arange(24) % 6, trained("margin")
    sampler = build_sampler("m_per_class", {"per_class": 2}, labels=labels, batch_size=8, seed=7, batches=3)
    loader = Loader(Dying(pictures, VIEW), device=torch.device("cpu"), workers=1)
    resume = ResumeFile(tmp_path / "state", "x", every_s=3600)

    epochs = itertools.count(1)

    def measure():
        if next(epochs) == 2:
            (tmp_path / "now").touch()
        return {"R@1": 0.5}

    with pytest.raises(RuntimeError, match="a process that loads pictures was killed"), resume:
        fit(
            LEARNERS["embedder"](settings, classes=6), loader, labels, sampler, settings,
            seed=7, measure=measure, resume=resume, device=torch.device("cpu"),
        )  # fmt: skip
    assert ResumeFile(tmp_path / "state", "x").read()["epoch"] == 2


def test_a_clock_that_goes_backwards_changes_nothing(pictures, tmp_path, monkeypatch):
    expected = run(pictures, ResumeFile(tmp_path / "usual", "x"))
    now = itertools.count(2e9, -3600)
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    found = run(pictures, ResumeFile(tmp_path / "backwards", "x", every_s=0.001))
    assert found.history == expected.history
    assert all(torch.equal(found.last[name], expected.last[name]) for name in expected.last)


@pytest.mark.parametrize("method", METHODS)
def test_every_methods_trunk_is_compiled_and_its_state_keeps_its_names(method, monkeypatch):
    learner = build(method)
    before = list(learner.state_dict())
    compiled = []
    monkeypatch.setattr(Trunk, "compile", lambda trunk: compiled.append(trunk))
    accelerate(learner.model, [])
    assert compiled == []
    accelerate(learner.model, ["compile"])
    assert len(compiled) == 1
    assert list(learner.state_dict()) == before


def test_cudnn_tries_its_kernels_only_when_asked(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    learner = build("embedder")
    accelerate(learner.model, ["compile"])
    assert not torch.backends.cudnn.benchmark
    accelerate(learner.model, ["cudnn_benchmark"])
    assert torch.backends.cudnn.benchmark


def test_a_learner_computes_in_the_half_precision_that_was_asked_for():
    for settings, enabled, kind in (
        ({}, False, torch.float16),
        ({"mixed_precision": True}, True, torch.float16),
        ({"acceleration": ["bfloat16"]}, True, torch.bfloat16),
    ):
        learner = build("embedder", settings)
        assert (learner.mixed_precision, learner.half_type) == (enabled, kind)


@pytest.mark.parametrize("method", METHODS)
def test_searches_between_epochs_compute_in_the_precision_of_the_training(method, monkeypatch):
    built = build(method).eval()
    images = torch.randn(4, 3, CROP, CROP, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = built.represent(built.model, images), built.searched(built.model, images)
        assert all(
            torch.equal(expected[name], found[name]) for name in expected
        )  # full precision, as recipes of the CPU
        # What a recipe with mixed precision gets on CUDA, on the processor here.
        monkeypatch.setattr(built, "half_precision", lambda images: torch.autocast("cpu", torch.bfloat16))
        halved = built.searched(built.model, images)
    assert halved.keys() == expected.keys()
    assert all(each.dtype == torch.float32 for each in halved.values())
    assert any(not torch.equal(expected[name], halved[name]) for name in expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_processor_learns_in_bfloat16_when_asked_and_never_in_float16(method):
    images, labels = batch()
    losses = {}
    for name, over in {
        "full": {},
        "mixed": {"mixed_precision": True},
        "bfloat16": {"acceleration": ["bfloat16"]},
    }.items():
        learner = build(method, over)
        loss = learner(images, labels)
        loss.backward()
        losses[name] = loss.item()
        assert {each.dtype for each in learner.parameters()} == {torch.float32}
        gradients = [each.grad for each in learner.parameters() if each.grad is not None]
        assert gradients and all(each.isfinite().all() for each in gradients)
    assert losses["mixed"] == losses["full"] != losses["bfloat16"]
    assert losses["bfloat16"] == pytest.approx(losses["full"], rel=0.05)
