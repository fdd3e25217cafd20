"""Evaluations that came from elsewhere are kept where a call would make the same."""

import os

from lookalike.plan.brought import asks_again, fits, renew

TODAY = {"code": "c", "settings": "s", "weights": None}


def test_metrics_fit_that_say_of_themselves_what_is_so_today():
    assert fits({**TODAY, "R@1": 0.5}, TODAY)
    for key in TODAY:
        assert not fits({**TODAY, key: "another"}, TODAY)
        assert not fits({other: value for other, value in TODAY.items() if other != key}, TODAY)


def test_a_call_asks_for_evaluations_again_by_a_rule_or_a_file_behind_them():
    assert asks_again(["train"]) and asks_again(["table", "evaluate"])
    assert asks_again(["results/mini/metrics/margin/figurines_birds/seed0.json"])
    assert not asks_again(["table", "tables", "results/mini/tables/diml_1.csv"])
    assert not asks_again([])


def test_a_kept_result_is_made_newer_than_the_script_and_left_alone_where_it_is(tmp_path):
    result, script = tmp_path / "result", tmp_path / "script"
    for path, seconds in ((result, 100), (script, 100)):
        path.touch()
        os.utime(path, (seconds, seconds))
    renew(result, script)
    assert result.stat().st_mtime > 100
    os.utime(result, (101, 101))
    renew(result, script)
    assert result.stat().st_mtime == 101
