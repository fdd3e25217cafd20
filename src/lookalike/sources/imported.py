"""Whether the code that is imported is that of the project's folder."""

from __future__ import annotations

from pathlib import Path

from lookalike.paths import PACKAGE, project_root


def other_sources() -> str:
    """What to say where a project's ``src/`` is not the code that runs: it may have been changed to no effect.

    Returns:
        A line; empty where the project has no sources, or those that are imported, or equal ones.
    """
    own = project_root() / "src" / "lookalike"
    if not own.is_dir() or own.samefile(PACKAGE) or _files(own) == _files(PACKAGE):
        return ""
    return (
        f"lookalike is imported from {PACKAGE}, and {own} is another one that counts for nothing here; "
        "`uv pip install -e '.[workflow]'` makes it count"
    )


def _files(package: Path) -> dict[str, bytes]:
    """All modules."""
    return {str(path.relative_to(package)): path.read_bytes() for path in package.rglob("*.py")}
