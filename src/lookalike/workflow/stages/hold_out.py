"""Hold out some of the training classes, so that an epoch can be chosen without a look at the test classes."""

from __future__ import annotations

from pathlib import Path

from lookalike.workflow.data.manifest import read_manifest, write_manifest
from lookalike.workflow.data.splits import held_out as without_some


def hold_out(manifest: str, *, held_out: str, seed: int | None = None) -> None:
    """Write the training pictures of a split as a split of their own: most classes to train, the others to test.

    Args:
        held_out: CSV to write; its paths are relative to the same root.
        seed: seed of the choice of classes; ``None`` for the last ones.

    Raises:
        ValueError: as `lookalike.workflow.data.splits.held_out`.
    """
    write_manifest(without_some(read_manifest(Path(manifest)), seed=seed, source=manifest), Path(held_out))
