"""Reproduce, compare and explain deep metric learning.

Importing the package costs next to nothing: public names are loaded when they are first used, so that Snakemake can
plan hundreds of jobs without paying for a torch import. The stub ``__init__.pyi``, which editors and type checkers
read, is the one place that says which names there are and where they come from.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path


@cache
def _modules() -> dict[str, str]:
    """Module of every public name, as the stub imports it."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    return {alias.name: statement.module for statement in imports for alias in statement.names if statement.module}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # what pyproject.toml says

        return version(__name__)
    modules = _modules()
    if name not in modules:
        capitals = {known.lower(): known for known in modules}
        near = [capitals[each] for each in get_close_matches(name.lower(), capitals, cutoff=0.4)] or sorted(modules)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; nearest: {', '.join(near)}")
    globals()[name] = getattr(import_module(modules[name]), name)  # found there from now on, without this function
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules(), "__version__"})
