"""The methods by the name that recipes give them, with the recipes that each allows; nothing here needs torch."""

from __future__ import annotations

from lookalike.methods.avsl import METHOD as AVSL
from lookalike.methods.diml import METHOD as DIML
from lookalike.methods.method import FITTED, Method
from lookalike.methods.sam import METHOD as SAM

# Plain metric learning, the baseline of all papers: an embedder and any loss of its embeddings.
EMBEDDER = Method(
    learner="lookalike.workflow.training.methods.learners:EmbedderLearner",
    scorings=("cosine", "structural_matching", "shared_neighbours"),
    needs_loss=False,
    representations=("own", "locations", "random_vectors", *FITTED),
    beside_loss=("projector", "regulariser"),
    has_attention=True,
)
METHODS: dict[str, Method] = {
    "avsl": AVSL,
    "diml": DIML,
    "embedder": EMBEDDER,
    "sam": SAM,
}
