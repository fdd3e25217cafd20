"""What this project changes in how Snakemake runs a call; the variable ``LOOKALIKE_PLAIN`` switches all of it off.

1. Jobs are forked from one parent that has torch in memory (`lookalike.running.jobs`): importing it costs as much as a
   short training. A call that gets SIGTERM asks them to end, and jobs in processes of their own, and they save what
   they have reached (`lookalike.running.ending`); Snakemake itself would wait until they have finished.
2. Locks that a killed call has left behind are dropped (`lookalike.running.locks`): the same line goes on.
3. Snakemake's limit to the jobs that it starts in a second is lifted for jobs of this machine: with the limit, 9.27
   sets one more timer at each look for jobs, and each timer looks again a second later; after 200 jobs that is half a
   core.
4. The logger plugin shows a call as a table or a line a job, and reads targets at the end of the line as such
   (`snakemake_logger_plugin_lookalike`), in projects whose default profile names it.

Results do not depend on any of them.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from functools import partial
from typing import Any

VARIABLE = "LOOKALIKE_PLAIN"


def is_plain() -> bool:
    """Whether Snakemake is to run as it is."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def before_a_call(workflow: Any) -> None:
    """Let a call go on where one was killed.

    Args:
        workflow: Snakemake's object of the call. One that a call has sent to a node for a single job is no call: it
            would seem alive in a queue, long after the call itself was killed.
    """
    from lookalike.running.locks import drop_locks_of_the_dead

    if workflow.is_main_process and not is_plain():
        drop_locks_of_the_dead()


def before_its_jobs(workflow: Any, *, tracked: bool) -> subprocess.Popen[bytes] | None:
    """Start the parent of a call's jobs, and start them as soon as they can run.

    Args:
        workflow: Snakemake's object of the call.
        tracked: whether jobs log to MLflow.

    Returns:
        The parent, which lives as long as somebody holds it; ``None`` where jobs are processes of their own: also those
        of another machine or a scheduler, which must not work in a process of the call that has sent them.
    """
    from lookalike.running.ending import pass_on
    from lookalike.running.jobs import start_parent

    if is_plain() or not workflow.local_exec:
        return None
    workflow.scheduler.job_rate_limiter = None
    parent = start_parent(tracked=tracked)
    pass_on(partial(_end_jobs, parent))
    return parent


def _end_jobs(parent: subprocess.Popen[bytes]) -> None:
    """Let the parent end, which asks its jobs to and waits for them; other jobs hear it from here."""
    if parent.stdin:
        parent.stdin.close()
    threading.Thread(target=_tell_jobs, args=({parent.pid},), daemon=True).start()


def _tell_jobs(told: set[int]) -> None:
    """Each once, and again whoever has begun meanwhile, until this process ends."""
    from lookalike.running.ending import AGAIN_S, tell_descendants

    while True:
        told |= {each.pid for each in tell_descendants(besides=told)}
        time.sleep(AGAIN_S)
