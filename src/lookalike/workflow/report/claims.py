"""The verdicts on the papers' claims as tables, and as a page for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lookalike.base.files import replacing, write_text
from lookalike.workflow.plan.claims import SIDES, Comparison, Stated
from lookalike.workflow.report.statistics.claim import (
    LOOKS,
    LOOKS_AT_HALVES,
    PRIMARY,
    RATES,
    SECOND,
    Direction,
)
from lookalike.workflow.report.statistics.decisions import margin_of
from lookalike.workflow.report.statistics.verdict import OF_CLAIMS, Verdict, counted
from lookalike.workflow.report.tables.layout import DASH
from lookalike.workflow.report.tolerance import OF_RP
from lookalike.workflow.report.verdicts import BEFORE, INTERVAL, OF_ROW, judged, measured, with_left, with_rca
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.pages import Claim

OF_ROWS = {"every": "in every row", "mean": "in the mean of rows", "some": "in some rows"}


def claims(
    claims: Mapping[str, Tree],
    runs: Sequence[Tree],
    *,
    scale: str,
    crossed: bool,
    changed: Sequence[str],
    baseline: Sequence[str],
    learned: Sequence[str],
    started: Sequence[str],
    mapped: Sequence[str],
    output: str,
    verdicts: str,
    not_run: Sequence[Tree] = (),
    before: str = "",
) -> None:
    """Write the verdict on every claim as CSV and Markdown.

    Args:
        claims: entries of ``params/claims.yaml`` by name, as they are written.
        runs: as `claim_runs` gives them, in mappings.
        scale: what the scale calls itself.
        crossed: whether seeds train on either half of the classes.
        changed: JSON files with what the changed recipes reached, in the order of the runs; beside those of retrieval
            lies what their classes reached. Where the pictures have no masks they do not tell what lies on the object,
            and what is claimed of it has no data.
        baseline: the same of the baselines.
        learned: JSON files of the metrics of all that has to have learned, in the order of runs and learners.
        started: the same before any training.
        mapped: of changed and baseline before any training but after RCA, where a run has them.
        output: CSV to write, with every row; ``.md`` beside it is for readers.
        verdicts: CSV to write, with every claim.
        not_run: rows that nothing was measured of, as ``runs``, each once: it says so, and still counts.
        before: CSV with what the rule before said of rows that are older than this rule, if there are any.

    Raises:
        ValueError: for a file without the metric that is claimed about, sides that were not tested on the same
            pictures, and a file that its classes contradict.
    """
    stated = {name: checked(Claim, claim, name) for name, claim in claims.items()}
    rows = list(measured(runs, changed, baseline, zip(learned, started, strict=True)))
    looks = LOOKS_AT_HALVES if crossed else LOOKS
    left = [Comparison(**{**run, "learners": tuple(run["learners"])}) for run in not_run]
    of_rows, of_claims = judged(stated, rows, looks, left)
    of_rows, of_claims = with_left(stated, with_rca(of_rows, runs, changed, baseline, mapped), of_claims, left)
    if before:
        said = pd.read_csv(before).rename(columns={"verdict": "before"})
        of_rows = of_rows.merge(said, "left", BEFORE, validate="one_to_one")
    for path, frame in ((output, of_rows), (verdicts, of_claims)):
        with replacing(path) as temporary:
            frame.to_csv(temporary, index=False, float_format="%.4f")
    shown = pd.read_csv(output), pd.read_csv(verdicts)  # rounded as there, so that the two say the same
    write_text(Path(output).with_suffix(".md"), markdown(stated, *shown, scale=scale, looks=looks))


def markdown(stated: Stated, rows: pd.DataFrame, verdicts: pd.DataFrame, *, scale: str, looks: Sequence[int]) -> str:
    """All claims for readers, from the tables of `judged`: counts of verdicts, a line and then a table per claim."""
    verdicts = verdicts.set_index("claim")
    lines = [_claim_line(name, claim, rows, verdicts) for name, claim in stated.items()]
    parts = ["# What the papers claim, and what was measured here", _notes(rows, verdicts, scale, looks)]
    parts += [_table(_counts(stated, verdicts)), _table(lines)]
    for name, claim in stated.items():
        own = [_row_line(row) for _, row in rows[rows["claim"] == name].iterrows()]
        asked = f"{claim.says} ({claim.place}.) Claimed: {_claimed(claim)}."
        told = f"**{verdicts['verdict'][name].capitalize()}.** " if name in verdicts.index else ""
        parts += [f"## {name}", f"{told}{asked}", _table(own) if own else "Not tested: no data."]
    return "\n\n".join(parts) + "\n"


def _table(lines: Sequence[Mapping[str, str]]) -> str:
    return pd.DataFrame(lines).fillna(DASH).to_markdown(index=False, disable_numparse=True)


def _counts(stated: Stated, verdicts: pd.DataFrame) -> list[dict[str, str]]:
    """Number of claims with each verdict: those that either sign fulfils apart, with and without the starts, by RP."""
    kinds = {"of one sign": Direction.DIFFERENT.__ne__, "that either sign fulfils": Direction.DIFFERENT.__eq__}
    return [
        {"claims": f"{kind}{words}"} | {each: str(count) for each, count in counted(own, OF_CLAIMS).items()}
        for kind, is_of in kinds.items()
        for column, words in (("verdict", ""), ("regardless", ", whatever has learned"), (f"{OF_RP}verdict", ", by RP"))
        for own in [verdicts[column][[is_of(stated[name].direction) for name in verdicts.index]].dropna()]
    ]


def _claimed(claim: Claim) -> str:
    return f"{claim.metric} {claim.direction}, {OF_ROWS[claim.quantifier]}"


def _claim_line(name: str, claim: Claim, rows: pd.DataFrame, verdicts: pd.DataFrame) -> dict[str, str]:
    own = [row for _, row in rows[(rows["claim"] == name) & rows["decides"].astype(bool)].iterrows()]
    said, by_rp, difference = verdicts.loc[name, ["verdict", f"{OF_RP}verdict", "difference"]] if own else [None] * 3
    return {
        "claim": name,
        "verdict": str(said or "no data"),
        "by RP": by_rp if isinstance(by_rp, str) else DASH,
        "claimed": _claimed(claim),
        "place": claim.place,
        "mean difference": f"{difference:+.1f}" if isinstance(difference, float) and np.isfinite(difference) else DASH,
        **{f"rows: {each}": str(count) for each, count in counted([row["verdict"] for row in own], OF_CLAIMS).items()},
    }


def _row_line(row: pd.Series) -> dict[str, str]:
    own = f" (as in the paper, with its own {row['besides']})" if isinstance(row["besides"], str) else ""
    stand_in = "" if row["dataset"] == row["published"] else f" ({row['dataset']})"
    before = {"rule before": row["before"] if isinstance(row["before"], str) else DASH} if "before" in row else {}
    named = {
        "data set": f"{row['published']}{stand_in}",
        "changed": row["changed"],
        "baseline": f"{row['baseline']}{own}",
    }
    if row["verdict"] == Verdict.NOT_RUN:
        return {**named, "verdict": row["verdict"], **before}
    return {
        **named,
        **{f"{side} mean": f"{row[f'{side}_mean']:.1f} ± {row[f'{side}_deviation']:.1f}" for side in SIDES},
        **_told_cells(row, "", ""),
        **_told_cells(row, OF_RP, " by RP"),
        "classes": f"{row['classes']:.0f}" if row["classes"] > 1 else DASH,
        "start": "unknown"
        if pd.isna(row["start"])
        else f"{row['start']:.1f}, then {row['gain']:+.1f} (above {row['gain_low']:+.1f})",
        "over RCA": _over_rca(row),
        **before,
    }


def _over_rca(row: pd.Series) -> str:
    """Gains of training over both sides' starts after RCA, with their verdicts."""
    if pd.isna(row["changed_rca"]):
        return DASH
    said = [f"{row[f'{side}_over_rca']:+.1f} ({row[f'{side}_over_rca_verdict']})" for side in SIDES]
    return f"{said[0]}, baseline {said[1]}"


def _beside_rca(rows: pd.DataFrame) -> str:
    """Numbers of trained recipes above and below their starts after RCA, in a sentence."""
    names = ["dataset", "recipe", "verdict"]
    sides = [rows[["dataset", side, f"{side}_over_rca_verdict"]].set_axis(names, axis="columns") for side in SIDES]
    trained = pd.concat(sides).dropna().drop_duplicates()
    if trained.empty:
        return ""
    words = {Verdict.HIGHER: "above", Verdict.LOWER: "below", Verdict.SMALL: "within the margin of"}
    counts = [f"{(trained['verdict'] == verdict).sum()} are decidedly {word} it" for verdict, word in words.items()]
    return (
        "**Over RCA**: R@1 over that of the untrained start after relevant component analysis of the training classes, "
        f"which nothing trains. Of {len(trained)} trained recipes {', '.join(counts)}, and "
        f"{(trained['verdict'] == Verdict.UNDECIDED).sum()} are open."
    )


def _told_cells(row: pd.Series, prefix: str, by: str) -> dict[str, str]:
    own = row[[f"{prefix}{name}" for name in OF_ROW]].set_axis(OF_ROW)
    shown = [DASH] * 4
    if not pd.isna(own["difference"]):
        shown = [_interval(*own[INTERVAL]), f"{own['level']:.2f} %", f"{own['seeds']:.0f}", own["verdict"]]
    return {f"{name}{by}": cell for name, cell in zip(("difference", "level", "seeds", "verdict"), shown, strict=True)}


def _notes(rows: pd.DataFrame, verdicts: pd.DataFrame, scale: str, looks: Sequence[int]) -> str:
    """What the tables show, as a list."""
    rates = ", ".join(f"{100 * rate:g} % after {look}" for look, rate in zip(looks, RATES, strict=True))
    crossed = " Seeds train on two fixed halves of the classes; other training classes are not covered."
    said = [
        "**Numbers**: percent after the last epoch, which nothing has chosen; ± is the deviation over all seeds.",
        "**Difference**: changed minus baseline in points, by seed and test class. Its interval is for other seeds and "
        f"other classes of their kind.{crossed if looks == LOOKS_AT_HALVES else ''}",
        "**Verdict**: by R@1 (P@1 is the same); that by RP stands beside and decides nothing of it. *Small* is within "
        f"{margin_of(PRIMARY):g} points of zero, {margin_of(SECOND):g} of RP. *Seeds* are those that it took.",
        f"**Errors**: the false-discovery rate of verdicts on claims is kept at {100 * sum(RATES):g} % ({rates} "
        "seeds), for R@1, for RP and for other numbers each.",
    ]
    if {*verdicts["seeds"].dropna()} - {*looks}:
        said.append("Between two looks verdicts are for the time being.")
    said += [
        "**As in the paper**: a pair beside a clean one is judged by itself, and decides nothing of its claim.",
        "**Start**: R@1 of the baseline's network without training (of a disturbed pair as its sides are without that, "
        "the less certain one), then what training adds, and a bound that this exceeds with 95 %. Where the bound is "
        "not above zero the row is *not tested*; it still counts.",
    ]
    if Verdict.NOT_RUN in {*rows["verdict"]}:
        said.append("**Not run**: the row wants trainings that nobody has made; it still counts.")
    if "start" in rows and rows["start"][rows["verdict"] != Verdict.NOT_RUN].isna().any():
        said.append("Where the start is *unknown* nothing says whether it learned, and the row is judged.")
    said += [told] if (told := _beside_rca(rows)) else []
    if "before" in rows:
        said.append(
            "**Rule before**: by one metric and the row's own variance; today's was chosen after these were seen."
        )
    return "\n".join([f"Scale: {scale}. The rule: docs/verdicts.md.", "", *(f"- {each}" for each in said)])


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
