"""The methods by the name that recipes give them."""

from __future__ import annotations

from lookalike.methods.avsl.learner import AVSLLearner
from lookalike.methods.diml.learner import DIMLLearner
from lookalike.methods.sam.learner import SAMLearner
from lookalike.models.learner import EmbedderLearner
from lookalike.training.learner import Learner

LEARNERS: dict[str, type[Learner]] = {
    "avsl": AVSLLearner,
    "diml": DIMLLearner,
    "embedder": EmbedderLearner,
    "sam": SAMLearner,
}
