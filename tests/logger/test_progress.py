"""Jobs done and left by stage, and how long the rest takes."""

import pytest

from snakemake_logger_plugin_lookalike.progress import Job, Progress


def job(rule, started, outputs=(), inputs=()):
    return Job(rule, f"{rule} something", None, list(outputs), list(inputs), started)


def run(progress, number, rule, started, ended, **files):
    progress.begin(number, job(rule, started, **files))
    progress.finish(number, ended)


def test_stages_count_done_running_planned_and_work():
    progress = Progress({"train": 3, "embed": 3}, 0.0)
    run(progress, 1, "train", 0.0, 4.0)
    progress.begin(2, job("train", 4.0))
    assert progress.by_stage() == {"train": (1, 1, 3, 4.0), "embed": (0, 0, 3, 0.0)}
    assert progress.total == 6


def test_one_job_at_a_time_takes_the_mean_for_each_that_is_left():
    progress = Progress({"train": 10}, 0.0)
    run(progress, 1, "train", 0.0, 4.0)
    run(progress, 2, "train", 4.0, 8.0)
    assert progress.left_s(8.0) == pytest.approx(8 * 4.0)


def test_jobs_side_by_side_take_half_as_long():
    progress = Progress({"train": 10}, 0.0)
    run(progress, 1, "train", 0.0, 4.0)
    run(progress, 2, "train", 0.0, 4.0)
    assert progress.left_s(4.0) == pytest.approx(8 * 4.0 / 2)


def test_what_a_running_job_has_done_counts():
    progress = Progress({"train": 2}, 0.0)
    run(progress, 1, "train", 0.0, 4.0)
    progress.begin(2, job("train", 4.0))
    assert progress.left_s(7.0) == pytest.approx(1.0)


def test_no_time_is_named_before_most_of_what_is_left_is_measured():
    progress = Progress({"split": 2, "train": 100}, 0.0)
    assert progress.left_s(0.0) is None
    run(progress, 1, "split", 0.0, 1.0)
    assert progress.left_s(1.0) is None
    progress.earlier_s["train"] = 3.0  # by an earlier call
    assert progress.left_s(1.0) == pytest.approx(1.0 + 100 * 3.0)


def test_results_are_what_no_other_job_reads_and_not_the_steps_to_it():
    progress = Progress({"table": 1, "page": 1, "tables": 1}, 0.0)
    run(progress, 1, "table", 0, 1, outputs=["t/a.csv", "t/a.md"])
    run(progress, 2, "page", 1, 2, inputs=["t/a.csv"], outputs=["tables.html"])
    run(progress, 3, "tables", 2, 3, inputs=["tables.html", "t/a.md"])
    assert progress.results() == ["tables.html"]


def test_results_in_many_folders_are_named_by_what_they_have_in_common():
    progress = Progress({"trace": 9}, 0.0)
    for number in range(9):
        run(progress, number, "trace", 0, 1, outputs=[f"results/ci/traces/{number}/birds.json"])
    assert progress.results() == ["results/ci/traces/ (9 files)"]


def test_jobs_that_begin_and_end_while_the_state_is_drawn_do_not_disturb_it():
    class Ending(Job):
        """Ends as it is looked at, as in another thread."""

        @property
        def rule(self):
            progress.running.pop(2, None)
            return "train"

        @rule.setter
        def rule(self, value):
            pass

    progress = Progress({"train": 3}, 0.0)
    run(progress, 0, "train", 0.0, 4.0)
    for ask in (progress.by_stage, lambda: progress.left_s(4.0)):
        for number in (1, 2):
            progress.begin(number, Ending("train", "", None, [], [], 1.0))
        assert ask()


def test_a_failed_job_is_neither_done_nor_running():
    progress = Progress({"train": 1}, 0.0)
    progress.begin(1, job("train", 0.0))
    assert progress.fail(1, 2.0).took_s == 2.0
    assert (progress.running, progress.done, len(progress.failed)) == ({}, [], 1)
    assert progress.fail(1, 2.0) is None
