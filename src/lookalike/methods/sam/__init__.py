"""Similarity attention and similarity mining (SAM): Visual Similarity Attention, IJCAI 2022 (below "the paper").

``attention`` says where the images of a tuple are similar, by the weight and the score of the tuple; ``masks`` erase
these places, ``mining`` asks that the model cannot order what is left, ``loss`` adds that to a metric loss and chooses
among the tuples that it mined. ``head`` holds heads whose attention has a closed form; ``model`` is the method as one
object.

The paper's symbols and their names here: ``A`` feature_maps, ``f`` features, ``w`` weight, ``s = w . f`` score, ``M``
maps, ``Sigma`` soft_mask, ``L_ml`` metric loss, ``L_sm`` mining loss. ``R`` is the number of images of a tuple (roles:
anchor, positive, negatives), ``B`` the number of tuples.

No code by the authors is known and the paper's formulas are damaged in print. What it leaves open is an option here;
the defaults are our choice.
"""

from __future__ import annotations

from lookalike.methods.method import FITTED, Method

METHOD = Method(
    learner="lookalike.workflow.training.methods.learners:SAMLearner",
    scorings=("cosine", "structural_matching", "shared_neighbours"),
    options=("lookalike.methods.sam.model:SimilarityAttention", "lookalike.methods.sam.loss:SimilarityMiningLoss"),
    loss_class="lookalike.losses.base:BatchLoss",  # others have no tuples that could be mined
    representations=("own", "locations", "random_vectors", *FITTED),
    has_attention=True,
)
