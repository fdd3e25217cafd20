"""Episodes of one-shot segmentation: query, supports, attention, the regions found and the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.base.files import read_json
from lookalike.base.paths import episodes_of
from lookalike.metrics.names import REPORTED
from lookalike.models.embedder import Embedder
from lookalike.segmentation.counts import region_counts
from lookalike.segmentation.cuts import TRIVIAL
from lookalike.segmentation.episodes import Episode, read_episodes
from lookalike.workflow.data.readers.pascal5i import CLASSES
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import read_trained
from lookalike.workflow.report.figures.parts.tiles import (
    PAGE_WIDTH,
    TILE_PX,
    cells,
    colour_bar,
    grid,
    painted,
    tile,
    under,
    whole,
)
from lookalike.workflow.report.figures.parts.trends import always
from lookalike.workflow.settings.model import Count, Model
from lookalike.workflow.training.segmentation import attend, found_regions, mask_paths, true_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

RATIOS = {"mean_iou": "mean IoU", "binary_iou": "binary IoU"}
INCHES = 0.7  # side of a tile, below which a word of `WORDS` letters has its place
TITLE, WORDS = 11, 12  # characters in a line above a tile, and below
WHOLE = 0.95  # share of a picture from which a region counts as all of it
TRAITS = "traits.csv"  # of figurines: what their classes look like


class Options(Model):
    """Of the figure."""

    per_fold: Count


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """The first episodes of each fold in the first list, not chosen by eye, as the last epoch sees them.

    Args:
        runs: model and metrics of each recipe and seed, and the metrics of the answers that need no attention;
            the first seed is shown. Columns of their ``place``: ``ways, shots, cut`` of the recipe.
        options: ``per_fold``, episodes of each fold, shared among the recipes.

    Returns:
        Rows of four kinds, in column ``panel``: by ``line``, ``episode`` and ``tile`` of the figure ``picture`` with
        its path, ``map`` with its cells and ``region``, the ``lengths`` of one ``class_number``, and what stands under
        the tile, ``words``: classes, and the IoU of what is found and of the whole picture; ``score``, ``mean_iou`` and
        ``binary_iou`` of a ``recipe`` over all episodes in percent per seed; ``answer`` where it is a trivial one.

    Raises:
        ValueError: for another cut than GrabCut, and a model that is no ``Embedder``.

    Source: SAM, Figs 6 and 7.
    """
    trained = [run for run in runs if run.reads == "model" and run.seed == runs[0].seed]
    measured = [run for run in runs if run.reads == "metrics"]
    frames = [
        pd.DataFrame(
            [
                {"panel": "score", "recipe": run.recipe, "seed": run.seed}
                | {"answer": TRIVIAL.get(run.place["cut"]["name"], "")}
                | {ratio: 100 * metrics[REPORTED][f"{ratio}_mean"] for ratio in RATIOS}
            ]
        )
        for run in measured
        for metrics in [read_json(run.path)]
    ]
    for run in trained:
        frames += _episodes(run, options.per_fold // len(trained), named=len(trained) > 1)
    return pd.concat(frames, ignore_index=True)


def _episodes(run: Run, per_fold: int, *, named: bool) -> list[pd.DataFrame]:
    if (cut := run.place["cut"]["name"]) != "grabcut":
        raise ValueError(f"{run.recipe}: cut {cut!r} gives many candidates for one picture; only 'grabcut' is shown")
    model, view, device = read_trained(run, Embedder)
    ways, shots, root = run.place["ways"], run.place["shots"], Path(run.root)
    listed = Path(episodes_of(run.manifest, ways))  # there, as the recipe's metrics are
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
    root, one_way, names = Path(run.root), len(episode.labels) == 1, class_names(Path(run.root))
    classes = [""] if one_way else [f" {number}" for number in range(1, 1 + len(episode.labels))]
    pictures = {"query": episode.query}
    pictures |= {f"support{word}": paths[0] for word, paths in zip(classes, episode.supports, strict=True)}
    maps = {f"attention{word}": (episode.query, heat) for word, heat in zip(classes, of_query, strict=True)}
    if one_way:
        maps = {
            "attention on query": maps["attention"],
            "attention on support": (episode.supports[0][0], of_supports[0, 0]),
        }
    true = true_regions(mask, episode.labels)  # a map per class, and their union
    found = found_regions(episode, of_query, run.place["cut"], root)[0]
    regions = {"found": found, "true": true[:-1] == 1}
    shown = [names[label - 1] for label, region in zip(episode.labels, regions["true"], strict=True) if region.any()]
    words = dict(zip(pictures, [" and ".join(shown), *(names[label - 1] for label in episode.labels)], strict=True))
    words["found"] = f"IoU {_percent(found, true[:-1])}{_extent(found)}"
    words["true"] = f"all: {_percent(torch.ones_like(found), true[:-1])}"
    frames = [
        pd.DataFrame(
            [
                {"panel": "picture", "tile": name, "picture": str(root / path), "words": words[name]}
                for name, path in pictures.items()
            ]
        )
    ]
    for name, (path, heat) in maps.items():
        frames.append(cells(heat, panel="map", tile=name, picture=str(root / path)))
    for name, of_name in regions.items():
        of_classes = [lengths(region) for region in _small(of_name)]
        identity = {"panel": "region", "tile": name, "picture": str(root / episode.query), "words": words[name]}
        frames.append(pd.DataFrame({**identity, "class_number": range(len(of_classes)), "lengths": of_classes}))
    return pd.concat(frames, ignore_index=True)


def class_names(root: Path) -> list[str]:
    """Of the classes of a data set in the layout of PASCAL-5i, in order: those of VOC, or of the figurines in it."""
    if (root / TRAITS).is_file():
        return [str(name).lower().replace("_", " ") for name in pd.read_csv(root / TRAITS)["figurine"]]
    return list(CLASSES)


def _percent(regions: Tensor, true: Tensor) -> str:
    """IoU of each class in one picture."""
    counts = region_counts(regions, true).double()
    return ", ".join(f"{100 * each[0] / each[:3].sum().clamp_min(1):.0f}" for each in counts) + " %"


def _extent(regions: Tensor) -> str:
    """Said of regions that are no region: empty ones, and whole pictures."""
    covered = regions.any(dim=0).double().mean()
    return "\n(nothing)" if covered == 0 else "\n(all of it)" if covered >= WHOLE else ""


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
    size = (min(PAGE_WIDTH, INCHES * (len(tiles) + 1)), (INCHES + 0.22) * len(episodes) + 0.7)
    figure = Canvas(figsize=size, layout="constrained")
    axes = figure.subplots(len(episodes), len(tiles), squeeze=False, gridspec_kw={"wspace": 0.02, "hspace": 0.02})
    for axis, name in zip(axes[0], tiles, strict=True):
        axis.set_title(fill(str(name), TITLE))
    for row, ((line, _), of_episode) in zip(axes, episodes, strict=True):
        for axis, (_, rows) in zip(row, of_episode.groupby("tile", sort=False), strict=True):
            tile(axis, _drawn(rows))
            if isinstance(words := rows["words"].iloc[0], str):
                axis.set_xlabel("\n".join(fill(line, WORDS) for line in words.splitlines()), labelpad=1)
        row[0].set_ylabel(str(line).replace(", ", "\n"))
    colour_bar(figure, axes)
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
    """Whether more is found than by answers that do not look: the larger mean IoU, and the larger binary IoU."""
    scores = frame[frame["panel"] == "score"].fillna({"answer": ""})
    given = scores[scores["answer"] != ""].groupby("answer")[list(RATIOS)].mean()
    checked = []
    for recipe, of_recipe in scores[scores["answer"] == ""].groupby("recipe", sort=False):
        ours = of_recipe[list(RATIOS)].mean()
        compared = "; ".join(
            f"{name} {ours[ratio]:.1f} % against "
            + " and ".join(f"{values[ratio]:.1f} % of “{answer}”" for answer, values in given.iterrows())
            for ratio, name in RATIOS.items()
        )
        says = f"`{recipe}` reaches more than answers that do not look, over all episodes: {compared}"
        reached = of_recipe.set_index("seed")[list(RATIOS)] - given.max()
        checked.append(always([reached[ratio] for ratio in RATIOS], says))
    return checked


SEGMENTATIONS = Figure(data, draw, checks, example=True)
