"""Plain metric learning, the baseline of all papers: an embedder and any loss of its embeddings."""

from __future__ import annotations

from lookalike.methods.method import Method

METHOD = Method(
    learner="lookalike.learners.embedder:EmbedderLearner",
    scorings=("cosine", "structural_matching", "shared_neighbours"),
    needs_loss=False,
    representations=("own", "locations", "random_vectors"),
    beside_loss=("projector", "regulariser"),
    has_attention=True,
)
