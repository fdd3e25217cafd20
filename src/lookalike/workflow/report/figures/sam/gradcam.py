"""Similarity attention beside Grad-CAM of a classifier, on the same pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
import torch
from torch import Tensor, nn

from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.embedder import Embedder
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.data.readers import KEYPOINT_READERS
from lookalike.workflow.report.figures.parts.form import Check, Figure, Run
from lookalike.workflow.report.figures.parts.networks import Pictures, of_each, read_pictures, read_trained, share_on
from lookalike.workflow.report.figures.parts.tiles import cells, colour_bar, grid, photograph, tile, under
from lookalike.workflow.report.figures.parts.trends import over_seeds
from lookalike.workflow.settings.model import Count, Model, Natural, Rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

QUESTIONS = {"similar": "siamese_same", "dissimilar": "siamese_different"}
METHODS = {"grad_cam": "Grad-CAM", "attention": "attention"}
SIDES = ("first", "second")


class Options(Model):
    """Of the figure."""

    triplets: Count
    seed: Natural
    tolerance: Rate
    steps: Natural
    lr: Rate
    weight_decay: Rate


def data(runs: Sequence[Run], options: Options) -> pd.DataFrame:
    """Maps of the first pairs, and where the maps of many pairs lie.

    Args:
        runs: models of one data set, each an ``Embedder``; of several the first is shown.
        options: ``triplets`` and ``seed`` of their draw: anchor and positive are the pair asked why it is similar,
            anchor and negative the one asked why not; ``tolerance`` of the pointing game, a share of the crop's side;
            ``steps, lr, weight_decay`` of the classifier's training.

    Returns:
        Rows of four kinds, in column ``panel``: ``picture`` of a ``question`` and ``side``; ``map``, the cells for
        ``question, side, method``; ``pairs``, for each ``question, method`` the mean over so many ``pairs`` of
        ``on_object``, share of the attention on the object, and ``hit``, whether its peak lies near a visible part,
        beside those of an even map, ``object_area`` and ``part_area``; ``classifier`` with its ``accuracy`` on the
        training pictures.

    Raises:
        ValueError: for a data set without objects or key points.

    Source: SAM, Fig. 3.
    """
    return pd.concat([_of_run(run, options, shown=run is runs[0]) for run in runs], ignore_index=True)


def _of_run(run: Run, options: Options, *, shown: bool) -> pd.DataFrame:
    trained, view, device = read_trained(run, Embedder)
    embedder, pictures = cast(Embedder, trained), read_pictures(run, view)
    if run.layout not in KEYPOINT_READERS:
        raise ValueError(
            f"{run.dataset} of layout {run.layout!r} has no key points, needed is {', '.join(KEYPOINT_READERS)}"
        )
    classifier, accuracy = _classifier(embedder, read_pictures(run, view, ("train",)), options, device)
    triplets = draw_triplets(pictures.labels, options.triplets, options.seed)
    rows, positions = torch.unique(triplets, return_inverse=True)  # (n,) pictures, (3, T) positions among them
    feature_maps = of_each(lambda images: embedder.trunk(images)[-1], pictures, rows.tolist(), device)
    attention = SimilarityAttention(*trunk_and_head(embedder))
    single = grad_cam(feature_maps.to(device), lambda maps: classifier(embedder.pooled(maps))).cpu()  # (n, h, w)
    objects = pictures.objects(rows.tolist())
    if objects is None:
        raise ValueError(f"{run.manifest} has neither masks nor boxes of the objects")
    near = near_parts(run, pictures, rows.tolist(), options.tolerance)  # (n, H, W)
    size = (objects.shape[1], objects.shape[2])
    frames = []
    for number, (question, kind) in enumerate(QUESTIONS.items()):
        pair = positions[[0, number + 1]]  # (2, T)
        of_pair = attention.settings.attention(feature_maps[pair].to(device), attention.head, kind).cpu()  # (2, T, ...)
        for method, maps in (("grad_cam", single[pair]), ("attention", of_pair)):
            heat = heat_map(maps, size).flatten(0, 1)  # (2 T, H, W)
            peak = heat.flatten(1).argmax(dim=1, keepdim=True)  # (2 T, 1)
            inside, parts = objects[pair].flatten(0, 1), near[pair].flatten(0, 1).flatten(1)  # (2 T, H, W), (2 T, H W)
            measured = {
                "on_object": share_on(heat, inside),
                "object_area": inside.flatten(1).double().mean(dim=1),
                "hit": parts.gather(1, peak).squeeze(1).double().where(heat.flatten(1).amax(dim=1) > 0, torch.nan),
                "part_area": parts.double().mean(dim=1),
            }
            means = {name: float(value.view(2, -1).nanmean(dim=0).nanmean()) for name, value in measured.items()}
            identity = {"panel": "pairs", "question": question, "method": method, "pairs": pair.shape[1]}
            frames.append(pd.DataFrame([{**identity, **means}]))
            if shown:
                identity = {"panel": "map", "question": question, "method": method}
                frames += [cells(maps[side, 0], **identity, side=name) for side, name in enumerate(SIDES)]
        if shown:
            identity = {"panel": "picture", "question": question}
            sides = zip(SIDES, (pictures.shown(int(row)) for row in rows[pair[:, 0]]), strict=True)
            frames.append(pd.DataFrame([{**identity, "side": side, **picture} for side, picture in sides]))
    frames.append(pd.DataFrame([{"panel": "classifier", "accuracy": accuracy}]))
    return pd.concat(frames, ignore_index=True).assign(dataset=run.dataset, seed=run.seed)


def _classifier(
    embedder: Embedder, pictures: Pictures, options: Options, device: torch.device
) -> tuple[nn.Linear, float]:
    """A linear softmax layer on the pooled features of the training pictures, and its accuracy on them."""
    features = of_each(
        lambda images: embedder.pooled(embedder.trunk(images)[-1]), pictures, range(len(pictures.rows)), device
    )
    labels = torch.unique(pictures.labels, return_inverse=True)[1]
    # Learned on standardised features, which train evenly; written back for the features as they are.
    mean, deviation = features.mean(dim=0), features.std(dim=0).clamp_min(1e-6)
    layer = nn.Linear(features.shape[1], int(labels.max()) + 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=options.lr, weight_decay=options.weight_decay)
    standard = (features - mean) / deviation
    for _ in range(options.steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(layer(standard), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        layer.weight.div_(deviation)
        layer.bias.sub_(layer.weight @ mean)
        accuracy = float((layer(features).argmax(dim=1) == labels).double().mean())
    return layer.to(device), accuracy


def grad_cam(feature_maps: Tensor, scores: Callable[[Tensor], Tensor]) -> Tensor:
    """Grad-CAM of the class with the highest score.

    Args:
        feature_maps: ``(N, C, H, W)``.
        scores: function of such maps, gives class scores ``(N, classes)``.

    Returns:
        ``(N, H, W)``, not negative.

    Source: Selvaraju et al., "Grad-CAM", 2017, Eq. 1 and 2.
    """
    with torch.enable_grad():
        maps = feature_maps.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(scores(maps).amax(dim=1).sum(), maps)
    weights = gradient.mean(dim=(-2, -1), keepdim=True)  # (N, C, 1, 1)
    return (weights * feature_maps).sum(dim=1).relu()


def near_parts(run: Run, pictures: Pictures, rows: Sequence[int], tolerance: float) -> Tensor:
    """Pixels within a distance of any visible part, ``(n, H, W)`` bool; the distance is a share of the crop's side."""
    keypoints = KEYPOINT_READERS[run.layout](Path(run.root))
    of_path = dict(iter(keypoints[keypoints["visible"].astype(bool)].groupby("path")))
    side = pictures.side
    across = torch.arange(side) + 0.5
    near = torch.zeros(len(rows), side, side, dtype=torch.bool)
    for index, row in enumerate(rows):
        parts = of_path.get(pictures.rows["path"].iloc[row])
        if parts is not None:
            x, y = pictures.points(row, torch.tensor(parts[["x", "y"]].to_numpy("float64"))).T[..., None, None]
            apart = (across - x).square() + (across[:, None] - y).square()  # (parts, H, W)
            near[index] = (apart <= (tolerance * side) ** 2).any(dim=0)
    return near


def draw(frame: pd.DataFrame) -> Picture:
    """Two rows per question, one for each picture: the picture, Grad-CAM, attention."""
    from lookalike.workflow.report.figures.parts.style import panels

    of_panel = dict(iter(frame.groupby("panel")))
    figure, axes = panels(2 * len(QUESTIONS), 1 + len(METHODS), height=4.9)
    for number, question in enumerate(QUESTIONS):
        for line, side in enumerate(SIDES):
            row = axes[2 * number + line]
            of_side = {
                panel: rows[(rows["question"] == question) & (rows["side"] == side)] for panel, rows in of_panel.items()
            }
            picture = photograph(of_side["picture"])
            tile(row[0], picture)
            row[0].set_ylabel(f"why {question}?\n{side} picture")
            for axis, method in zip(row[1:], METHODS, strict=True):
                tile(axis, under(picture, grid(of_side["map"][of_side["map"]["method"] == method])))
    for axis, title in zip(axes[0], ("picture", *METHODS.values()), strict=True):
        axis.set_title(title)
    colour_bar(figure, axes)
    return figure


def checks(frame: pd.DataFrame) -> list[Check]:
    """Whether attention lies on the object, and its peak on a part, more than Grad-CAM's."""
    pairs = frame[frame["panel"] == "pairs"].set_index(["question", "method", "seed"]).sort_index()
    of_seed: Any = 100 * pairs[["on_object", "object_area", "hit", "part_area"]]
    checked = []
    for question in QUESTIONS:
        cams, attentions = of_seed.loc[(question, "grad_cam")], of_seed.loc[(question, "attention")]
        cam, attention = cams.mean(), attentions.mean()
        for column, even, what in (
            ("on_object", "object_area", "attention lies on the object more than Grad-CAM"),
            ("hit", "part_area", "its peak lies near a part more often (pointing game)"),
        ):
            says = (
                f"why {question}: {what}: {attention[column]:.1f} % against {cam[column]:.1f} %, "
                f"{attention[even]:.1f} % by chance, over {pairs['pairs'].iloc[0]:.0f} pairs"
            )
            checked.append(over_seeds(says, attentions[column] - cams[column]))
    accuracy = frame["accuracy"].mean()
    return [
        *checked,
        Check(
            f"the classifier behind Grad-CAM has {100 * accuracy:.1f} % of the training pictures right",
            claimed=False,
        ),
    ]


GRAD_CAM = Figure(data, draw, checks, example=True)
