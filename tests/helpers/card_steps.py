"""What a step of each kind of training asks of a pretended card, one JSON line each.

With the path of a file, ``python tests/helpers/card_steps.py tests/card_steps.json`` keeps it as what the tests allow.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from pretended_card import Pretended, counted, environment, pretend

ROOT = Path(__file__).resolve().parents[2]


def steps():
    """A line for each kind, from its second step: the first one also makes what is kept."""
    pretend()
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from gpu_day import kinds_of_steps, small_step

    for kind, train in kinds_of_steps().items():
        with Pretended():
            _, _, step = small_step(train, torch.device("cuda"))
            step()
            with counted() as counts:
                step()
        own = sum(number for place, number in counts.waits.items() if place.startswith("lookalike"))
        waits = {"own": own, "of_libraries": counts.waits.total() - own, "waits": counts.waits}
        yield {"kind": kind, **waits, "launches": counts.launches, "uploads": counts.uploads.total()}


def keep(path: Path) -> None:
    """Write what the tests allow: two waits of our own, and more where they are listed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__], env=environment(Path(folder)), stdout=subprocess.PIPE, text=True, check=True
        )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kept = {
        "own_above_two": {line["kind"]: line["own"] for line in lines if line["own"] > 2},
        "of_libraries": {line["kind"]: line["of_libraries"] for line in lines if line["of_libraries"]},
        "launches": {line["kind"]: line["launches"] for line in lines},
    }
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    if "LOOKALIKE_PRETENDED_CARD" in os.environ:
        for found in steps():
            print(json.dumps(found), flush=True)
    else:
        keep(Path(sys.argv[1]))
