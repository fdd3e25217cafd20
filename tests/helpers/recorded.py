"""Results with a record of what made them, as if a stage had left them."""

import json
from pathlib import Path

from lookalike.base.files import file_digest, write_json
from lookalike.workflow.running.records import BESIDE, record_of


def leave(path, content, **made_by):
    """Write a JSON file and its record: of ``code``, ``data`` and ``weights`` those of the training."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content))
    beside = {key: made_by[key] for key in BESIDE if key in made_by}
    trained = {key: [value] for key, value in made_by.items() if key not in BESIDE}
    about = {"stage": "evaluate", "sha256": file_digest(Path(path)), "bytes": Path(path).stat().st_size}
    write_json(record_of(path), {**about, **beside, "trained": trained})
