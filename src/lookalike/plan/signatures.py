"""Signatures of the functions that Snakemake asks for each job, kept beside them.

Snakemake looks the parameters of a rule's functions up three times for each job, by ``inspect.signature``, which takes
longer than most of their answers. A signature that stands in ``__signature__`` is taken as it stands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def signed(function: Function) -> Function:
    """The function, with its signature beside it."""
    function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return function


def signed_methods(of: Class) -> Class:
    """The class, with their signatures beside all of its methods that are asked by ``wildcards``."""
    for method in vars(of).values():
        if inspect.isfunction(method) and "wildcards" in inspect.signature(method).parameters:
            signed(method)
    return of
