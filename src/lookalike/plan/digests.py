"""Digests of the code behind the results of a recipe."""

from __future__ import annotations

from collections.abc import Iterable

from lookalike.methods import METHODS
from lookalike.settings.layers import Tree
from lookalike.sources.code import code_digest


def recipe_digest(entry_points: Iterable[str], sections: Tree) -> str:
    """Digest of the code that makes a result of a recipe: that of a stage, and of what its method learns by.

    Args:
        entry_points: functions that the stage starts from, for `code_digest`.
        sections: the recipe's sections, as far as the stage reads them.
    """
    learner = METHODS[sections["train"]["method"]["name"]].learner
    return code_digest([*entry_points, learner], sections)
