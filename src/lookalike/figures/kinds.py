"""All figures by name. A figure of the same kind as another stands here under its own name with the same value."""

from __future__ import annotations

from lookalike.figures.ablations import (
    CANDIDATES,
    DETACHED,
    EDGES,
    GRID_SIDE,
    MASK,
    MINING,
    MOMENTUM,
    ROBUSTNESS,
    SEEN_LOSSES,
    SEEN_WEIGHTS,
    SIZE,
    TUNING,
    VARIANTS,
    WEIGHTS,
)
from lookalike.figures.avsl_fluctuation import FLUCTUATION
from lookalike.figures.avsl_graph import GRAPH
from lookalike.figures.avsl_histograms import HISTOGRAMS
from lookalike.figures.avsl_triplet import TRIPLET
from lookalike.figures.convergence import CONVERGENCE
from lookalike.figures.curves import CURVES_OVER_EPOCHS
from lookalike.figures.decomposability import DECOMPOSABILITY
from lookalike.figures.diml_transport import TRANSPORT
from lookalike.figures.distances import DISTANCES
from lookalike.figures.form import Figure
from lookalike.figures.moving_point import MOVING_POINT
from lookalike.figures.rings import RINGS
from lookalike.figures.sam_domains import DOMAINS
from lookalike.figures.sam_gradcam import GRAD_CAM
from lookalike.figures.scalability import SCALABILITY
from lookalike.figures.segmentations import SEGMENTATIONS
from lookalike.figures.surrogates import SURROGATE_GRID, SURROGATES

FIGURES: dict[str, Figure] = {
    "avsl_5a": EDGES,
    "avsl_5b": SIZE,
    "avsl_6": TRIPLET,
    "avsl_7": GRAPH,
    "avsl_8": GRAPH,
    "avsl_9": FLUCTUATION,
    "avsl_10": HISTOGRAMS,
    "avsl_momentum": MOMENTUM,
    "diml_3": CANDIDATES,
    "diml_4": GRID_SIDE,
    "diml_5": TRANSPORT,
    "contextual_2": SEEN_LOSSES,
    "contextual_3": CONVERGENCE,
    "contextual_4": MOVING_POINT,
    "contextual_6": ROBUSTNESS,
    "contextual_7": WEIGHTS,
    "contextual_8": SCALABILITY,
    "contextual_9": DECOMPOSABILITY,
    "contextual_11": RINGS,
    "contextual_12": DISTANCES,
    "contextual_13": TUNING,
    "contextual_14": SEEN_WEIGHTS,
    "contextual_15": CURVES_OVER_EPOCHS,
    "contextual_16": VARIANTS,
    "contextual_17": DETACHED,
    "contextual_18": SURROGATE_GRID,
    "contextual_19": SURROGATE_GRID,
    "contextual_20": SURROGATE_GRID,
    "contextual_21": SURROGATE_GRID,
    "contextual_22": SURROGATE_GRID,
    "contextual_23": SURROGATE_GRID,
    "contextual_24": SURROGATE_GRID,
    "contextual_25": SURROGATE_GRID,
    "contextual_26": SURROGATE_GRID,
    "contextual_27": SURROGATE_GRID,
    "contextual_28": SURROGATE_GRID,
    "contextual_29": SURROGATE_GRID,
    "contextual_surrogates": SURROGATES,
    "sam_3": GRAD_CAM,
    "sam_4": DOMAINS,
    "sam_6": SEGMENTATIONS,
    "sam_7": SEGMENTATIONS,
    "sam_mask": MASK,
    "sam_weight": MINING,
}
