"""Fixtures for all tests."""

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from projects import ROOT, Project, make_project

if TYPE_CHECKING:  # which threads it takes is said below
    import torch

PRETENDED = "LOOKALIKE_PRETENDED_CARD" in os.environ
# Modules with tests on a card: of others not even what they import has to be there (`-m gpu`).
ON_A_CARD = re.compile(r"^ *def (test_|_)?\w+\([^)]*\bdevice\b|mark\.gpu", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a call ask where its time went, and for all of what it takes a sample of."""
    told = "seed by which tests marked `sampled` are drawn, else one by chance; `all` runs all of them"
    drawn = os.environ.setdefault("LOOKALIKE_SAMPLE", str(random.randrange(10**6)))  # which other processes take over
    parser.addoption("--sample", default=drawn, metavar="SEED", help=told)
    parser.addoption("--slowest", type=int, default=0, metavar="N", help="print the seconds of the N slowest modules")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seed of samples, and the slowest modules where they are asked for: their tests, and what these need."""
    if config.option.sample != "all":
        terminalreporter.write_line(f"Samples: --sample {config.option.sample} draws the same, --sample all takes all.")
    if not config.option.slowest:
        return
    reports = [each for kind in terminalreporter.stats.values() for each in kind if isinstance(each, pytest.TestReport)]
    total: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for each in reports:
        module = each.nodeid.partition("::")[0]
        total[module] += each.duration
        calls[module] += each.duration if each.when == "call" else 0
        tests[module] += each.when == "call"
    terminalreporter.section(f"{config.option.slowest} slowest of {len(total)} modules, {total.total():.0f} s in all")
    terminalreporter.write_line("seconds  in setup  tests")
    for module, seconds in total.most_common(config.option.slowest):
        terminalreporter.write_line(f"{seconds:7.1f} {seconds - calls[module]:9.1f} {tests[module]:6d}  {module}")


def pytest_configure(config: pytest.Config) -> None:
    """Set what holds for all processes of the tests.

    With several of them, modules are handed out as they are sorted below, and not the ones with many tests first. Each
    takes one thread, as a stage does without a device: of tensors as small as those here, a second one costs more time
    than it saves, and with two processes on two cores four of them wait for each other. They compute on the processor,
    where every bit is promised; a device is for the tests marked `gpu`, which are asked for by `-m gpu`, and which
    `test_card.py` asks for in a process that pretends one.
    """
    config.option.loadscopereorder = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
    if Path("/dev/nvidiactl").exists() and "gpu" not in config.option.markexpr:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if PRETENDED:
        from pretended_card import pretend

        pretend()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of a module without a test on a card where these alone are asked for."""
    asked = config.option.markexpr == "gpu" and collection_path.match("test_*.py")
    return True if asked and not ON_A_CARD.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with modules that hold slow tests: one of them running alone at the end would leave other processes idle.

    Tests on a card are left out where nobody asked for them, and skipped where there is none.
    """
    slow = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "nightly")))}
    items.sort(key=lambda item: item.path not in slow)
    _sample(config, items)
    on_a_card = [item for item in items if item.get_closest_marker("gpu")]
    if "gpu" not in config.option.markexpr:
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=on_a_card)
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_a_card:
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test marked `sampled(n)` leave one case in n, drawn by the seed, unless some are asked for by name."""
    if config.option.sample == "all" or config.option.keyword:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for name, group in cases.items():
        kept = -(-len(group) // group[0].get_closest_marker("sampled").args[0])
        left_out |= {*random.Random(f"{config.option.sample} {name}").sample(group, len(group) - kept)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=[*left_out])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Pretend a card around a test on one."""
    if not PRETENDED:
        return (yield)
    from pretended_card import Pretended

    with Pretended() if item.get_closest_marker("gpu") else nullcontext():
        return (yield)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> "torch.device":
    """The processor and, for whoever asks by `-m gpu`, the first card."""
    import torch

    return torch.device(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the workflow with a folder of pictures."""
    return make_project(tmp_path)


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the parameter files to change, in a project of its own."""
    for part in ("params", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "params"
