"""All figures by name. A figure of the same kind as another stands here under its own name with the same value."""

from __future__ import annotations

from lookalike.figures.avsl_fluctuation import FLUCTUATION
from lookalike.figures.avsl_graph import GRAPH
from lookalike.figures.avsl_histograms import HISTOGRAMS
from lookalike.figures.avsl_triplet import TRIPLET
from lookalike.figures.decomposability import DECOMPOSABILITY
from lookalike.figures.diml_transport import TRANSPORT
from lookalike.figures.distances import DISTANCES
from lookalike.figures.form import Figure
from lookalike.figures.moving_point import MOVING_POINT
from lookalike.figures.rings import RINGS
from lookalike.figures.sam_domains import DOMAINS
from lookalike.figures.sam_gradcam import GRAD_CAM
from lookalike.figures.scalability import SCALABILITY

FIGURES: dict[str, Figure] = {
    "avsl_6": TRIPLET,
    "avsl_7": GRAPH,
    "avsl_8": GRAPH,
    "avsl_9": FLUCTUATION,
    "avsl_10": HISTOGRAMS,
    "diml_5": TRANSPORT,
    "contextual_4": MOVING_POINT,
    "contextual_8": SCALABILITY,
    "contextual_9": DECOMPOSABILITY,
    "contextual_11": RINGS,
    "contextual_12": DISTANCES,
    "sam_3": GRAD_CAM,
    "sam_4": DOMAINS,
}
