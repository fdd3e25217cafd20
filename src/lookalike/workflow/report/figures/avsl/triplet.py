"""The most reliable nodes of a triplet, and how far the differences of such nodes scatter over many triplets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import pandas as pd
import torch
from torch import Tensor

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Representation
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import Pictures, read_pictures, read_trained
from lookalike.workflow.report.figures.parts.tiles import cells, colour_bar, grid, photograph, tile, under
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model, Natural, PositiveShare

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

PAIRS = ("positive", "negative")
MAPS = {"least alike": 0.0, "middle": 0.5, "most alike": 1.0}  # position in the order of the reliable nodes


class Options(Model):
    """Of the figure."""

    triplets: Count
    seed: Natural
    reliable: PositiveShare


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """The first drawn triplet in detail, and the scatter of all.

    Args:
        runs: models of one data set, each an AVSL; of several the first is shown.
        options: ``triplets`` and ``seed`` of their draw; ``reliable``, the share of the top level's nodes that counts,
            those of highest reliability for the pair.

    Returns:
        Rows of four kinds, in column ``panel``: ``picture`` of a ``role``; ``node`` of the first triplet, with ``pair,
        rank`` (0 the least alike), ``node, delta, reliability``; ``map``, the cells of ``node`` for ``pair, role,
        which``; ``spread``, standard deviation ``sd`` and interquartile range ``iqr`` of delta of one ``triplet`` and
        ``pair``.

    Source: AVSL, Fig. 6.
    """
    frames = [_of_run(run, options, shown=number == 0) for number, run in enumerate(runs)]
    return pd.concat(frames, ignore_index=True)


def _of_run(run: Run, options: Options, *, shown: bool) -> pd.DataFrame:
    trained, view, device = read_trained(run, AVSL)
    model, pictures = cast(AVSL, trained), read_pictures(run, view)
    triplets = draw_triplets(pictures.labels, options.triplets, options.seed)
    rows, positions = torch.unique(triplets, return_inverse=True)  # (n,) pictures, (3, T) positions among them
    with torch.no_grad():
        seen = Representation.cat([model(images) for images, _ in pictures.tensors(rows.tolist(), device)])
    spreads = []
    for number, (anchor, positive, negative) in enumerate(positions.T.tolist()):
        explained = model.explain(seen[anchor], seen[[positive, negative]])
        for column, pair in enumerate(PAIRS):
            delta = explained.nodes[-1][0, column][_reliable(explained.reliability[-1][0, column], options.reliable)]
            lower, upper = torch.quantile(delta, torch.tensor([0.25, 0.75], device=delta.device)).tolist()
            spread = {"sd": float(delta.std()), "iqr": upper - lower}
            spreads.append({"panel": "spread", "triplet": number, "pair": pair, **spread})
    frames = _shown(model, pictures, triplets[:, 0].tolist(), options.reliable, device) if shown else []
    return pd.concat([*frames, pd.DataFrame(spreads)], ignore_index=True).assign(dataset=run.dataset, seed=run.seed)


def _reliable(reliability: Tensor, share: float) -> Tensor:
    """Nodes of highest reliability ``(r,)``, as many as their share says."""
    return reliability.topk(max(1, round(share * len(reliability)))).indices


def _shown(
    model: AVSL, pictures: Pictures, triplet: list[int], share: float, device: torch.device
) -> list[pd.DataFrame]:
    roles = ("anchor", *PAIRS)
    picture_rows = [
        {"panel": "picture", "role": role, **pictures.shown(row)} for role, row in zip(roles, triplet, strict=True)
    ]
    frames = [pd.DataFrame(picture_rows)]
    [(images, _)] = pictures.tensors(triplet, device)
    with torch.no_grad():
        seen = model(images, with_maps=True)
    explained = model.explain(seen[0], seen[[1, 2]])
    for column, pair in enumerate(PAIRS):
        trust, delta = explained.reliability[-1][0, column], explained.nodes[-1][0, column]  # (r,) each
        nodes = _reliable(trust, share)
        nodes = nodes[delta[nodes].argsort(descending=True, stable=True)]
        columns = {"rank": range(len(nodes)), "node": nodes.tolist()}
        columns |= {"delta": delta[nodes].tolist(), "reliability": trust[nodes].tolist()}
        frames.append(pd.DataFrame({"panel": "node", "pair": pair, **columns}))
        for which, fraction in MAPS.items():
            node = int(nodes[round(fraction * (len(nodes) - 1))])
            for image, role in ((0, "anchor"), (column + 1, pair)):
                of_node = {"panel": "map", "pair": pair, "role": role, "which": which, "node": node}
                frames.append(cells(seen.maps[-1][image, node], **of_node))
    return frames


def draw(frame: pd.DataFrame) -> Picture:
    """Pictures and maps of both pairs above; below the differences in order, and their scatter over all triplets."""
    from matplotlib.figure import Figure as Canvas

    from lookalike.workflow.report.figures.parts.style import LOOKS, WIDTH

    figure = Canvas(figsize=(WIDTH, 5.9), layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(4.1, 1.8))[:, 0]
    axes = above.subplots(4, 1 + len(MAPS))
    of_panel = dict(iter(frame.groupby("panel")))
    photographs = {role: photograph(rows) for role, rows in of_panel["picture"].groupby("role")}
    for number, pair in enumerate(PAIRS):
        for line, role in enumerate(("anchor", pair)):
            row = axes[2 * number + line]
            tile(row[0], photographs[role])
            row[0].set_ylabel(role)
            for axis, which in zip(row[1:], MAPS, strict=True):
                maps = of_panel["map"]
                node_cells = maps[(maps["pair"] == pair) & (maps["role"] == role) & (maps["which"] == which)]
                tile(axis, under(photographs[role], grid(node_cells)))
                if line == 0:
                    axis.set_title(f"{which}\nnode {int(node_cells['node'].iloc[0])}")
    colour_bar(above, axes)
    curve, scatter = below.subplots(1, 2)
    for look, pair in zip((LOOKS[2], LOOKS[4]), PAIRS, strict=True):
        nodes = of_panel["node"][of_panel["node"]["pair"] == pair].sort_values("rank")
        curve.plot(
            nodes["rank"] + 1, nodes["delta"], color=look.colour, linestyle=look.line, marker=look.marker, label=pair
        )
        spread = of_panel["spread"][of_panel["spread"]["pair"] == pair]["sd"].sort_values()
        share = (pd.RangeIndex(len(spread)) + 1) / len(spread)
        scatter.plot(spread, 100 * share, color=look.colour, linestyle=look.line)
    curve.set_xlabel("rank of the node, this triplet")
    curve.set_ylabel("δ")
    scatter.set_xlabel("deviation of δ in a pair")
    scatter.set_ylabel("triplets below (%)")
    scatter.set_ylim(0, 100)
    below.legend(*curve.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the differences of negative pairs are more dispersed."""
    spread = frame[frame["panel"] == "spread"].pivot_table(
        index=["seed", "triplet"], columns="pair", values=["sd", "iqr"]
    )
    checked = []
    for column, name in (("sd", "standard deviation"), ("iqr", "interquartile range")):
        positive, negative = spread[column]["positive"], spread[column]["negative"]
        says = (
            f"differences of the reliable nodes are more dispersed for the negative pair, by their mean {name} over "
            f"the triplets: {negative.mean():.4f} against {positive.mean():.4f}; it is so in "
            f"{100 * (negative > positive).mean():.0f} % of the triplets"
        )
        more = negative.groupby("seed").mean() / positive.groupby("seed").mean() - 1
        checked.append(over_seeds(says, 100 * more, unit="% of that of the positive pair", margin=0))
    return checked


TRIPLET = Figure(data, draw, checks, example=True)
