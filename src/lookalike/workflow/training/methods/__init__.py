"""Learners of the methods, by the name that recipes give them."""

from __future__ import annotations

import importlib

from lookalike.methods import METHODS
from lookalike.workflow.training.learner import Learner


def _named(path: str) -> type[Learner]:
    module, _, name = path.partition(":")
    learner: type[Learner] = getattr(importlib.import_module(module), name)
    return learner


LEARNERS: dict[str, type[Learner]] = {name: _named(method.learner) for name, method in METHODS.items()}
