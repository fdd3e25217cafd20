"""Who has the wheel alone searches, explains and exports in any folder."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from own_pictures import write_pictures
from projects import ROOT

UV = shutil.which("uv")


@pytest.mark.slow
@pytest.mark.skipif(UV is None, reason="uv builds the wheel")
def test_the_wheel_alone_searches_explains_and_exports_outside_of_a_project(tmp_path):
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    folder = tmp_path / "mine"
    write_pictures(folder / "pictures", 4)

    def call(line):
        words = [sys.executable, "-m", "lookalike", *line.split()]
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    model, first, second = "untrained:squeezenet1_1", "pictures/even/000.png", "pictures/odd/001.png"
    searched = call(f"search {model} {first} --in pictures --top 2")
    assert searched.stdout.startswith("4 pictures in pictures, 4 of them new; by cosine"), searched.stderr
    assert (folder / "data" / "indexes").is_dir()
    assert call(f"explain {model} {first} {second}").stdout.startswith("Cosine ")
    own = call(f"search {model} groceries:Lime/0.jpg --in groceries: --top 2")
    assert own.stdout.startswith("120 pictures"), own.stderr
    exported = call(f"export {model} --to out")
    assert exported.returncode == 0, exported.stderr
    refused = call("recommend pictures")
    assert refused.returncode == 2
    assert "is not in a project's folder" in refused.stderr or "too few" in refused.stderr
