"""DIML's matching between the locations of two pictures, and the similarity that it adds to a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lookalike.methods.diml.matching import Match
from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.representation import Representation
from lookalike.models.embedder import Embedder
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import read_pictures, read_trained
from lookalike.workflow.report.figures.parts.tiles import TILE_PX, cells, colour_bar, grid, photograph, tile, under
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model, Natural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

PAIRS = ("positive", "negative")
SIDES = ("query", "gallery")
NUMBERS = ("mean", "above", "mass_error", "on_object", "object_area")  # of all pairs of a kind
LARGE = 0.1  # margin between structural and cosine similarity that this project calls large


class Options(Model):
    """Of the figure."""

    triplets: Count
    seed: Natural
    shown: Natural
    side: Count
    bins: Count


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Some positive pairs in detail, and both similarities of many pairs.

    Args:
        runs: models of one data set, each an ``Embedder``; of several the first is shown.
        options: ``triplets`` and ``seed`` of their draw; ``shown``, how many of the first are drawn with their positive
            pair; ``side`` of the grid; ``bins`` of the histogram.

    Returns:
        Rows of four kinds, in column ``panel``: ``picture`` of a shown ``pair`` and ``side``; ``map``, the cells of
        its marginal; ``arrow`` from cell ``start`` of the query to cell ``end`` of the gallery picture, counted row by
        row, with ``contribution`` (``large`` or ``small``), ``relative_plan`` (G^4 T) and ``similarity`` (S), and of
        the pair ``cosine`` and ``structural``; ``difference``, a histogram for each ``kind`` of pair with ``value,
        share`` and of the whole ``mean, above`` (share above 0), ``mass_error`` (largest ``|sum T - 1|``),
        ``on_object`` (share of the query's marginal on the object) and ``object_area``.

    Source: DIML, Fig. 5.
    """
    frames = [_of_run(run, options, shown=options.shown if number == 0 else 0) for number, run in enumerate(runs)]
    return pd.concat(frames, ignore_index=True)


def _of_run(run: Run, options: Options, *, shown: int) -> pd.DataFrame:
    trained, view, device = read_trained(run, Embedder)
    model, pictures = DIML(trained, "trunk", options.side), read_pictures(run, view)
    triplets = draw_triplets(pictures.labels, options.triplets, options.seed)
    rows, positions = torch.unique(triplets, return_inverse=True)  # (n,) pictures, (3, T) positions among them
    with torch.no_grad():
        seen = Representation.cat([model(images) for images, _ in pictures.tensors(rows.tolist(), device)])
        others = positions[1:].T.to(device)  # (T, 2)
        first = positions[0].to(device)  # (T,)
        match = model.matcher.matching(
            seen.regions[first], seen.global_vector[first], seen.regions[others], seen.global_vector[others]
        )
        cosine = (seen.global_vector[first][:, None] * seen.global_vector[others]).sum(dim=-1)  # (T, 2)
    frames = []
    for pair in range(shown):
        row = triplets[:2, pair].tolist()
        picture_rows = [
            {"panel": "picture", "pair": pair, "side": side, **pictures.shown(index)}
            for side, index in zip(SIDES, row, strict=True)
        ]
        frames.append(pd.DataFrame(picture_rows))
        for side, marginal in zip(SIDES, (match.query_marginal, match.gallery_marginal), strict=True):
            heat = marginal[pair, 0].view(options.side, options.side)  # (S, S)
            frames.append(cells(heat, panel="map", pair=pair, side=side))
        values = {"cosine": float(cosine[pair, 0]), "structural": float(match.similarity[pair, 0])}
        frames.append(_arrows(match, pair).assign(panel="arrow", pair=pair, **values))
    objects = pictures.objects(triplets[0].tolist())
    frames.append(_differences(match, cosine, objects, options.side, options.bins))
    return pd.concat(frames, ignore_index=True).assign(dataset=run.dataset, seed=run.seed)


def _arrows(match: Match, pair: int) -> pd.DataFrame:
    """The pair of locations that contributes most, and where the plan sends the location that counts least."""
    plan, similarity = match.plan[pair, 0], match.correlation[pair, 0]  # (R, R) each
    width = plan.shape[1]
    most = int((plan * similarity).argmax())
    least = int(match.query_marginal[pair, 0].argmin())
    rows = []
    for contribution, start, end in (
        ("large", most // width, most % width),
        ("small", least, int(plan[least].argmax())),
    ):
        numbers = {"relative_plan": float(plan[start, end]) * plan.numel(), "similarity": float(similarity[start, end])}
        rows.append({"contribution": contribution, "start": start, "end": end, **numbers})
    return pd.DataFrame(rows)


def _differences(match: Match, cosine: Tensor, objects: Tensor | None, side: int, bins: int) -> pd.DataFrame:
    """Histograms of structural less cosine similarity, on bins that both kinds of pairs share."""
    difference = (match.similarity - cosine).cpu().double().numpy()  # (T, 2)
    edges = np.linspace(difference.min(), difference.max(), bins + 1)
    mass_error = float((match.plan.sum(dim=(-2, -1)) - 1).abs().max())
    of_all: dict[str, Any] = {"mass_error": mass_error}
    if objects is not None:
        inside = torch.nn.functional.adaptive_avg_pool2d(objects[:, None].double(), side).flatten(1)  # (T, R)
        marginal = match.query_marginal[:, 0].cpu().double()  # (T, R)
        of_all["on_object"] = float((marginal * inside).sum(dim=1).mean())
        of_all["object_area"] = float(inside.mean())
    frames = []
    for column, kind in enumerate(PAIRS):
        values = difference[:, column]
        columns = {"value": (edges[1:] + edges[:-1]) / 2, "share": np.histogram(values, edges)[0] / len(values)}
        frames.append(pd.DataFrame({**columns, "kind": kind, "mean": values.mean(), "above": (values > 0).mean()}))
    return pd.concat(frames).assign(panel="difference", **of_all)


def draw(frame: pd.DataFrame) -> Picture:
    """A row per shown pair: both pictures, and under the marginals the arrows; below the histogram."""
    from matplotlib.figure import Figure as Canvas

    from lookalike.workflow.report.figures.parts.style import LOOKS, WIDTH

    of_panel = dict(iter(frame.groupby("panel")))
    shown = sorted(of_panel["picture"]["pair"].unique())
    figure = Canvas(figsize=(WIDTH, 1.1 * len(shown) + 2.3), layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.1 * len(shown) + 0.6, 1.7))[:, 0]
    axes = above.subplots(len(shown), 4, squeeze=False)
    for row, pair in zip(axes, shown, strict=True):
        of_pair = {panel: rows[rows["pair"] == pair] for panel, rows in of_panel.items()}
        for column, side in enumerate(SIDES):
            picture = photograph(of_pair["picture"][of_pair["picture"]["side"] == side])
            heat = grid(of_pair["map"][of_pair["map"]["side"] == side])
            tile(row[column], picture)
            tile(row[2 + column], under(picture, heat))
        arrows = of_pair["arrow"]
        _connect(row[2], row[3], arrows, len(heat))
        row[0].set_ylabel(f"cosine {arrows['cosine'].iloc[0]:.2f}\nstructural {arrows['structural'].iloc[0]:.2f}")
    for axis, title in zip(
        axes[0], ("query", "gallery", "marginal\nof the query", "marginal\nof the gallery"), strict=True
    ):
        axis.set_title(title)
    colour_bar(above, axes)
    panel, first = below.subplots(1, 1), of_panel["difference"]
    first = first[first["seed"] == first["seed"].iloc[0]]
    for look, (kind, bars) in zip((LOOKS[4], LOOKS[2]), first.groupby("kind"), strict=True):
        panel.step(
            bars["value"],
            100 * bars["share"],
            where="mid",
            color=look.colour,
            linestyle=look.line,
            label=f"{kind} pairs",
        )
    panel.set_xlabel("structural minus cosine similarity")
    panel.set_ylabel("share of the pairs (%)")
    panel.set_ylim(bottom=0)
    panel.legend()
    return figure


def _connect(left: Axes, right: Axes, arrows: pd.DataFrame, side: int) -> None:
    """Arrows between cells of two pictures, labelled with plan and similarity."""
    from matplotlib.patches import ConnectionPatch
    from matplotlib.patheffects import Normal, Stroke

    looks = {"large": ("#D55E00", "-", right, "most"), "small": ("#0072B2", "--", left, "least")}
    for arrow in arrows.to_dict("records"):
        colour, line, labelled, word = looks[arrow["contribution"]]
        ends = [divmod(int(arrow[end]), side) for end in ("start", "end")]
        start, end = (((column + 0.5) * TILE_PX / side, (row + 0.5) * TILE_PX / side) for row, column in ends)
        patch = ConnectionPatch(
            start,
            end,
            "data",
            "data",
            axesA=left,
            axesB=right,
            arrowstyle="-|>",
            color=colour,
            linestyle=line,
            linewidth=1.6,
            mutation_scale=8,
            path_effects=[Stroke(linewidth=3, foreground="white"), Normal()],
        )
        left.figure.add_artist(patch)
        words = f"{word}: plan {arrow['relative_plan']:.2g}\nsimilarity {arrow['similarity']:.2f}"
        labelled.set_xlabel(words, color=colour, labelpad=2)


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether structure adds to positive pairs, where the marginals lie, and whether plans move a mass of one."""
    of_seed: Any = frame[frame["panel"] == "difference"].groupby(["kind", "seed"]).first()
    positives = of_seed.loc["positive"]
    rows = of_seed.groupby("kind")[[*of_seed.columns.intersection(NUMBERS)]].mean()
    positive, negative = rows.loc["positive"], rows.loc["negative"]
    checked = [
        over_seeds(
            f"the structural similarity of a positive pair exceeds its cosine by a large margin (at least {LARGE} on "
            f"average): by {positive['mean']:.3f}; it is larger at all in {100 * positive['above']:.0f} % of the pairs",
            positives["mean"] - LARGE,
            unit="to spare",
            margin=0,
        ),
        Check(
            f"for negative pairs it exceeds it by {negative['mean']:.3f}, in {100 * negative['above']:.0f} % of them; "
            f"so structure adds {positive['mean'] - negative['mean']:+.3f} to the gap between both kinds",
            claimed=False,
        ),
    ]
    if "on_object" in rows and pd.notna(positive["on_object"]):
        says = (
            f"the marginals fall on the object: {100 * positive['on_object']:.0f} % of their mass, against "
            f"{100 * positive['object_area']:.0f} % of the area"
        )
        checked.append(over_seeds(says, 100 * (positives["on_object"] - positives["object_area"])))
    return [
        *checked,
        Check(
            f"every plan moves a mass of one: |sum T - 1| is at most {positives['mass_error'].max():.1g}",
            bool(positives["mass_error"].max() < 1e-4),
        ),
    ]


TRANSPORT = Figure(data, draw, checks, example=True)
