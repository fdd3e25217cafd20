"""Episodes: a query picture and support pictures of classes that it may show, drawn once and kept as a list.

The rule, for each draw and each fold with a generator seeded by both: a class of the fold, evenly; a query among the
test pictures that show it; ``shots`` supports among the others that do; another class of the fold, evenly; and as many
supports of it. All pictures of an episode differ. One way reads the first class of a row, one shot the first support.
So all recipes of as many ways see the same queries, and a longer list begins with the shorter one.

Two ways have a list of their own, whose queries show both classes: the pair is drawn evenly among those that some test
picture shows together, the query among these pictures.

The printed lists were never published, so this one is ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lookalike.base.files import file_digest, replacing, write_text


@dataclass(frozen=True)
class Episode:
    """One picture to segment.

    Attributes:
        draw: number of its list.
        fold: fold of its classes.
        query: path of the picture.
        labels: its classes, ascending, so that their order does not tell which one the query shows for certain.
        supports: paths for each class, in that order, as many for each.
    """

    draw: int
    fold: int
    query: str
    labels: tuple[int, ...]
    supports: tuple[tuple[str, ...], ...]

    @property
    def pictures(self) -> tuple[str, ...]:
        """Paths of the query and all supports."""
        return (self.query, *(path for paths in self.supports for path in paths))


def draw_episodes(test: pd.DataFrame, *, shots: int, episodes: int, draws: int, ways: int = 1) -> pd.DataFrame:
    """Draw the list of so many ways by the rule of this module.

    Args:
        test: rows of a manifest with ``path``, ``label`` and ``fold``, one per picture and class that it shows.
        shots: supports of each class.
        episodes: number of each fold in each draw.
        draws: lists of episodes.
        ways: classes that a query shows for certain, 1 or 2.

    Returns:
        A row per episode: ``draw, fold, episode, query, label, support_1, ..., other, other_support_1, ...``.

    Raises:
        ValueError: if a fold has a single class, or for two ways no picture with two, or a class too few pictures.
    """
    rows = []
    for fold in sorted(set(test["fold"].tolist())):
        of_fold = test[test["fold"] == fold]
        shown = {
            label: sorted(of_fold.loc[of_fold["label"] == label, "path"]) for label in set(of_fold["label"].tolist())
        }
        if len(shown) < 2:
            raise ValueError(f"fold {fold} has test pictures of {len(shown)} class, an episode needs two")
        together = _together(shown)
        if ways == 2 and not together:
            raise ValueError(f"fold {fold} has no test picture that shows two of its classes, as two ways need")
        for draw in range(draws):
            generator = np.random.default_rng([draw, fold] if ways == 1 else [draw, fold, ways])
            for number in range(episodes):
                if ways == 1:
                    label, other = (int(each) for each in generator.permutation(sorted(shown))[:2])
                    query, *supports = _chosen(shown, label, 1 + shots, set(), fold, generator)
                else:
                    label, other = list(together)[generator.integers(len(together))]
                    query = generator.choice(together[label, other])
                    supports = _chosen(shown, label, shots, {query}, fold, generator)
                others = _chosen(shown, other, shots, {query, *supports}, fold, generator)
                rows.append((draw, fold, number, query, label, *supports, other, *others))
    places = range(1, shots + 1)
    own_columns, other_columns = ([f"{kind}support_{nth}" for nth in places] for kind in ("", "other_"))
    columns = ["draw", "fold", "episode", "query", "label", *own_columns, "other", *other_columns]
    return pd.DataFrame(rows, columns=columns).sort_values(["draw", "fold", "episode"], ignore_index=True)


def write_episodes(frame: pd.DataFrame, path: Path, digest: Path) -> None:
    """Write a list as CSV, and beside it its SHA-256 as ``sha256sum`` does."""
    with replacing(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
    write_text(digest, f"{file_digest(path)}  {path.name}\n")


def read_episodes(path: Path, *, ways: int, shots: int, episodes: int, draws: int) -> list[Episode]:
    """The part of a list that a recipe asks for, by draw, fold and number.

    Args:
        path: CSV that `write_episodes` wrote.
        ways: classes of an episode, 1 or 2.
        shots: supports of each class.
        episodes: number of each fold in each draw.
        draws: lists of episodes.

    Raises:
        ValueError: if the list is shorter.
    """
    frame = pd.read_csv(path)
    held = {
        "shots": sum(str(column).startswith("support_") for column in frame),
        "episodes": int(frame["episode"].max()) + 1,
        "draws": int(frame["draw"].max()) + 1,
    }
    for name, wanted in {"shots": shots, "episodes": episodes, "draws": draws}.items():
        if wanted > held[name]:
            raise ValueError(f"{path} has {held[name]} {name}, {wanted} are asked for")
    kept = frame[(frame["episode"] < episodes) & (frame["draw"] < draws)]
    return [_episode(row, ways, shots) for row in kept.to_dict("records")]


def _episode(row: Mapping[Hashable, Any], ways: int, shots: int) -> Episode:
    classes = sorted((int(row[name]), prefix) for name, prefix in (("label", ""), ("other", "other_"))[:ways])
    supports = tuple(tuple(str(row[f"{prefix}support_{nth}"]) for nth in range(1, shots + 1)) for _, prefix in classes)
    labels = tuple(label for label, _ in classes)
    return Episode(int(row["draw"]), int(row["fold"]), str(row["query"]), labels, supports)


def _together(shown: Mapping[int, list[str]]) -> dict[tuple[int, int], list[str]]:
    """Pictures that show two classes, for each ordered pair of classes that has any."""
    pairs = {pair: sorted({*shown[pair[0]]} & {*shown[pair[1]]}) for pair in permutations(sorted(shown), 2)}
    return {pair: pictures for pair, pictures in pairs.items() if pictures}


def _chosen(
    shown: dict[int, list[str]], label: int, count: int, taken: set[str], fold: object, generator: np.random.Generator
) -> list[str]:
    free = [path for path in shown[label] if path not in taken]
    if len(free) < count:
        raise ValueError(
            f"fold {fold}: class {label} has {len(free)} test pictures that its episode does not show already, "
            f"{count} are needed"
        )
    return [free[index] for index in generator.choice(len(free), count, replace=False)]
