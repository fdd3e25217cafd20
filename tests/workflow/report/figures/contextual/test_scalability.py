"""Time and memory of losses, each measured in a process of its own."""

import pandas as pd
import pytest

from lookalike.workflow.report.figures.contextual.scalability import Options, checks, data
from lookalike.workflow.report.figures.parts.caption import findings

CONTEXTUAL = {"name": "contextual", "k": 4, "eps": 0.05, "lam": 1.0, "gamma": 0.0}
CONTEXTUAL |= {"target_similarity": 0.3, "positive_margin": 0.75, "negative_margin": 0.6}
OPTIONS = {
    "losses": {"Contextual": CONTEXTUAL, "ROADMAP": {"name": "roadmap"}},
    "sizes": {"cpu": [16, 1200], "cuda": [16, 1200]},
    "per_class": 4,
    "feature_dim": 8,
    "embedding_dim": 4,
    "repeats": 1,
    "seed": 0,
}


def grown(time_power, ratio):
    """A frame whose second loss takes ``ratio`` times the first."""
    rows = [
        {"loss": loss, "batch_size": size, "seconds": factor * size**time_power, "megabytes": factor * size**2.0}
        for loss, factor in (("Contextual", 1.0), ("ROADMAP", ratio))
        for size in (100, 200, 400, 800)
    ]
    return pd.DataFrame(rows).assign(device="a machine", threads=2)


def test_a_large_batch_is_seen_in_the_memory_of_its_own_process():
    frame = data([], Options(**OPTIONS))
    assert list(frame["loss"]) == ["Contextual", "ROADMAP"] * 2
    assert (frame["seconds"] > 0).all()
    large = frame[frame["batch_size"] == 1200]["megabytes"]
    assert (large > 1200**2 * 4 / 1e6).all()  # at least the matrix of similarities


def test_the_verdicts_are_on_what_the_paper_says_and_name_power_and_ratio():
    found = checks(grown(3.0, 2.5))
    assert "a machine, 2 threads" in found[0].says
    assert "power 3.0 (Contextual) and 3.0 (ROADMAP)" in found[1].says
    assert "2.5 times the time of Contextual at 800" in found[2].says
    said = [str(finding.verdict) for finding in findings(found)]
    assert said == ["measured", "without seeds: yes", *["measured"] * 3, "not measured", "not measured"]
    assert {type(check.holds) for check in found} == {type(None), bool}  # as JSON takes it


@pytest.mark.parametrize("power", [1.6, 4.0])
def test_what_grows_more_slowly_or_faster_than_the_cube_is_not_cubic(power):
    assert checks(grown(power, 0.5))[1].holds is False


def test_a_measurement_that_fails_is_named():
    with pytest.raises(RuntimeError, match="measuring contextual with 2 pictures failed: k=4 is outside"):
        data([], Options(**{**OPTIONS, "sizes": {"cpu": [2], "cuda": [2]}}))  # k is 4
