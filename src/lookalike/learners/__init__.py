"""The methods by the name that recipes give them."""

from __future__ import annotations

from lookalike.learners.avsl import AVSLLearner
from lookalike.learners.diml import DIMLLearner
from lookalike.learners.embedder import EmbedderLearner
from lookalike.learners.sam import SAMLearner
from lookalike.training.learner import Learner

LEARNERS: dict[str, type[Learner]] = {
    "avsl": AVSLLearner,
    "diml": DIMLLearner,
    "embedder": EmbedderLearner,
    "sam": SAMLearner,
}
