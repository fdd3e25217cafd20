"""Version control of a project: the git repository that its files are in, and DVC, which owns the stages of data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from lookalike.base.paths import project_root
from lookalike.workflow.running.ending import end_descendants

_CLOSING = "Having any troubles?"  # DVC's last line below an error that it did not foresee
# How Python ends a traceback: the class of the error, with its module, and its message.
_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception)): (?P<message>.+)$", re.MULTILINE)


def reproduce(stage: str, outputs: list[str], *, archives: str = "", processes: int = 1) -> None:
    """Bring one stage of ``dvc.yaml`` up to date; its outputs exist afterwards.

    What lies in DVC's cache is checked out rather than made again. A project that no git repository tracks, as one
    unpacked from an archive, is one without version control to DVC, which works on no file that git ignores: the rules
    may be those of a repository above it, or of the person. So is one whose ``data`` is a link to another disk, where
    DVC would want to tell git what to ignore.

    Args:
        stage: its name, with ``@`` and the item for a stage of several.
        outputs: what the stage leaves, relative to the project's root.
        archives: folder with archives that are on disk already.
        processes: that the stage may start.

    Raises:
        ValueError: if DVC fails; the message is the error of the stage, or DVC's own where the stage has none.
    """
    root = project_root()
    with FileLock(root / ".snakemake" / "dvc.lock"):  # DVC refuses a second command instead of waiting
        if not _knows_no_git(root) and (
            not is_own(root) or ignores(root, "dvc.yaml", "dvc.lock") or _lie_elsewhere(root, outputs)
        ):
            _dvc("config", "--local", "core.no_scm", "true")
        _dvc("repro", stage, LOOKALIKE_ARCHIVES=archives, LOOKALIKE_PROCESSES=str(processes))
        if any(not (root / output).exists() for output in outputs):
            _dvc("checkout", *outputs)
    # DVC leaves a file the time it had in the cache, and Snakemake takes an output older than its job for a failure.
    for output in outputs:
        (root / output).touch()


def reason(output: str, errors: str) -> str:
    """Why DVC failed: the last error of the stage that it ran, else the last line of DVC itself."""
    of_the_stage = list(_ERROR.finditer(f"{output}\n{errors}"))
    if of_the_stage:
        kind, message = of_the_stage[-1].group("kind", "message")
        return message if kind == "ValueError" or "." in kind else f"{kind}: {message}"
    lines = [line.strip() for line in (errors if errors.strip() else output).splitlines()]
    lines = [line for line in lines if line and not line.startswith(_CLOSING)]
    return lines[-1].removeprefix("ERROR: ") if lines else "no message"


def _knows_no_git(root: Path) -> bool:
    local = root / ".dvc" / "config.local"
    return local.is_file() and "no_scm" in local.read_text(encoding="utf-8")


def _lie_elsewhere(root: Path, outputs: list[str]) -> bool:
    """Whether links lead to another place than the project for any of some files."""
    return not all((root / output).parent.resolve().is_relative_to(root.resolve()) for output in outputs)


def _dvc(*arguments: str, **told: str) -> None:
    # The stages' `python` must be this one, also where the environment is not activated.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1", **told}
    command = [sys.executable, "-m", "dvc", *arguments]
    with subprocess.Popen(
        command, cwd=project_root(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            output, errors = process.communicate()
        except BaseException:  # the stage is a process of DVC's, which would go on without it
            end_descendants()
            raise
    print(output, errors, sep="\n")
    if process.returncode:
        raise ValueError(f"dvc {' '.join(arguments)}: {reason(output, errors)}")


def is_own(project: Path) -> bool:
    """Whether the project's files are in git: its ``dvc.yaml`` is, whatever folder the repository begins in."""
    return _git(project, "ls-files", "--error-unmatch", "dvc.yaml") is not None


def ignores(project: Path, *names: str) -> bool:
    """Whether a rule of the project, of a folder above it or of the person makes git leave out any of some files."""
    return _git(project, "check-ignore", "--no-index", *names) is not None


def commit(project: Path) -> str:
    """Commit of the project, marked ``-dirty`` where a file differs from it; ``unknown`` without git."""
    said = _git(project, "describe", "--always", "--dirty", "--abbrev=12") if is_own(project) else None
    return said or "unknown"


def has_changes(project: Path, folder: str) -> bool:
    """Whether files below a folder of the project are other than its commit has them."""
    return bool(_git(project, "status", "--porcelain", "--", folder))


def _git(project: Path, *words: str) -> str | None:
    """Output of git, ``None`` where it refuses or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()
