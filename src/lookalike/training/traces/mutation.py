"""Traces of a copy of the package with one mistake in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookalike.files import read_json, write_json
from lookalike.paths import PACKAGE


def mutated_traces(find: str, replace: str, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Traces that the package gives with one text of it replaced, in a process of its own.

    Args:
        find: text that stands once in the package, in whatever module.
        replace: text in its place.
        requests: arguments of ``lookalike.stages.trace.trace`` but for ``output``, by name.

    Returns:
        The traces by name.

    Raises:
        ValueError: if the text does not stand once in the package, or the copy does not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / PACKAGE.name
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        edit_once(copy, find, replace)
        outputs = {trace: str(folder / f"{number}.json") for number, trace in enumerate(requests)}
        asked = [{**request, "output": outputs[trace]} for trace, request in requests.items()]
        write_json(folder / "requests.json", {"requests": asked})
        ran = subprocess.run(
            [sys.executable, "-m", f"{PACKAGE.name}.stages.trace", str(folder / "requests.json")],
            env={**os.environ, "PYTHONPATH": name, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            said = ran.stderr.strip().splitlines() or [f"ended with status {ran.returncode}"]  # killed without a word
            raise ValueError(f"does not run: {said[-1]}")
        if (used := ran.stdout.partition("\n")[0]) != str(copy):
            raise ValueError(f"ran {used!r} in place of the changed copy")
        return {trace: read_json(path) for trace, path in outputs.items()}


def edit_once(folder: Path, find: str, replace: str) -> None:
    """Replace a text in the one module below a folder that holds it.

    Raises:
        ValueError: if it stands nowhere, or more than once.
    """
    counts = {path: path.read_text(encoding="utf-8").count(find) for path in sorted(folder.rglob("*.py"))}
    holding = [path for path, count in counts.items() if count]
    if sum(counts.values()) != 1:
        places = ", ".join(str(path.relative_to(folder)) for path in holding) or "no module"
        raise ValueError(f"no longer applies: {find!r} stands {sum(counts.values())} times in the package ({places})")
    holding[0].write_text(holding[0].read_text(encoding="utf-8").replace(find, replace), encoding="utf-8")
