"""Write traces of whatever copy of the package is imported: ``python -m lookalike.traces REQUESTS.json``.

The file holds a list of arguments of ``lookalike.stages.trace.trace``. Prints where the package lies.
"""

import sys
from pathlib import Path

import torch

from lookalike.files import read_json
from lookalike.paths import PACKAGE
from lookalike.stages.trace import trace

if __name__ == "__main__":
    torch.set_num_threads(1)
    print(PACKAGE)
    sys.stdout.flush()
    for request in read_json(Path(sys.argv[1]))["requests"]:
        trace(**request)
