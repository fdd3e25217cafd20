"""What is on disk of each data set and whether it is right, as ``lookalike data`` prints it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from lookalike.data.inventory import DatasetState, archive_faults, data_faults, dataset_state
from lookalike.data.pictures import copies_of, copy_faults
from lookalike.data.splits import load_specification
from lookalike.paths import archives_of, project_root
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.text import WIDTH, counted, human_bytes, one_line

_READINESS = {"ready": "Ready", "comes by itself": "Come by themselves", "waits for you": "Wait for you"}


def status(names: Iterable[str], data: Path, archives: Path) -> int:
    """Print what of each data set is on disk and how to get what is missing.

    Args:
        names: names of files in ``params/datasets``.
        data: folder of unpacked data, ``<name>`` below it for each data set.
        archives: folder of archives.

    Returns:
        0, whatever is missing.
    """
    print(f"Data below {_short(data)}, archives anywhere below {_short(archives)}\n")
    names_by_readiness: dict[str, list[str]] = {title: [] for title in _READINESS.values()}
    for name in names:
        state = dataset_state(name, data / name, archives)
        names_by_readiness[_READINESS[state.readiness]].append(name)
        print(f"{name}: {state.specification['title']}")
        for title, text in _facts(state, data / "splits" / f"{name}.csv"):
            print(_wrapped(title, text))
        print(flush=True)
    for title, listed in names_by_readiness.items():
        print(textwrap.fill(f"{title}: {', '.join(listed) or 'none'}", WIDTH, subsequent_indent="  "))
    return 0


def verify(names: Iterable[str], data: Path, archives: Path) -> int:
    """Read every archive and every unpacked file of the data sets again.

    Args:
        names: names of files in ``params/datasets``.
        data: folder of unpacked data; the manifest of a data set is ``splits/<name>.csv`` below it.
        archives: folder of archives.

    Returns:
        1 if there is a fault, else 0. Each fault is one line.
    """
    count = 0
    for name in names:
        for subject, faults in _checks(name, data, archives):
            for fault in faults:
                print(f"fault  {name}: {one_line(fault)}", flush=True)
            if not faults:
                print(f"ok     {name}: {subject}", flush=True)
            count += len(faults)
    print(counted(count, "fault"))
    return int(count > 0)


def _checks(name: str, data: Path, archives: Path) -> Iterable[tuple[str, list[str]]]:
    """What was checked of one data set, each with its faults: archives and unpacked files, then resized copies."""
    specification = load_specification(name)
    right, faults = archive_faults(specification, archives)
    report = [f"{counted(right, 'archive')} right"] if right else []
    if (data / name).exists():
        manifest = data / "splits" / f"{name}.csv"
        images, of_data = data_faults(specification, data / name, manifest)
        faults += of_data
        how = "each byte as in the manifest" if manifest.is_file() else "counted only, there is no manifest"
        report.append(f"{counted(images, 'picture')}, {how}")
    yield "; ".join(report) or "nothing on disk", faults
    for copy in copies_of(name, data / "pictures"):
        yield f"resized copy {_short(copy)}, each byte as it was written", copy_faults(copy)


def _facts(state: DatasetState, manifest: Path) -> Iterable[tuple[str, str]]:
    """What there is to say about one data set, as title and text."""
    if not state.problem:
        counts = "counts verified" if state.is_counted else "no counts to verify"
        bytes_of = f"bytes recorded in {_short(manifest)}" if manifest.is_file() else "no manifest yet"
        contents = f"{counted(state.images, 'picture')} of {counted(state.classes, 'class')}, {human_bytes(state.size)}"
        yield "data", f"{_short(state.root)}: {contents}; {counts}, {bytes_of}"
    elif state.root.exists():
        yield "data", f"{_short(state.root)}, {human_bytes(state.size)}: not usable: {state.problem}"
    else:
        yield "data", "not drawn yet" if "generator" in state.specification else "not unpacked yet"
    for archive_state in state.archives:
        archive = archive_state.archive
        remarks = [human_bytes(archive["size"]) if "size" in archive else ""]
        remarks += [f"packaging {archive['packaging']}" if "packaging" in archive else ""]
        remarks += ["optional" if archive.get("optional") else ""]
        told = ", ".join([archive["file"], *filter(None, remarks)])
        if archive_state.path is None:
            yield "archive", f"{told}: {archive_state.problem or 'not on disk'}"
        else:
            yield "archive", f"{told}: {_short(archive_state.path)}, {archive_state.problem or 'checksum verified'}"
    yield "licence", state.licence
    yield "to do", _to_do(state)


def _to_do(state: DatasetState) -> str:
    if state.readiness == "ready":
        return "nothing; `lookalike data verify` reads every byte again"
    root = _short(state.root)
    if variants := state.specification.get("one_of"):
        return f"name one of its variants instead, {' or '.join(variants)}, or unpack one of them into {root}"
    if "generator" in state.specification:
        return "nothing; the first run that uses it draws it"
    if state.readiness == "comes by itself":
        by_hand = f" Should an address fail: {state.manual}" if state.manual else ""
        return f"nothing; the first run that uses it gets what is missing and unpacks it.{by_hand}"
    if state.root.exists():
        return f"what {root} holds is not overwritten: complete it, or remove it to have it made anew. {state.manual}"
    instruction = (
        f"Put the files into the archives' folder, or unpacked into {root}:" if state.archives else f"Fill {root}:"
    )
    return f"{instruction} {state.manual}"


def _wrapped(title: str, text: str) -> str:
    start = f"  {title:<9}"
    return textwrap.fill(
        one_line(text),
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _short(path: Path) -> str:
    """The path relative to the project, where it lies in there."""
    try:
        return str(path.relative_to(project_root()))
    except ValueError:
        return str(path)


def archives_folder() -> Path:
    """Where archives lie: ``$LOOKALIKE_ARCHIVES``, else ``archives`` of ``params/config.yaml``."""
    return project_root() / archives_of(read("params/config.yaml", Configuration).dump()["archives"])
