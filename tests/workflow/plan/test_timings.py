"""Seconds of finished jobs are read as Snakemake wrote them."""

import pytest

from lookalike.workflow.plan.timings import seconds


def test_a_job_took_the_seconds_of_its_file(tmp_path):
    (tmp_path / "job.tsv").write_text("s\th:m:s\n2.5\t0:00:02\n")
    assert seconds(tmp_path / "job.tsv") == 2.5


@pytest.mark.parametrize("text", [None, "", "s\th:m:s\n"], ids=["none", "empty", "only a header"])
def test_without_numbers_nobody_has_measured_it(tmp_path, text):
    if text is not None:
        (tmp_path / "job.tsv").write_text(text)
    assert seconds(tmp_path / "job.tsv") is None
