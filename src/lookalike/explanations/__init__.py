"""Why two images look alike: maps, pairs of locations and nodes, by every method that can say, for any trained model.

``explanation`` is what all of them return. ``decomposition`` holds those whose evidence sums to the measure that they
explain: a cosine, DIML's plan, AVSL's graph. ``gradient`` holds SAM's attention and Grad-CAM of the similarity.
``choice`` names them.
"""
