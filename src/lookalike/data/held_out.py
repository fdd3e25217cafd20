"""Training classes that are held out, so that an epoch can be chosen without a look at the test classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

SHARE = 0.2  # of the training classes
LEAST_CLASSES = 4  # that are needed to hold some out


def held_out(frame: pd.DataFrame, *, seed: int | None, source: str) -> pd.DataFrame:
    """The training pictures of a split as a split of their own: most classes to train, the others to test.

    Args:
        frame: rows of the split with the columns ``role`` and ``label``.
        seed: seed of the choice of classes; ``None`` for the last ones, the same in every comparison.
        source: file of the split, for messages.

    Raises:
        ValueError: if there are fewer than `LEAST_CLASSES` training classes, of which at least two are held out.
    """
    training = frame[frame["role"] == "train"]
    classes = np.sort(training["label"].unique())
    if len(classes) < LEAST_CLASSES:
        least = f"to hold some out it takes at least {LEAST_CLASSES}"
        raise ValueError(f"{source} has {len(classes)} training classes; {least}")
    drawn = classes[::-1] if seed is None else np.random.default_rng(seed).permutation(classes)
    held = drawn[: held_out_classes(len(classes))]
    return training.assign(role=np.where(training["label"].isin(held), "test", "train"))


def held_out_classes(classes: int) -> int:
    """How many of so many training classes are held out."""
    return max(2, round(SHARE * classes))
