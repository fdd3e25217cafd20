"""Libraries that only the workflow needs, and what to install where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def workflow_extra() -> Iterator[None]:
    """Around imports of what the extra ``workflow`` brings.

    Raises:
        ModuleNotFoundError: with one line that names the missing library and how to install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error.name} is not installed: this needs lookalike's extra `workflow`; in the project's folder: "
            "pip install '.[workflow]'",
            name=error.name,
        ) from None
