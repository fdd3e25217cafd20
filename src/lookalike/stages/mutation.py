"""Try whether the regression gate closes on a mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.files import read_json, write_json, write_text
from lookalike.traces.comparison import trace_difference
from lookalike.traces.mutated import mutated_traces


def mutation(
    *, name: str, entry: Mapping[str, Any], requests: Mapping[str, Mapping[str, Any]], reference: str, verdict: str
) -> None:
    """Trace some recipes with a mistake in the code, and hold them against the committed traces.

    Args:
        name: of the mutation.
        entry: of ``params/mutations.yaml``.
        requests: by ``recipe@dataset``, arguments of the stage ``trace`` but for its output.
        reference: JSON with the committed traces.
        verdict: JSON to write: what the gate says of each recipe.

    Raises:
        ValueError: if a trace equals the committed one, so that the gate lets the mistake pass, or the mutation does
            not fit the code or does not run.
    """
    committed = read_json(reference)
    try:
        found = mutated_traces(entry["find"], entry["replace"], requests)
    except ValueError as error:
        raise ValueError(f"mutation {name} {error}") from None
    differences = {trace: trace_difference(found[trace], committed[trace]) for trace in requests}
    for trace, difference in differences.items():
        print(f"{trace}: {difference or 'no difference'}")
    passed = [trace for trace, difference in differences.items() if not difference]
    if passed:
        raise ValueError(f"mutation {name} passes the gate: the traces of {', '.join(passed)} are the committed ones")
    write_json(verdict, {"name": name, "what": entry["what"], "differences": differences})


def overview(verdicts: Sequence[str], *, report: str) -> None:
    """Write what closed the gate on each mutation, as Markdown."""
    found = [read_json(path) for path in verdicts]
    title = f"# Mutations\n\nThe gate closes on {len(found)} of {len(found)}.\n"
    lines = [title, "| mutation | what | first difference |", "|:--|:--|:--|"]
    for each in found:
        trace, difference = next(iter(each["differences"].items()))
        lines.append(f"| {each['name']} | {each['what']} | {trace}, {difference} |")
    write_text(report, "\n".join(lines) + "\n")
