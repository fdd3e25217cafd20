"""Numbers and columns for people."""

import pytest

from lookalike.base.text import aligned, counted, human_bytes, human_seconds, in_yaml, one_line


@pytest.mark.parametrize(
    ("size", "text"), [(7, "7 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (2_000_000, "2 MB"), (44.6e9, "44.6 GB")]
)
def test_bytes_are_told_in_powers_of_a_thousand(size, text):
    assert human_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "0.012 s"), (42, "42 s"), (120, "2 min"), (5400, "1.5 h"), (3.6e6, "1,000 h")]
)
def test_durations_are_told_in_seconds_minutes_or_hours(seconds, text):
    assert human_seconds(seconds) == text


def test_nouns_follow_their_number():
    assert (counted(1, "class"), counted(2, "class"), counted(1200, "run")) == ("1 class", "2 classes", "1,200 runs")


def test_a_text_becomes_one_line():
    assert one_line("a\n  b") == "a b"


def test_columns_are_aligned_the_first_to_the_left():
    assert aligned([["name", "n"], ["a", "10"]]) == "name   n\na     10"


def test_values_are_written_as_yaml_has_them():
    assert [in_yaml(value) for value in (True, None, 1, 1.5, "a")] == ["true", "null", "1", "1.5", "a"]
