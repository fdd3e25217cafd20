"""Snakemake's own report holds tables and figures with category, caption and labels, and needs no network."""

import json
import re

import pytest

pytestmark = pytest.mark.slow

FIGURE = "results/own/figures/contextual_4.png"  # computed, without a run
LINE = f"--cores 2 --resources gpu=1 --configfile own.yaml -- tables {FIGURE}"
ROWS = "  rows: &rows\n    - {label: Margin, recipe: compared_margin}\n"
NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}


def results_of(report):
    """Results of a report by path, and the paths of each category."""
    text = report.read_text()
    results = json.loads(re.search(r"^\s*(?:var|const|let) results = (\{.*\});?$", text, re.MULTILINE)[1])
    categories = json.loads(re.search(r"^\s*(?:var|const|let) categories = (\{.*\});?$", text, re.MULTILINE)[1])
    flat = {name: [path for paths in parts.values() for path in paths] for name, parts in categories.items()}
    return results, flat


@pytest.mark.nightly
def test_tables_and_figures_stand_in_a_report_that_is_made_offline(project):
    path = project.root / "params" / "tables" / "comparison.yaml"
    text = path.read_text()
    start, end = text.index("  rows: &rows\n"), text.index("# The same on figurines")
    path.write_text(text[:start] + ROWS + text[end:])
    done = project.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    done = project.run(LINE.replace("-- ", "--report report.html -- "), **NOWHERE)
    assert done.returncode == 0, done.stderr
    report = project.root / "report.html"
    assert report.stat().st_size < 10_000_000
    results, categories = results_of(report)
    assert set(categories) == {"Tables", "Figures"}
    assert set(results) == {"results/own/tables/comparison.csv", FIGURE}
    table, figure = results["results/own/tables/comparison.csv"], results[FIGURE]
    assert table["labels"] == {"table": "comparison"}
    assert "on the test pictures of pictures" in table["caption"]
    assert figure["labels"] == {"figure": "contextual_4"}
    assert figure["mime_type"] == "image/png"
