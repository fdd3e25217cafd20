from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from figurines import PRESETS, Preset, write_figurines


def small(preset: str) -> Preset:
    classes = {"birds": 6, "vehicles": 6, "products": 12, "shop": 6, "people": 6, "wild": 11, "scenes": 2}[preset]
    images = {
        "birds": (3, 4),
        "vehicles": (3, 4),
        "products": (2, 3),
        "shop": (4, 5),
        "people": (4, 5),
        "wild": (2, 3),
        "scenes": (14,),
    }[preset]
    return replace(PRESETS[preset], train_classes=classes, test_classes=classes, images_per_class=images)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Root of a small data set of a preset, written once."""
    roots: dict[str, Path] = {}

    def root_of(preset: str) -> Path:
        if preset not in roots:
            roots[preset] = tmp_path_factory.mktemp("figurines") / preset
            write_figurines(preset, roots[preset], seed=3, parameters=small(preset))
        return roots[preset]

    return root_of


@pytest.fixture(scope="session")
def shrunk() -> Callable[[str], Preset]:
    return small
