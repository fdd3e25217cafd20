"""Figures with experimental content: data first, picture second.

``params/figures.yaml`` says what each figure shows, what the paper claims about it and which runs it reads. `FIGURES`
names what computes and draws it, in a folder per paper and, where one thing is varied, in ``sweeps``; figures of one
kind share one entry. ``parts`` holds what they have in common: ``form`` is what such a module offers, ``style`` how all
of them look, ``caption`` the words beside.
"""

from __future__ import annotations

from lookalike.workflow.report.figures.avsl.fluctuation import FLUCTUATION
from lookalike.workflow.report.figures.avsl.graph import GRAPH
from lookalike.workflow.report.figures.avsl.histograms import HISTOGRAMS
from lookalike.workflow.report.figures.avsl.triplet import TRIPLET
from lookalike.workflow.report.figures.contextual.convergence import CONVERGENCE, CURVES_OVER_EPOCHS
from lookalike.workflow.report.figures.contextual.decomposability import DECOMPOSABILITY
from lookalike.workflow.report.figures.contextual.distances import DISTANCES
from lookalike.workflow.report.figures.contextual.scalability import SCALABILITY
from lookalike.workflow.report.figures.contextual.surrogates import SURROGATE_GRID, SURROGATES
from lookalike.workflow.report.figures.contextual.toy_problems import MOVING_POINT, RINGS
from lookalike.workflow.report.figures.diml.transport import TRANSPORT
from lookalike.workflow.report.figures.parts.form import Figure
from lookalike.workflow.report.figures.sam.domains import DOMAINS
from lookalike.workflow.report.figures.sam.gradcam import GRAD_CAM
from lookalike.workflow.report.figures.sam.segmentations import SEGMENTATIONS
from lookalike.workflow.report.figures.sweeps import (
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
