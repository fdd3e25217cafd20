"""Let DVC run the data stages that it owns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from lookalike.paths import project_root


def reproduce(stage: str, outputs: list[str], archives: str = "") -> None:
    """Bring one stage of ``dvc.yaml`` up to date; its outputs exist afterwards.

    What lies in DVC's cache is checked out rather than made again.

    Args:
        stage: its name, with ``@`` and the item for a stage of several.
        outputs: what the stage leaves, relative to the project's root.
        archives: folder with archives that are on disk already.

    Raises:
        ValueError: if DVC fails; the message is its last line.
    """
    root = project_root()
    with FileLock(root / ".snakemake" / "dvc.lock"):  # DVC refuses a second command instead of waiting
        _dvc("repro", stage, archives=archives)
        if any(not (root / output).exists() for output in outputs):
            _dvc("checkout", *outputs)
    # DVC leaves a file the time it had in the cache, and Snakemake takes an output older than its job for a failure.
    for output in outputs:
        (root / output).touch()


def _dvc(*arguments: str, archives: str = "") -> None:
    # The stages' `python` must be this one, also where the environment is not activated.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1", "LOOKALIKE_ARCHIVES": archives}
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=project_root(), env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="\n")
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
        raise ValueError(f"dvc {' '.join(arguments)}: {lines[-1] if lines else 'no message'}")
