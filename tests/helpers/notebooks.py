"""The notebooks of `examples/`, executed in kernels of their own.

    python tests/helpers/notebooks.py [NAME...]

executes them where they lie and keeps what they show, but for what differs between machines: times and versions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "examples"
TIMEOUT_S = 900  # of one cell


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with what its cells show in a fresh kernel, whose working directory is the notebook's folder.

    Raises:
        nbclient.exceptions.CellExecutionError: where a cell fails, with its text.
    """
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(
        notebook, timeout=TIMEOUT_S, resources=place, record_timing=False, coalesce_streams=True, kernel_name="python3"
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def shown(cell: nbformat.NotebookNode) -> str:
    """Text that a cell printed or showed, pictures left out."""
    texts = [
        output["text"] if output["output_type"] == "stream" else output.get("data", {}).get("text/plain", "")
        for output in cell.get("outputs", [])
        if not any(kind.startswith("image/") for kind in output.get("data", {}))
    ]
    return "\n".join(texts)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(executed(path), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")
