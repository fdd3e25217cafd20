"""Episodes of one-shot segmentation: query, supports, attention, what was found and what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.figures.form import Check, Figure, Run
from lookalike.figures.tiles import PAGE_WIDTH, TILE_PX, cells, grid, painted, tile, under, whole
from lookalike.figures.trained import read_trained
from lookalike.files import read_json
from lookalike.models.embedder import Embedder
from lookalike.paths import episodes_of
from lookalike.segmentation.episodes import Episode, read_episodes
from lookalike.stages.segment import attend, found_regions, mask_paths, true_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

INCHES = 0.62  # side of a tile
TITLE = 11  # characters in a line above one


def data(runs: Sequence[Run], options: Mapping[str, Any]) -> pd.DataFrame:
    """The first episodes of each fold in the first list, not chosen by eye, as the best checkpoint sees them.

    Args:
        runs: of each recipe and seed the model and the metrics; the first seed is shown. Columns of their places:
            ``ways, shots, cut`` of the recipe.
        options: ``per_fold``, episodes of each fold, shared among the recipes.

    Returns:
        Rows of four kinds, in column ``panel``: by ``line``, ``episode`` and ``tile`` of the figure ``picture`` with
        its path, ``map`` with its cells and ``region``, the ``lengths`` of one ``class_number``; ``score``, the
        ``mean_iou`` of a ``recipe`` over all episodes in percent, once per seed.

    Raises:
        ValueError: for another cut than GrabCut, and a model that is no ``Embedder``.

    Source: SAM, Figs 6 and 7.
    """
    trained = [run for run in runs if run.reads == "model" and run.seed == runs[0].seed]
    measured = [run for run in runs if run.reads == "metrics"]
    frames = [
        pd.DataFrame([{"panel": "score", "recipe": run.recipe, "mean_iou": 100 * found["best"]["mean_iou_mean"]}])
        for run in measured
        for found in [read_json(run.path)]
    ]
    for run in trained:
        frames += _episodes(run, options["per_fold"] // len(trained), named=len(trained) > 1)
    return pd.concat(frames, ignore_index=True)


def _episodes(run: Run, per_fold: int, *, named: bool) -> list[pd.DataFrame]:
    if (cut := run.place["cut"]["name"]) != "grabcut":
        raise ValueError(f"{run.recipe}: cut {cut!r} gives many candidates for one picture; only 'grabcut' is shown")
    model, view, device = read_trained(run, Embedder)
    ways, shots, root = run.place["ways"], run.place["shots"], Path(run.root)
    listed = Path(episodes_of(run.manifest))  # there, as the recipe's metrics are
    drawn = read_episodes(listed, ways=ways, shots=shots, episodes=per_fold, draws=1)
    maps = attend(cast(Embedder, model), view, drawn, root, device=device)
    masks = mask_paths(run.manifest, run.root)
    return [
        _episode(run, episode, of_query, of_supports, masks[episode.query]).assign(
            line=f"fold {episode.fold}" + (f", {shots}-shot" if named else ""), episode=number
        )
        for number, (episode, of_query, of_supports) in enumerate(zip(drawn, *maps, strict=True))
    ]


def _episode(run: Run, episode: Episode, of_query: Tensor, of_supports: Tensor, mask: Path) -> pd.DataFrame:
    """One line: of several supports of a class the first is shown, of two classes the query's attention for each."""
    root, one_way = Path(run.root), len(episode.labels) == 1
    classes = [""] if one_way else [f" {number}" for number in range(1, 1 + len(episode.labels))]
    pictures = {"query": episode.query}
    pictures |= {f"support{word}": paths[0] for word, paths in zip(classes, episode.supports, strict=True)}
    maps = {f"attention{word}": (episode.query, heat) for word, heat in zip(classes, of_query, strict=True)}
    if one_way:
        maps = {
            "attention on query": maps["attention"],
            "attention on support": (episode.supports[0][0], of_supports[0, 0]),
        }
    regions = {
        "found": found_regions(episode, of_query, run.place["cut"], root)[0],
        "true": true_regions(mask, episode.labels)[:-1] == 1,
    }
    frames = [
        pd.DataFrame(
            [{"panel": "picture", "tile": name, "picture": str(root / path)} for name, path in pictures.items()]
        )
    ]
    for name, (path, heat) in maps.items():
        frames.append(cells(heat, panel="map", tile=name, picture=str(root / path)))
    for name, found in regions.items():
        of_classes = [lengths(region) for region in _small(found)]
        about = {"panel": "region", "tile": name, "picture": str(root / episode.query)}
        frames.append(pd.DataFrame({**about, "class_number": range(len(of_classes)), "lengths": of_classes}))
    return pd.concat(frames, ignore_index=True)


def _small(regions: Tensor) -> NDArray[np.bool_]:
    """Regions ``(W, H, W)`` at the size of a tile."""
    size = (TILE_PX, TILE_PX)
    small = torch.nn.functional.interpolate(regions[None].float(), size=size, mode="nearest-exact")[0] > 0
    return small.numpy()


def lengths(region: NDArray[np.bool_]) -> str:
    """A region ``(h, w)``, line by line, as the lengths of its parts: outside, inside, outside, ..."""
    flat = region.ravel()
    changes = np.flatnonzero(np.diff(flat, prepend=False))
    return " ".join(map(str, np.diff([0, *changes, flat.size])))


def region(text: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """The region that `lengths` wrote down."""
    parts = [int(length) for length in text.split()]
    return np.repeat(np.arange(len(parts)) % 2 == 1, parts).reshape(shape)


def draw(frame: pd.DataFrame) -> Picture:
    """A line per episode, a column per tile."""
    from matplotlib.figure import Figure as Canvas

    shown = frame[frame["panel"] != "score"]
    tiles, episodes = list(dict.fromkeys(shown["tile"])), shown.groupby(["line", "episode"], sort=False)
    size = (min(PAGE_WIDTH, INCHES * (len(tiles) + 0.6)), INCHES * len(episodes) + 0.4)
    figure = Canvas(figsize=size, layout="constrained")
    axes = figure.subplots(len(episodes), len(tiles), squeeze=False, gridspec_kw={"wspace": 0.02, "hspace": 0.02})
    for axis, name in zip(axes[0], tiles, strict=True):
        axis.set_title(fill(str(name), TITLE))
    for row, ((line, _), of_episode) in zip(axes, episodes, strict=True):
        for axis, (_, rows) in zip(row, of_episode.groupby("tile", sort=False), strict=True):
            tile(axis, _drawn(rows))
        row[0].set_ylabel(str(line).replace(", ", "\n"))
    return figure


def _drawn(rows: pd.DataFrame) -> NDArray[np.uint8]:
    """One tile from its rows."""
    picture = whole(rows["picture"].iloc[0])
    panel = rows["panel"].iloc[0]
    if panel == "map":
        return under(picture, grid(rows))
    if panel == "region":
        return painted(picture, np.stack([region(text, picture.shape[:2]) for text in rows["lengths"]]))
    return picture


def checks(frame: pd.DataFrame) -> list[Check]:
    """The mean IoU of what is shown, of all episodes; the paper claims nothing that could be counted here."""
    scores = frame[frame["panel"] == "score"].groupby("recipe", sort=False)["mean_iou"]
    return [
        Check(
            f"mean IoU of `{recipe}` over all episodes: {values.mean():.1f} % (n = {len(values)})", None, claimed=False
        )
        for recipe, values in scores
    ]


SEGMENTATIONS = Figure(data, draw, checks)
