"""What jobs print on standard error is kept off the terminal, and told."""

import subprocess
import sys

from snakemake_logger_plugin_lookalike import call as calls
from snakemake_logger_plugin_lookalike.call import Call
from snakemake_logger_plugin_lookalike.terminal import Terminal
from waiting import wait_until

PLAY = """
import subprocess, sys
from snakemake_logger_plugin_lookalike.terminal import Terminal
told = []
terminal = Terminal(told.append)
terminal.take()
print("of this process", file=sys.stderr)
job = "import sys; print('of a job', file=sys.stderr); sys.stderr.write('half a line')"
subprocess.run([sys.executable, "-c", job])
terminal.read()
assert told == ["of a job"], told
terminal.give_back()
assert told == ["of a job", "half a line"], told
subprocess.run([sys.executable, "-c", "import sys; print('afterwards', file=sys.stderr)"])
print("at the end", file=sys.stderr)
"""


def test_only_this_process_prints_between_take_and_give_back():
    done = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "of this process\nafterwards\nat the end\n"


def test_what_jobs_print_is_read_on_where_nobody_sees_the_call_any_more(monkeypatch):
    class Gone(Terminal):
        times = 0

        def read(self):
            self.times += 1

    def fail(self):
        raise OSError("Input/output error")

    monkeypatch.setattr(calls, "TICK_S", 0.01)
    monkeypatch.setattr(calls.Lines, "tick", fail)
    terminal = Gone(lambda line: None)
    call = Call({"train": 1}, terminal, quiet={"all"}, colour=False)
    wait_until(lambda: terminal.times >= 3, 10, "nothing was read")
    call.end("", [])
