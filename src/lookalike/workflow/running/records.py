"""Records kept beside the results, one for each file of a job: its code, settings, inputs and machine.

The record of ``results/mini/metrics/x/y/seed0.json`` is ``results/mini/records/metrics/x/y/seed0.json.record``. Wall
time, device and memory stand there and not in the file itself, so that equal results are equal files. Records hold the
digest of every byte: a job refuses to read a file that is not what its record says, and ``lookalike verify`` names it.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lookalike.base.files import file_digest, read_about, read_json, write_json, write_text
from lookalike.workflow.running.machine import device_peak_megabytes, peak_megabytes, used_device
from lookalike.workflow.settings.layers import settings_digest

RESULTS, RECORDS, COMMITTED = "results", "records", "reference"
SUMS = "sha256sums"  # beside committed results
# What models say of their training, and records of all that is made of them.
TRAINED = ("code", "data", "weights", "seed")
LIBRARIES = ("lookalike", "torch", "torchvision", "numpy", "pytorch-metric-learning")
BESIDE = ("settings", "scored_by", "reads")  # what decides metrics beside their training
PASSING = ("rates", "selection")  # folders in which trainings leave a history alone: their models are thrown away


def job_facts(job: Any) -> dict[str, Any]:
    """Facts of a job that a script passes to `Recording`, as values that JSON can hold.

    Args:
        job: the global ``snakemake`` of the script.
    """
    settings = job.params.get("settings")
    return {
        "stage": job.rule,
        "outputs": [str(path) for path in job.output],
        "inputs": [str(path) for path in job.input],
        "code": job.params.get("code"),
        "settings": None if settings is None else settings_digest(settings),
        **job.params.get("made_by", {}),
    }


def record_of(path: Path | str) -> Path | None:
    """File of a result's record, as a path of the same kind; ``None`` for a file that is no result of a scale."""
    parts = Path(path).parts
    if RESULTS not in parts:
        return None
    scale = parts.index(RESULTS) + 2  # of the file's own part behind it
    scale += parts[scale - 1 : scale] == (COMMITTED,)
    if len(parts) <= scale or parts[scale] == RECORDS or parts[scale - 1] == "benchmarks":
        return None
    return Path(*parts[:scale], RECORDS, *parts[scale:-1], f"{parts[-1]}.record")


def read_record(path: Path | str) -> dict[str, Any] | None:
    """Record of a result, ``None`` where there is none.

    Raises:
        ValueError: if the record is broken, naming it.
    """
    record = record_of(path)
    if record is None or not record.is_file():
        return None
    content = read_json(record)
    if not {"stage", "sha256", "bytes"} <= content.keys():
        raise ValueError(f"{record} is no record of a result. Remove it with {path}, and the next call makes it again")
    return content


def decided_by(path: Path | str) -> dict[str, str]:
    """Digests that decided a run's metrics, as their record says; none without one.

    Returns:
        Those of `BESIDE` that the record holds; ``code``, ``data`` and ``weights`` of the training.

    Raises:
        ValueError: as `read_record`.
    """
    record = read_record(path) or {}
    trained = {key: " ".join(values) for key, values in record.get("trained", {}).items() if values and key != "seed"}
    return {key: record[key] for key in BESIDE if record.get(key)} | trained


def write_sums(folder: Path) -> None:
    """Write the digests of all committed files of a scale, as ``sha256sum --check`` reads them.

    Args:
        folder: ``results/reference/<scale>``.
    """
    write_text(folder / SUMS, "".join(f"{file_digest(folder / name)}  {name}\n" for name in summed(folder)))


def read_sums(folder: Path) -> dict[str, str]:
    """Digests that `write_sums` wrote, by file below the folder; none where it did not.

    Raises:
        ValueError: for a line of another form.
    """
    path, found = folder / SUMS, {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise ValueError(f"{path}: {line!r} is no digest and name of a file; the target `adopt` writes them anew")
        found[name] = digest
    return found


def summed(folder: Path) -> list[str]:
    """Committed files of a scale that have a digest: all but records, which hold digests themselves."""
    files = [path.relative_to(folder) for path in folder.rglob("[!.]*") if path.is_file()]
    return sorted(str(file) for file in files if RECORDS not in file.parts and str(file) != SUMS)


class Recording:
    """A stage at work, as a context: it begins with a look at its inputs, and ends with records of its outputs.

    Args:
        facts: of `job_facts`; ``None`` records nothing.

    Raises:
        ValueError: on entry, if an input is a result and not what its record says.
        OSError: if a file cannot be read, or a record not be written.
    """

    def __init__(self, facts: Mapping[str, Any] | None) -> None:
        self._facts = facts

    def __enter__(self) -> None:
        if self._facts is not None:
            self._began = time.monotonic()
            self._read = _digests(self._facts["inputs"])

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._facts is None or kind is not None:
            return
        outputs = [Path(path) for path in self._facts["outputs"]]
        outputs = [path for path in outputs if record_of(path) and path.is_file() and not _passes(path)]
        behind = _trained([*outputs, *self._read])
        facts = {key: value for key, value in self._facts.items() if key not in ("inputs", "outputs")}
        facts |= {"made_of": self._read, "trained": behind, **_machine(), "seconds": time.monotonic() - self._began}
        for path in outputs:
            record = record_of(path)
            assert record is not None
            write_json(record, {**facts, "sha256": file_digest(path), "bytes": path.stat().st_size})


def _digests(inputs: Iterable[str]) -> dict[str, str]:
    """Digests of input files, by their path in the project."""
    found = {}
    for path in dict.fromkeys(inputs):
        name = os.path.relpath(path)
        if name.startswith("..") or not Path(name).is_file():
            continue  # a file of the package, a folder
        found[name] = file_digest(Path(name))
        record = read_record(name)
        if record is not None and record["sha256"] != found[name]:
            raise ValueError(
                f"{name} is not what {record['stage']} left there: its record says sha256 {record['sha256'][:12]}..., "
                f"it has {found[name][:12]}.... Remove it, and the next call makes it again"
            )
    return found


def _trained(files: Iterable[Path | str]) -> dict[str, list[str]]:
    """Code, data, weights and seeds of all trainings behind some files, as models or records say."""
    found: dict[str, set[str]] = {key: set() for key in TRAINED}
    for path in files:
        said = (read_record(path) or {}).get("trained", {})
        own = _says(Path(path))
        for key in TRAINED:
            found[key] |= {*said.get(key, []), *(["none" if own[key] is None else str(own[key])] if key in own else [])}
    return {key: sorted(values) for key, values in found.items()}


def _says(path: Path) -> dict[str, Any]:
    """Facts of its training that a model's file holds; none of other files."""
    about = read_about(path) if path.suffix == ".safetensors" and record_of(path) else {}
    return about if {"code", "seed"} <= about.keys() else {}


def _machine() -> dict[str, Any]:
    """Device, memory and versions of this process; ``null`` for a value that the system does not tell."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    peak = None
    with suppress(OSError):
        peak = round(peak_megabytes(), 1)
    return {
        "device": used_device(),
        "peak_mb": peak,
        "device_peak_mb": device_peak_megabytes(),
        "versions": versions,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _passes(path: Path) -> bool:
    return path.suffix == ".safetensors" and bool({*path.parts} & {*PASSING})
