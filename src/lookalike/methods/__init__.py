"""The methods by the name that recipes give them, with what a recipe may do with each; nothing here needs torch."""

from __future__ import annotations

from lookalike.methods.avsl import METHOD as AVSL
from lookalike.methods.diml import METHOD as DIML
from lookalike.methods.embedder import METHOD as EMBEDDER
from lookalike.methods.method import Method
from lookalike.methods.sam import METHOD as SAM

METHODS: dict[str, Method] = {"avsl": AVSL, "diml": DIML, "embedder": EMBEDDER, "sam": SAM}
