"""Why two images look alike: maps, pairs of locations and nodes, by every method that can say, for any trained model.

``explanation`` is what all of them return. Those that know a model from within stand in modules of their own: its
pooled locations (``activation``), DIML's plan (``structure``), AVSL's graph (``graph``); ``gradient`` holds SAM's
attention and Grad-CAM of the similarity. ``controls`` are maps that know nothing of the pair. ``choice`` names them.
"""
