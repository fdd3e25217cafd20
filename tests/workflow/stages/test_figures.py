"""The committed page of figures and its captions are what follows from the committed numbers of all its figures."""

import pytest

from lookalike.base.files import write_text
from lookalike.workflow.plan.figures import read_figures
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.call import configuration
from lookalike.workflow.stages.figures import figures_page
from projects import ROOT, committed

BEFORE = "mini: embedded figurines, network `tiny` started from other species, 100 batches"  # the set-up of its figures


@pytest.mark.parametrize(
    ("scale", "overlays"), [("mini", []), (None, [ROOT / "params" / "overlays" / "birds.yaml"])], ids=["mini", "birds"]
)
def test_the_committed_page_and_captions_follow_from_the_committed_checks(scale, overlays, tmp_path):
    plan = Plan(configuration(scale, overlays))
    folder = plan.folder
    shown = committed(f"{folder}/figures.md")
    figures = {name: str(tmp_path / "figures" / name) for name in read_figures(plan) if f'<a id="{name}">' in shown}
    assert len(figures) == shown.count('<a id="') > 0
    for name, path in figures.items():
        write_text(f"{path}.json", committed(f"{folder}/figures/{name}.json"))
    page, title = tmp_path / "figures.md", shown.partition("\n")[0].removeprefix("# Figures: ")
    assert title == (BEFORE if scale == "mini" else f"{plan.folder}: {plan.title}")
    figures_page(figures, scale=title, output=str(page))
    assert page.read_text() == shown
    for name in figures:
        assert (tmp_path / "figures" / f"{name}.md").read_text() == committed(f"{folder}/figures/{name}.md")
