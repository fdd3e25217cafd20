"""Answers about the package's sources, kept between processes beside Python's bytecode.

One file holds the answers for one state of all sources, so an edit of any of them begins anew. Where Python must not
write bytecode, or cannot, nothing is kept either, and every process finds the answers by itself.
"""

from __future__ import annotations

import atexit
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lookalike.files import write_json
from lookalike.sources import trees

Answer = TypeVar("Answer", str, bool, int, list[int], list[str], dict[str, str])


class _Answers:
    """Those to one state of the sources, by question."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._state = folder, trees.state()
        self._file = folder / f"answers-{self._state[:16]}.json"
        self.by_question: dict[str, Any] = self._read()
        self._known = len(self.by_question)
        atexit.register(self.write)

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # none yet, or not readable: found again
            return {}
        return content if isinstance(content, dict) else {}

    def write(self) -> None:
        """Keep new answers, unless a source was edited while they were found."""
        if len(self.by_question) == self._known or sys.dont_write_bytecode or trees.state() != self._state:
            return
        try:
            write_json(self._file, self._read() | self.by_question)
            for older in self._folder.glob("answers-*.json"):
                if older != self._file:
                    older.unlink(missing_ok=True)
        except OSError:  # a package that others installed
            return
        self._known = len(self.by_question)


@cache
def answers(root: Path) -> _Answers:
    """What is kept for the packages below a folder."""
    return _Answers(root / trees.PACKAGES[0] / "__pycache__")


def kept(question: str, find: Callable[[], Answer]) -> Answer:
    """What is kept for a question, else what ``find`` returns.

    Args:
        question: with a first word that tells it from the questions of others.
        find: returns JSON that depends on nothing but the question and the sources; its errors are not kept.
    """
    known = answers(trees.ROOT).by_question
    if question not in known:
        known[question] = find()
    answer: Answer = known[question]
    return answer
