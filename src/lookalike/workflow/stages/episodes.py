"""Draw the episodes of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lookalike.segmentation.episodes import draw_episodes, write_episodes
from lookalike.workflow.data import read_manifest


def episodes(*, manifest: str, listed: str, digest: str, longest: Mapping[str, int], ways: int = 1) -> None:
    """Draw from the test pictures and write the list and its SHA-256.

    Args:
        manifest: CSV of the split, with ``fold``.
        listed: CSV to write.
        digest: text to write.
        longest: ``shots``, supports of each class; ``episodes`` of each fold in each draw; ``draws``.
        ways: classes that a query shows for certain, 1 or 2.

    Raises:
        ValueError: if the split has no folds, and as `draw_episodes`.
    """
    frame = read_manifest(Path(manifest))
    if "fold" not in frame:
        raise ValueError(f"{manifest} has no column fold, which data of layout 'pascal5i' have")
    test = frame[frame["role"] == "test"]
    drawn = draw_episodes(test, **longest, ways=ways)
    write_episodes(drawn, Path(listed), Path(digest))
