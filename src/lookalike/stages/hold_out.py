"""Hold out some of the training classes, so that an epoch can be chosen without a look at the test classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lookalike.data.manifest import read_manifest, write_manifest

SHARE = 0.2  # of the training classes
LEAST_CLASSES = 4  # that are needed to hold some out


def hold_out(manifest: str, *, held_out: str, seed: int) -> None:
    """Write the training pictures of a split as a split of their own: most classes to train, the others to test.

    Args:
        manifest: CSV of the split.
        held_out: CSV to write; its paths are relative to the same root.
        seed: of the choice of classes.

    Raises:
        ValueError: if there are fewer than four training classes, of which two are to be held out at least.
    """
    frame = read_manifest(Path(manifest))
    training = frame[frame["role"] == "train"]
    classes = np.sort(training["label"].unique())
    if len(classes) < LEAST_CLASSES:
        least = f"to hold some out it takes at least {LEAST_CLASSES}"
        raise ValueError(f"{manifest} has {len(classes)} training classes; {least}")
    chosen = np.random.default_rng(seed).permutation(classes)[: held_out_classes(len(classes))]
    write_manifest(training.assign(role=np.where(training["label"].isin(chosen), "test", "train")), Path(held_out))


def held_out_classes(classes: int) -> int:
    """How many of so many training classes are held out."""
    return max(2, round(SHARE * classes))
