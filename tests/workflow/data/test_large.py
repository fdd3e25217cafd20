"""A list of the size of Stanford Online Products is read, split and sampled in under 1 GB."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KINDS = (
    *("bicycle", "cabinet", "chair", "coffee_maker", "fan", "kettle"),
    *("lamp", "mug", "sofa", "stapler", "table", "toaster"),
)
ROLES = {"train": (range(1, 11319), 59551), "test": (range(11319, 22635), 60502)}

# Peak memory of a process that does nothing else. `ru_maxrss` would not do: it starts at that of the parent.
MEASURED = """
import json, re, sys
from pathlib import Path
from lookalike.workflow.data import read_manifest, read_split, write_manifest
from lookalike.sampling.samplers import build_sampler
frame = read_split("sop", Path(sys.argv[1]))
digest = write_manifest(frame, Path(sys.argv[2]))
frame = read_manifest(Path(sys.argv[2]))
train = frame[frame["role"] == "train"]
drawn = {}
for name, values in (("m_per_class", {"per_class": 4}), ("hierarchical", {"per_class": 4})):
    sampler = build_sampler(
        name, values, labels=train["label"], coarse_labels=train["coarse_super"], batch_size=112, batches=200
    )
    sampler.set_epoch(0)
    batches = list(sampler)
    drawn[name] = [len(batches), max(map(max, batches)), sorted(set(map(len, batches)))]
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps({"peak": peak, "rows": len(frame), "train": len(train), "drawn": drawn}))
"""


def product_rows(first_id, labels, images):
    """List lines of one role: every class has 5 or 6 pictures, those with 6 first."""
    larger = images - 5 * len(labels)
    rows = []
    for place, label in enumerate(labels):
        kind = label % 12
        for number in range(6 if place < larger else 5):
            path = f"{KINDS[kind]}_final/11{label:010d}_{number}.JPG"
            rows.append(f"{first_id + len(rows)} {label} {kind + 1} {path}")
    return rows


@pytest.fixture
def products(tmp_path, write_lines):
    top = tmp_path / "sop" / "Stanford_Online_Products"
    for kind in KINDS:
        (top / f"{kind}_final").mkdir(parents=True)
    first_id = 1
    for role, (labels, images) in ROLES.items():
        rows = product_rows(first_id, labels, images)
        assert len(rows) == images
        write_lines(top / f"Ebay_{role}.txt", ["image_id class_id super_class_id path", *rows])
        for row in rows:
            (top / row.rpartition(" ")[2]).touch()
        first_id += images
    return top.parent


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_120053_rows_are_read_split_and_sampled_in_under_a_gigabyte(products, tmp_path):
    command = [sys.executable, "-c", MEASURED, str(products), str(tmp_path / "sop.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == 120_053
    assert found["train"] == 59_551
    for batches, last, sizes in found["drawn"].values():
        assert batches == 200
        assert sizes == [112]
        assert 0 < last < 59_551
    assert 10**8 < found["peak"] < 10**9
