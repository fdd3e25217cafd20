"""Calls of a project that has a copy of the package of its own."""

import os


def call(project, line):
    path = os.pathsep.join([str(project.root / "src"), os.environ.get("PYTHONPATH", "")])
    done = project.run(line, PYTHONPATH=path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
