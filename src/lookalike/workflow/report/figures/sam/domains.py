"""Similarity attention on triplets of the data set that a model was trained on, and of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
import torch

from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.embedder import Embedder
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import of_each, read_pictures, read_trained, share_on
from lookalike.workflow.report.figures.parts.tiles import PAGE_WIDTH, cells, colour_bar, grid, photograph, tile, under
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model, Natural

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

ROLES = ("anchor", "positive", "negative")
EVEN = 1.0  # points between the attention on objects and their area below which they differ little


class Options(Model):
    """Of the figure."""

    triplets: Count
    seed: Natural


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Maps of the first triplet of each data set by every model, and where those of many triplets lie.

    Args:
        runs: models, each an ``Embedder``, one of every data set for each seed.
        options: ``triplets`` of each data set, and ``seed`` of their draw.

    Returns:
        Rows of three kinds, in column ``panel``: ``picture`` of a ``tested`` data set and ``role``; ``map``, its cells
        as the model ``trained`` on a data set sees it, with the first seed; ``share``, for each ``trained, tested`` and
        training ``seed`` the mean over all pictures of ``on_object``, share of the attention on the object, beside
        ``object_area``, that of an even map, where the data set has masks or boxes.

    Source: SAM, Fig. 4.
    """
    models = [(run, *read_trained(run, Embedder)) for run in runs]
    drawn: set[tuple[str, str]] = set()
    frames = []
    for tested, _, view, device in models:
        if (pictured := (tested.dataset, tested.manifest)) in drawn:
            continue
        drawn.add(pictured)
        # Pictures of classes that a seed has trained on are for seeds of the other half.
        seeds = {run.seed for run in runs if (run.dataset, run.manifest) == pictured}
        pictures = read_pictures(tested, view)
        triplets = draw_triplets(pictures.labels, options.triplets, options.seed)
        rows, positions = torch.unique(triplets, return_inverse=True)  # (n,) pictures, (3, T) positions among them
        of_tested: dict[str, Any] = {"tested": tested.dataset}
        shown = [pictures.shown(row) for row in triplets[:, 0].tolist()]
        if runs[0].seed in seeds:
            frames.append(
                pd.DataFrame(
                    [
                        {"panel": "picture", **of_tested, "role": role, **picture}
                        for role, picture in zip(ROLES, shown, strict=True)
                    ]
                )
            )
        objects = pictures.objects(rows.tolist())
        for run, trained, _, _ in (each for each in models if each[0].seed in seeds):
            embedder = cast(Embedder, trained)
            attention = SimilarityAttention(*trunk_and_head(embedder))
            feature_maps = of_each(attention.trunk, pictures, rows.tolist(), device)  # (n, C, h, w)
            # (3, T, h, w), each map from the three pictures of its triplet.
            maps = attention.settings.attention(feature_maps[positions].to(device), attention.head, "triplet").cpu()
            by = {"trained": run.dataset, **of_tested, "seed": run.seed}
            if run.seed == runs[0].seed:
                frames += [cells(maps[number, 0], panel="map", role=role, **by) for number, role in enumerate(ROLES)]
            if objects is not None:
                inside = objects[positions].flatten(0, 1)  # (3 T, H, W)
                heat = heat_map(maps, (inside.shape[1], inside.shape[2])).flatten(0, 1)  # (3 T, H, W)
                shares = {
                    "on_object": float(share_on(heat, inside).nanmean()),
                    "object_area": float(inside.double().mean()),
                }
                frames.append(pd.DataFrame([{"panel": "share", **by, **shares}]))
    return pd.concat(frames, ignore_index=True).astype({"seed": "Int64"})


def _shares(frame: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Rows of each pair of the data set that was trained on and the one that is looked at."""
    of_pair = frame[frame["panel"] == "share"].groupby(["trained", "tested"])
    return [((str(trained), str(tested)), rows) for (trained, tested), rows in of_pair]


def draw(frame: pd.DataFrame) -> Picture:
    """A block of columns per tested data set: its triplet, and the maps of each model; shares in the last row."""
    from matplotlib.figure import Figure as Canvas

    of_panel = dict(iter(frame.groupby("panel")))
    names = [str(name) for name in of_panel["picture"]["tested"].unique()]
    figure = Canvas(figsize=(PAGE_WIDTH, 1.2 * (1 + len(names)) + 0.7), layout="constrained")
    axes = figure.subplots(1 + len(names), len(ROLES) * len(names))
    shares = {pair: 100 * rows[["on_object", "object_area"]].mean() for pair, rows in _shares(frame)}
    for block, tested in enumerate(names):
        columns = axes[:, len(ROLES) * block : len(ROLES) * (block + 1)]
        for column, role in enumerate(ROLES):
            pictures, maps = (
                rows[(rows["tested"] == tested) & (rows["role"] == role)]
                for rows in (of_panel["picture"], of_panel["map"])
            )
            picture = photograph(pictures)
            tile(columns[0, column], picture)
            columns[0, column].set_title(role)
            for axis, trained in zip(columns[1:, column], names, strict=True):
                tile(axis, under(picture, grid(maps[maps["trained"] == trained])))
        for axis, trained in zip(columns[1:, 1], names, strict=True):
            if (trained, tested) in shares:
                share, area = shares[trained, tested]
                axis.set_xlabel(f"over many triplets {share:.0f} % on the object, by chance {area:.0f} %", labelpad=2)
    axes[0, 0].set_ylabel("picture")
    for axis, trained in zip(axes[1:, 0], names, strict=True):
        axis.set_ylabel("model of\n" + trained.removeprefix("figurines_"))
    colour_bar(figure, axes)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the attention lies on the object, also of a data set that the model was not trained on."""
    checked = []
    for (trained, tested), rows in _shares(frame):
        row = 100 * rows[["on_object", "object_area"]].mean()
        more = 100 * (rows.set_index("seed")["on_object"] - rows.set_index("seed")["object_area"])
        domain = "its own domain" if trained == tested else "another domain"
        says = (
            f"the model of {trained} attends to the objects of {tested}, {domain}: {row['on_object']:.1f} % of the "
            f"attention lies on them, which are {row['object_area']:.1f} % of the area"
        )
        checked.append(over_seeds(says, more, margin=EVEN))
    return checked


DOMAINS = Figure(data, draw, checks, example=True)
