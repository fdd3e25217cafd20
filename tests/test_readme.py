"""README's lines of Python run, anywhere and without a download."""

import re

import torch
from PIL import Image

from projects import ROOT

README = (ROOT / "README.md").read_text()


def test_its_lines_of_python_search_and_explain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.hub, "download_url_to_file", None)
    [lines] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    names = {}
    exec(lines, names)
    assert names["best"].path.parent.name == "Bravo-Apple-Juice"
    assert Image.open("why.png").size == (144, 144)  # the whole photograph
