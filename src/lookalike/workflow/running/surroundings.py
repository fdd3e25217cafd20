"""Surroundings of a call, read and set before anything else: user, temporary folder, home, caches, streams.

A container runs as a number without a name, in a home that nobody may write to, or on a disk without room. What the
call and its libraries (Snakemake, DVC, MLflow, matplotlib, torch) then miss is put into the environment here, once, and
all jobs inherit it.
"""

from __future__ import annotations

import getpass
import io
import os
import re
import sys
import tempfile
from pathlib import Path

TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # in Python's order
# Folders that libraries keep things in: the variable that names each, and where it is by itself, seen from the home.
KEPT = {
    "XDG_CACHE_HOME": ".cache",  # Snakemake's sources, weights that torch fetches
    "MPLCONFIGDIR": ".config/matplotlib",  # fonts, which every job looks for else
    "DVC_SITE_CACHE_DIR": "/var/tmp/dvc",
}
OWN = Path(".snakemake", "home")  # of a project, for what finds no other place
ROOM = 2**16  # bytes: a disk that does not take them is full
LONGEST = 68  # bytes of a temporary folder's name: a socket's has at most 104, of which libraries take up to 35


def prepare(project: Path) -> list[str]:
    """Change environment and streams of this process so that it and its jobs have a user, folders and caches.

    Args:
        project: folder of the project, where what finds no other place is kept.

    Returns:
        One line for each setting of the person that is not followed.

    Raises:
        ValueError: with the remedy, if no temporary folder can be written to.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        os.environ["LOGNAME"] = str(os.getuid())
    return [*_temporary_folder(project / OWN), *_kept_folders(project / OWN), *_streams()]


def require_plain(project: Path) -> None:
    """Refuse a project in a folder that Snakemake cannot name: it takes braces in paths of scripts for wildcards.

    Raises:
        ValueError: with the sign, the folder and the remedy.
    """
    for folder in (project, *project.parents):
        if sign := re.search("[{}]", folder.name):
            raise ValueError(f"{folder}: Snakemake takes the {sign[0]} for a wildcard's; rename this folder without it")


def require_writable(project: Path) -> None:
    """Refuse a project that a call can leave nothing in.

    Raises:
        ValueError: with the remedy.
    """
    if not can_be_written(project):
        raise ValueError(
            f"{project} cannot be written to by {getpass.getuser()}, or its disk is full: make room, or call as its "
            f"owner (in a container --user {project.stat().st_uid}:{project.stat().st_gid})"
        )


def can_be_written(folder: Path) -> bool:
    """Whether a file has room in a folder, or in the nearest one above it where it is not there yet.

    A file without a name is written: permissions alone tell neither of quotas nor of network folders.
    """
    try:
        nearest = next(each for each in (folder, *folder.parents) if each.exists())
        with tempfile.TemporaryFile(dir=nearest) as stream:
            stream.write(bytes(ROOM))
    except OSError:
        return False
    return True


def _temporary_folder(own: Path) -> list[str]:
    named = [f"{variable}={os.environ[variable]}" for variable in TEMPORARY if os.environ.get(variable)]
    folders = [*(each.partition("=")[2] for each in named), "/tmp", "/var/tmp", str(own)]
    if not any(map(_holds_temporary, folders[:-1])) and can_be_written(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = next(filter(_holds_temporary, folders), None)
    if found is None:
        raise ValueError(f"no temporary folder can be written to and has room ({', '.join(folders)}): set TMPDIR")
    if found == folders[0]:
        return []
    os.environ["TMPDIR"] = tempfile.tempdir = found
    right = f"a folder with room that can be written to, its name up to {LONGEST} characters"
    return [f"{named[0]} is not {right}; temporary files go to {found}"] if named else []


def _holds_temporary(folder: str) -> bool:
    return len(os.fsencode(folder)) <= LONGEST and Path(folder).is_dir() and can_be_written(Path(folder))


def _kept_folders(own: Path) -> list[str]:
    if not Path(os.environ.get("HOME", "")).is_absolute():
        os.environ.pop("HOME", None)  # for the system to be asked, which knows a name's
        try:
            os.environ["HOME"] = str(Path.home())
        except RuntimeError:
            os.environ["HOME"] = str(own)
    said = []
    for variable, usual in KEPT.items():
        named, instead = os.environ.get(variable, ""), str(own / variable.lower())
        if not can_be_written(Path(os.environ["HOME"], named or usual)) and can_be_written(own):
            os.environ[variable] = instead
            said += [f"{variable}={named} cannot be written to, or is full; {instead} is used"] if named else []
    return said


def _streams() -> list[str]:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or stream.encoding.lower() != "utf-8"):
            stream.reconfigure(errors="backslashreplace")
    names = sys.getfilesystemencoding()
    if names != "utf-8" or os.environ.get("PYTHONIOENCODING"):
        os.environ["PYTHONIOENCODING"] = "utf-8:backslashreplace"  # of jobs, whose output is read as UTF-8
    return [] if names == "utf-8" else [f"names of files are read as {names} here: set PYTHONUTF8=1"]
