"""Contextual similarity: Supervised Metric Learning to Rank, ICML 2023 (below "the paper").

``loss`` holds the contextual loss and its parts, alone and beside any other loss; ``similarity`` computes the
contextual similarity on the ``products`` of a batch, ``retrieval`` re-ranks at test time, ``head`` is the projector of
the experiments.

The paper's symbols and their names here: ``s`` similarity, ``D = 2 - 2 s`` distance (squared Euclidean),
``N`` neighbours, ``H`` half_neighbours, ``P`` agreement, ``W1`` intersection, ``R`` reciprocal, ``w`` contextual
similarity, ``lambda`` lam, ``s~`` target_similarity, ``d+`` positive_margin, ``d-`` negative_margin.
"""
