"""Wait for what another process does."""

import time
from collections.abc import Callable

BEGINS_S = 300  # for what begins on a machine with other work: it tells that nothing does, not how long it takes


def wait_until(holds: Callable[[], object], within_s: float, otherwise: str) -> None:
    """Return once something holds; after so many seconds the test fails and says ``otherwise``."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
