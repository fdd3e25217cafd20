"""How a recommendation was come by, and what can be typed next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from lookalike.command.own.recommending.training import Chosen, Found
from lookalike.command.own.recommending.work import DATASET, GRID, Work
from lookalike.data.manifest import read_manifest
from lookalike.data.roles import LEFT_OUT
from lookalike.data.usable import queries_without_positive
from lookalike.own.recommend.confusion import Pair
from lookalike.own.recommend.schedule import SHARE_OF_TRIAL
from lookalike.text import counted, human_seconds


def terms(work: Work, chosen: Chosen, hours: float) -> list[str]:
    """How it was done, a sentence each."""
    rows = read_manifest(work.of(work.starts[0]).manifest)
    left_out = int((rows["role"] == LEFT_OUT).sum())
    alone, queries = queries_without_positive(rows)
    networks = ", ".join(f"{each.name} at {each.view['crop_px']} px" for each in work.starts)
    said = [work.classes.rule, *work.classes.notes]
    if left_out:
        said.append(
            f"{counted(left_out, 'picture')} cannot be read, lie in two classes or are copies, and took no part."
        )
    if alone:
        said.append(f"{alone:,} of {queries:,} queries are in no metric: no other picture of their class is searched.")
    said.append(f"Networks at hand: {networks}; each untrained, by cosine and with structural matching (DIML).")
    budget = chosen.schedule.budget
    if budget is None:
        return [*said, f"Nothing was trained: no method fits {human_seconds(3600 * hours)}, of 2 seeds of 100 batches."]
    part = chosen.part
    train = part.plan(part.overlay(budget)).deciding("compared_proxy_anchor", DATASET, "train")["train"]
    rest = "; ".join(f"{name} {value:g}" for name, value in train["optimiser"]["lr"].items())
    said.append(
        f"Trained from {part.start.name}, the first of them: {', '.join(chosen.schedule.chosen)}, "
        f"in a fixed order that no result moves; each {budget.seeds} seeds of {budget.batches} batches of "
        f"{part.batch} pictures, in {human_seconds(3600 * hours)} at most by what was measured before."
    )
    said.append("Scored after the last batch; neither an epoch nor a seed was chosen.")
    if budget.trials:
        said.append(
            f"Rates of trunk and head: of {len(GRID)} pairs the best in a trial of each method, of "
            f"{budget.batches // SHARE_OF_TRIAL} batches, on the last fifth of the training classes (params/rates)."
        )
    else:
        said.append(f"Rates are the comparison's own, not tuned to these pictures: {rest}.")
    return said


def next_lines(found: Found, pictures: Path, pairs: Sequence[Pair]) -> list[str]:
    """What can be typed next with the recommended row."""
    folder = found.part.work.classes.folder
    if found.row.trained:
        name, options = f"{found.way.recipe}@{DATASET}", f"--configfile {shlex.quote(shown(found.part.file))}"
    else:
        name, options = shlex.quote(found.part.start.model), f"--size {found.part.start.view['crop_px']}"
    rows = read_manifest(found.part.manifest)
    first = str(rows.loc[rows["role"].isin(("test", "query")), "path"].iloc[0])
    query = _quoted(pictures / (pairs[0].query if pairs else first))
    by, method = (" --by structure", " --method structure") if found.row.structural else ("", "")
    lines = [f"lookalike search {name} {query} --in {_quoted(folder)} --out found.html{by} {options}"]
    if pairs:
        match = _quoted(pictures / pairs[0].match)
        lines.append(f"lookalike explain {name} {query} {match} --out why{method} {options}")
    return lines


def _quoted(path: Path) -> str:
    return shlex.quote(shown(path.resolve()))


def shown(path: Path) -> str:
    """A path as it is typed here: relative where it lies below."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  (links stay)
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)
