"""Quality of explanations of similarity, in numbers.

``protocol`` draws pairs and triplets once, for all methods; ``cells`` brings all maps to one grid; ``annotations``
follows what is known of an image into what a model sees of it. ``deletion``, ``parts`` and ``sanity_checks`` hold the
measures, with a value per pair, NaN where it is not defined; ``measures`` takes all of them. Whether evidence is
complete an explanation says itself: its ``gap``.
"""
