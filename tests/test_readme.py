"""What README quotes is what the committed tables and claims say, and its lines of Python run."""

import re

import pytest
import torch
from PIL import Image
from torchvision import models

from own_pictures import write_pictures
from projects import ROOT, cells_of
from rows import METRICS, crossed_on_real_birds, interval_of, rows_of

README = (ROOT / "README.md").read_text()
# What README calls rows of its table: table of the paper, changed row, baseline.
ROWS = {
    "DIML over Margin": ("diml_1", "Margin + DIML", "Margin"),
    "DIML over Multi-Similarity": ("diml_1", "MS + DIML", "MS"),
    "DIML over ProxyAnchor": ("diml_1", "ProxyAnchor + DIML", "ProxyAnchor"),
    "AVSL over Margin": ("avsl_1", "Margin-AVSL", "Margin"),
    "AVSL over ProxyAnchor": ("avsl_1", "ProxyAnchor-AVSL", "ProxyAnchor"),
    "Contextual over Contrastive": ("contextual_2", "Contextual, 512", "Contrastive"),
    "SAM over Triplet": ("sam_1", "Triplet + SAM", "Triplet"),
}


def claimed(folder):
    """Claims on what stands for CUB, by metric and both recipes."""
    cells = [cell for cell in cells_of(f"{folder}/claims") if cell["published"] == "cub"]
    return {(cell["metric"], cell["changed"], cell["baseline"]): cell for cell in cells}


def test_each_row_of_the_table_is_of_the_committed_runs_and_has_the_verdict_of_its_claim():
    lines = re.findall(r"^\| (.+ over .+?) \| (\S+) \| (.+?) \| (.+?) \| (\S+), (.+?) \|$", README, re.MULTILINE)
    assert [line[0] for line in lines] == list(ROWS)
    birds, figurines = claimed("birds"), claimed("mini")
    for label, printed, on_birds, verdict, on_figurines, verdict_there in lines:
        table, *names = ROWS[label]
        metric = METRICS[table.partition("_")[0]]
        changed, baseline = (rows_of(f"birds/tables/{table}", metric)[name] for name in names)
        assert float(printed) == pytest.approx(float(changed["published"]) - float(baseline["published"]), abs=0.051)
        gain = crossed_on_real_birds(changed, baseline, checkpoint="last").estimate()
        assert on_birds == interval_of(gain.mean, *gain.interval(0.05))
        claim = (metric, changed["recipe"], baseline["recipe"])
        assert verdict == birds[claim]["verdict"]
        assert on_figurines == f"{float(figurines[claim]['difference']):+.1f}"
        assert verdict_there == figurines[claim]["verdict"]


def test_what_is_counted_of_claims_stands_in_their_files():
    words = " ".join(README.split())
    birds, figurines = ([cell["verdict"] for cell in cells_of(f"{folder}/claims")] for folder in ("birds", "mini"))
    assert f"they decide {len(birds) - birds.count('undecided')} of {len(birds)}." in words
    holding, failing = figurines.count("holds"), figurines.count("does not hold")
    assert (
        f"On figurines {holding} of {len(figurines)} claims [hold](results/mini/claims.md), {failing} do not." in words
    )


def test_its_lines_of_python_search_and_explain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    torch.save(models.squeezenet1_1(num_classes=1000).state_dict(), "weights.pth")
    pictures = write_pictures(tmp_path / "photos")
    Image.open(pictures[0]).save("query.jpg")
    [lines] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    asked = '"untrained:resnet50"'
    assert lines.count(asked) == 1
    exec(lines.replace(asked, '"untrained:squeezenet1_1=weights.pth"'), {})  # without what is downloaded
    assert Image.open("why.png").size == (224, 224)
