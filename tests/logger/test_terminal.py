"""What jobs print on standard error is kept off the terminal, and told."""

import subprocess
import sys

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
