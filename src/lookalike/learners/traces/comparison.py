"""Hold traces against the committed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lookalike.files import json_text

Trace = Mapping[str, Sequence[float]]
# Of the largest number of a quantity. Float64 rounds at 1e-16 and three steps keep that below 1e-11 on every processor
# tried; what a mistake changes is far above.
TOLERANCE = 1e-6
# Below this a quantity is a zero that rounding left, such as the gradient of a part that a loss does not reach.
ZERO = 1e-12


def trace_difference(measured: Trace, reference: Trace) -> str:
    """The first quantity of a trace that is not the committed one, empty if there is none.

    Args:
        measured: lists of numbers by quantity.
        reference: the committed ones.

    Returns:
        Quantity, and where it differs the index in its list, the reference and what was measured.
    """
    for quantity, expected in reference.items():
        values = measured.get(quantity)
        if values is None:
            return f"{quantity}: the reference has it, this trace does not"
        if len(values) != len(expected):
            return f"{quantity}: reference of {len(expected)} numbers, found {len(values)}"
        allowed = max(TOLERANCE * max(map(abs, expected), default=0.0), ZERO)
        for index, (value, number) in enumerate(zip(values, expected, strict=True)):
            if not abs(value - number) <= allowed:
                return f"{quantity}[{index}]: reference {number:.9g}, found {value:.9g}"
    return ""


def trace_differences(measured: Mapping[str, Trace], reference: Mapping[str, Trace]) -> dict[str, str]:
    """What differs, by trace: those of the reference that differ or are not there. New ones do not count."""
    differences = {
        name: trace_difference(measured[name], expected)
        if name in measured
        else "the reference has it, this call does not"
        for name, expected in reference.items()
    }
    return {name: difference for name, difference in differences.items() if difference}


def as_text(traces: Mapping[str, Trace]) -> str:
    """Traces as JSON, a line for each quantity, numbers to twelve digits: a thousandth of what is compared."""
    rounded = {
        name: {quantity: [float(f"{value:.12g}") for value in values] for quantity, values in sorted(trace.items())}
        for name, trace in sorted(traces.items())
    }
    lines = [
        f'"{name}": {{\n'
        + ",\n".join(f'  "{quantity}": {json_text(values, where=name)}' for quantity, values in trace.items())
        for name, trace in rounded.items()
    ]
    return "{\n" + "\n},\n".join(lines) + "\n}\n}\n"
