"""The attribution graph of a pair: its most and least alike reliable nodes, and an unreliable one taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import pandas as pd
import torch
from torch import Tensor

from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.representation import Explanation, Representation
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import Pictures, read_pictures, read_trained
from lookalike.workflow.report.figures.parts.tiles import PAGE_WIDTH, cells, colour_bar, grid, photograph, tile, under
from lookalike.workflow.report.figures.parts.trends import above, always, table
from lookalike.workflow.settings.model import Count, Model, Natural, PositiveShare

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture
    from matplotlib.figure import SubFigure

SIDES = ("query", "gallery")
PARTS = {
    "alike": ("#009E73", "--"),
    "unlike": ("#D55E00", ":"),
    "unreliable": ("#000000", "-"),
    "below": ("#0072B2", "-"),
}
WORDS = "p reliability, δ difference of the pair, λ weight of δ in the distance; edge: weight below the unreliable node"
EXACT = 1e-3  # relative error up to which the sums count as equal; they are summed in single precision


class Options(Model):
    """Of the figure."""

    pairs: Count
    seed: Natural
    reliable: PositiveShare
    nodes: Count
    below: Count


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """One pair of a class for each data set, and the sensitivities of many pairs.

    Args:
        runs: models, each an AVSL; of several seeds the first is shown.
        options: ``pairs``, half of them of one class, and ``seed`` of their draw; ``reliable``, share of the top nodes,
            those of highest reliability, among which ``nodes`` most and as many least alike are shown; ``below``, how
            many nodes, those of the strongest edges, the least reliable node is taken apart into.

    Returns:
        Rows of four kinds, in column ``panel``: ``picture`` of a ``side``; ``node`` with ``part`` (``alike, unlike,
        unreliable, below``), ``order, level, node, reliability, delta, sensitivity`` and, below, ``edge``; ``map``, the
        cells of a node's ``part, order, side``; ``level`` with the mean ``share`` of its sensitivities, over all pairs,
        and their largest relative errors, ``sum_error`` of their sum and ``distance_error`` of their sum weighted
        with delta.

    Source: AVSL, Fig. 7 and 8.
    """
    frames = []
    for number, run in enumerate(runs):
        trained, view, device = read_trained(run, AVSL)
        model, pictures = cast(AVSL, trained), read_pictures(run, view)
        triplets = draw_triplets(pictures.labels, options.pairs // 2, options.seed)
        parts = [_shares(model, pictures, triplets, device)]
        if run.dataset not in [other.dataset for other in runs[:number]]:
            parts += _shown(model, pictures, triplets[:2, 0].tolist(), options, device)
        frames += [part.assign(dataset=run.dataset, seed=run.seed) for part in parts]
    return pd.concat(frames, ignore_index=True)


@torch.no_grad()
def _shares(model: AVSL, pictures: Pictures, triplets: Tensor, device: torch.device) -> pd.DataFrame:
    rows, positions = torch.unique(triplets, return_inverse=True)  # (n,) pictures, (3, T) positions among them
    seen = Representation.cat([model(images) for images, _ in pictures.tensors(rows.tolist(), device)])
    shares, sums, distances = [], [], []
    for anchor, positive, negative in positions.T.tolist():
        explained = model.explain(seen[anchor], seen[[positive, negative]])
        of_level = torch.stack([level[0].double().sum(dim=-1) for level in explained.sensitivities])  # (L, 2)
        total = of_level.sum(dim=0)  # (2,), r by Property 1
        shares.append(of_level / total)
        sums.append(total / explained.nodes[0].shape[-1] - 1)
        weighted = torch.stack([level[0].double().sum(dim=-1) for level in explained.contributions]).sum(dim=0)
        distances.append(weighted / explained.distance[0].double() - 1)
    errors = {
        "sum_error": float(torch.cat(sums).abs().max()),
        "distance_error": float(torch.cat(distances).abs().max()),
    }
    means = torch.cat(shares, dim=1).mean(dim=1).tolist()  # of (L, 2 T)
    return pd.DataFrame({"panel": "level", "level": range(1, len(means) + 1), "share": means, **errors})


def _shown(
    model: AVSL, pictures: Pictures, pair: list[int], options: Options, device: torch.device
) -> list[pd.DataFrame]:
    [(images, _)] = pictures.tensors(pair, device)
    with torch.no_grad():
        seen = model(images, with_maps=True)
    explained = model.explain(seen[0], seen[1])
    picture_rows = [
        {"panel": "picture", "side": side, **pictures.shown(row)} for side, row in zip(SIDES, pair, strict=True)
    ]
    frames = [pd.DataFrame(picture_rows)]
    for part, order, level, node, edge in _chosen(model, explained, options):
        values = {
            "reliability": explained.reliability[level][0, 0, node],
            "delta": explained.nodes[level][0, 0, node],
            "sensitivity": explained.sensitivities[level][0, 0, node],
        }
        identity = {"part": part, "order": order, "level": level + 1, "node": node}
        numbers = {name: float(value) for name, value in values.items()}
        frames.append(pd.DataFrame([{"panel": "node", **identity, **numbers, "edge": edge}]))
        frames += [
            cells(seen.maps[level][image, node], panel="map", side=side, **identity) for image, side in enumerate(SIDES)
        ]
    return frames


def _chosen(model: AVSL, explained: Explanation, options: Options) -> Iterator[tuple[str, int, int, int, float | None]]:
    """Part, order in it, level, node, and the edge that leads to it, of every node that is shown."""
    top = len(model.levels) - 1
    trust, delta = explained.reliability[top][0, 0], explained.nodes[top][0, 0]  # (r,) each
    reliable = trust.topk(max(2 * options.nodes, round(options.reliable * len(trust)))).indices
    ordered = reliable[delta[reliable].argsort(stable=True)].tolist()  # nodes, the most alike first
    for part, nodes in (("alike", ordered[: options.nodes]), ("unlike", ordered[: -options.nodes - 1 : -1])):
        yield from ((part, order, top, node, None) for order, node in enumerate(nodes))
    unreliable = int(trust.argmin())
    yield "unreliable", 0, top, unreliable, None
    edges = model.edges()[top]
    strongest, below = (found.tolist() for found in cast(Tensor, edges)[unreliable].topk(options.below))
    for order, (edge, node) in enumerate(zip(strongest, below, strict=True)):
        yield "below", order, top - 1, node, edge


def draw(frame: pd.DataFrame) -> Picture:
    """For each data set a row of nodes, each with its map on both pictures, and the share of every level."""
    from matplotlib.figure import Figure as Canvas

    datasets = list(frame["dataset"].unique())
    figure = Canvas(figsize=(PAGE_WIDTH, 2.6 * len(datasets) + 0.15), layout="constrained")
    rows = figure.subfigures(len(datasets), 1, squeeze=False)[:, 0]
    for row, dataset in zip(rows, datasets, strict=True):
        _graph(row, frame[frame["dataset"] == dataset])
    figure.supxlabel(WORDS, fontsize=7)
    return figure


def _graph(figure: SubFigure, frame: pd.DataFrame) -> None:
    of_panel = dict(iter(frame.groupby("panel")))
    nodes, maps = of_panel["node"], of_panel["map"]
    axes = figure.subplots(2, 1 + len(nodes))
    photographs = [photograph(of_panel["picture"][of_panel["picture"]["side"] == side]) for side in SIDES]
    for axis, picture in zip(axes[:, 0], photographs, strict=True):
        tile(axis, picture)
    axes[0, 0].set_title("the pair")
    for column, node in zip(axes[:, 1:].T, nodes.itertuples(), strict=True):
        node_maps = maps[(maps["part"] == node.part) & (maps["order"] == node.order)]
        for axis, side, picture in zip(column, SIDES, photographs, strict=True):
            tile(axis, under(picture, grid(node_maps[node_maps["side"] == side])), PARTS[str(node.part)])
        over = f"edge {node.edge:.2f}" if node.part == "below" else str(node.part)
        column[0].set_title(f"{over}\nlevel {node.level:.0f}\nnode {node.node:.0f}")
        column[1].set_xlabel(f"p {node.reliability:.2f}\nδ {node.delta:.4f}\nλ {node.sensitivity:.2f}")
    colour_bar(figure, axes)
    shares = of_panel["level"].groupby("level")["share"].mean()
    listed = ", ".join(f"level {level:.0f} {100 * share:.0f} %" for level, share in shares.items())
    figure.suptitle(f"{frame['dataset'].iloc[0]}; mean share of λ over many pairs: {listed}\n", fontsize=7)


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether the sensitivities rise with the level, are highest at the last, and have the sums of Property 1."""
    levels = frame[frame["panel"] == "level"]
    checked = []
    for dataset, rows in levels.groupby("dataset"):
        shares = table(rows, "level", "share")
        means = shares.mean(axis=1)
        listed = ", ".join(f"{share:.0f} % on level {level:.0f}" for level, share in means.items())
        top = shares.iloc[-1]
        rises = [shares.iloc[level] - shares.iloc[level - 1] for level in range(1, len(shares))]
        checked += [
            above(top, shares.iloc[:-1], f"{dataset}: the highest level has most of λ: on average {listed}"),
            always(rises, f"{dataset}: the share of λ rises with every level: {listed}"),
        ]
    sum_error, distance_error = levels["sum_error"].max(), levels["distance_error"].max()
    says = f"the λ of a pair sum to r, the nodes of a level (Property 1): relative error at most {sum_error:.1g}"
    checked.append(Check(says, bool(sum_error <= EXACT)))
    says = f"λ times δ, summed over all nodes, is the distance: relative error at most {distance_error:.1g}"
    return [*checked, Check(says, bool(distance_error <= EXACT))]


GRAPH = Figure(data, draw, checks, example=True)
