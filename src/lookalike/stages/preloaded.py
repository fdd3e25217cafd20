"""What most jobs import, so that the parent of a call has it in memory before it forks."""

import faiss  # noqa: F401

import lookalike.stages.attribute
import lookalike.stages.embed
import lookalike.stages.evaluate
import lookalike.stages.train  # noqa: F401
