"""Contextual similarity: Supervised Metric Learning to Rank, ICML 2023 (below "the paper").

``loss`` holds the public functions and ``terms`` the parts of the loss; ``similarity`` and ``closed_form`` compute the
contextual similarity, ``regularised`` adds the paper's regulariser to any other loss, ``reranking`` is the test-time
re-ranking, ``head`` the two heads of the experiments and ``robustness`` the altered training sets of Fig. 6.

The paper's symbols and their names here: ``s`` similarity, ``D = 2 - 2 s`` distance (squared Euclidean),
``N`` neighbours, ``H`` half_neighbours, ``P`` agreement, ``W1`` intersection, ``R`` reciprocal, ``w`` contextual
similarity, ``lambda`` lam, ``s~`` target_similarity, ``d+`` positive_margin, ``d-`` negative_margin.
"""
