"""How good explanations of similarity are, in numbers.

Maps of all methods are brought to one grid (``pooled``) and pointed one way (``signs``); pairs and triplets are drawn
once and shared (``drawn``); what is known of a picture is followed into what a model sees of it (``annotations``).
``deletion``, ``parts``, ``transfer``, ``inside``, ``randomised`` and ``planted`` hold a measure each, with a value per
pair, NaN where it is not defined, and ``interval`` says what they come to. Whether evidence is complete an explanation
says itself: its ``gap``.
"""
