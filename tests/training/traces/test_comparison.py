"""A trace is equal to a millionth, or the line says where it is not."""

import json

import pytest

from lookalike.training.traces.comparison import as_text, trace_difference, trace_differences

REFERENCE = {"loss": [2.0, 1.0, 0.5], "metrics/R@1": [0.25], "gradient/proxies": [0.0, 0.0]}


def test_a_ten_millionth_of_the_largest_number_is_no_difference():
    assert trace_difference({**REFERENCE, "loss": [2.0, 1.0, 0.5 + 1e-7]}, REFERENCE) == ""


@pytest.mark.parametrize("off", [1e-5, float("nan"), float("inf")])
def test_a_difference_names_quantity_place_reference_and_found(off):
    line = trace_difference({**REFERENCE, "loss": [2.0, 1.0 + off, 0.5]}, REFERENCE)
    assert line == f"loss[1]: reference 1, found {1 + off:.9g}"


def test_a_zero_may_be_what_rounding_left_of_it():
    assert trace_difference({**REFERENCE, "gradient/proxies": [1e-15, 0.0]}, REFERENCE) == ""
    assert trace_difference({**REFERENCE, "gradient/proxies": [1e-9, 0.0]}, REFERENCE)


def test_a_missing_quantity_and_another_number_of_steps_differ():
    assert "loss: the reference has it" in trace_difference({"metrics/R@1": [0.25]}, REFERENCE)
    assert trace_difference({**REFERENCE, "loss": [2.0]}, REFERENCE) == "loss: reference of 3 numbers, found 1"


def test_a_trace_that_is_gone_differs_and_a_new_one_does_not():
    found = {"margin@cub": REFERENCE, "new@cub": REFERENCE}
    assert trace_differences(found, {"margin@cub": REFERENCE}) == {}
    assert list(trace_differences(found, {"gone@cub": REFERENCE})) == ["gone@cub"]


def test_the_text_reads_back_as_the_same_traces():
    traces = {"margin@cub": {"loss": [1 / 3, 2e-20]}, "triplet@cub": REFERENCE}
    assert trace_differences(json.loads(as_text(traces)), traces) == {}
