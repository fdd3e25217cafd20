"""Try whether the regression gate closes on a mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_json, write_json, write_text
from lookalike.training.traces.comparison import trace_difference
from lookalike.training.traces.mutation import mutated_traces


def mutation(
    *, name: str, entry: Mapping[str, Any], requests: Mapping[str, Mapping[str, Any]], reference: str, verdict: str
) -> None:
    """Trace some recipes with a mistake in the code, and hold them against the committed traces.

    Args:
        name: name of the mutation.
        entry: the mutation's entry of ``params/mutations.yaml``.
        requests: arguments of the stage ``trace`` but for its output, by ``recipe@dataset``.
        reference: JSON with the committed traces.
        verdict: JSON to write: what the gate says of each recipe.

    Raises:
        ValueError: if a trace equals the committed one, so that the gate lets the mistake pass, or the mutation does
            not fit the code or does not run.
    """
    committed = read_json(reference)
    try:
        traces = mutated_traces(entry["find"], entry["replace"], requests)
    except ValueError as error:
        raise ValueError(f"mutation {name} {error}") from None
    differences = {trace: trace_difference(traces[trace], committed[trace]) for trace in requests}
    for trace, difference in differences.items():
        print(f"{trace}: {difference or 'no difference'}")
    passed = [trace for trace, difference in differences.items() if not difference]
    if passed:
        raise ValueError(f"mutation {name} passes the gate: the traces of {', '.join(passed)} are the committed ones")
    write_json(verdict, {"name": name, "what": entry["what"], "differences": differences})


def overview(verdicts: Sequence[str], *, report: str) -> None:
    """Write what closed the gate on each mutation, as Markdown."""
    closed = [read_json(path) for path in verdicts]
    title = f"# Mutations\n\nThe gate closes on {len(closed)} of {len(closed)}.\n"
    lines = [title, "| mutation | what | first difference |", "|:--|:--|:--|"]
    for mutant in closed:
        trace, difference = next(iter(mutant["differences"].items()))
        lines.append(f"| {mutant['name']} | {mutant['what']} | {trace}, {difference} |")
    write_text(report, "\n".join(lines) + "\n")
