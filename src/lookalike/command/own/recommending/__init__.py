"""What ``lookalike recommend`` does: measure untrained networks, train what fits the time, and say what to take."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.command.own.recommending.saying import next_lines, shown, terms
from lookalike.command.own.recommending.training import chosen_trainings, train, trained, untrained
from lookalike.command.own.recommending.work import DATASET, GOES_ON, work_of
from lookalike.files import write_json, write_text
from lookalike.own.asked import check_request
from lookalike.own.recommend.classes import read_classes
from lookalike.own.recommend.confusion import confused
from lookalike.own.recommend.page import Report, data, page, text
from lookalike.own.recommend.starts import starts_at_hand
from lookalike.own.recommend.verdict import Case, recommend
from lookalike.paths import project_root
from lookalike.plan.results import result_file
from lookalike.running.devices import cores_at_hand, visible_devices
from lookalike.running.ending import Terminated, listening

SIZE_PX, SIZE_PX_GPU = 128, 224
PAGE = "recommendation.html"


def print_recommendation(folder: Path, *, out: Path | None = None, **asked: Any) -> None:
    """Measure, print what to take, and write it as a page and JSON.

    Args:
        folder: of pictures, with a folder per class.
        out: the page; by default among the results.
        asked: as for `report_of`.

    Raises:
        ValueError: as `report_of`, and where the call is stopped.
    """
    try:
        with listening():
            report, written = report_of(folder, **asked)
    except (KeyboardInterrupt, Terminated):
        raise ValueError(f"stopped; {GOES_ON}") from None
    place = out or written / PAGE
    write_text(place, page(report))
    write_json(place.with_suffix(".json"), data(report))
    print(text(report))
    print(f"\n{shown(place)}, {shown(place.with_suffix('.json'))}")


def report_of(
    folder: Path,
    *,
    hours: float = 0.5,
    pictures_per_class: int | None = None,
    weights: Sequence[str] = (),
    size_px: int | None = None,
    cores: int | None = None,
) -> tuple[Report, Path]:
    """The recommendation, and the folder of its work.

    Args:
        folder: of pictures, with a folder per class.
        hours: that all of it may take.
        pictures_per_class: that take part, ``None`` for all.
        weights: of networks, ``NAME=FILE`` each.
        size_px: side of the pictures.
        cores: that are used, ``None`` for all.

    Raises:
        ValueError: in one line, for a folder that is too small or of another form, weights that cannot be used, or
            hours, sizes or names that cannot be.
    """
    began = time.monotonic()
    check_request(hours=hours, weights=weights, size_px=size_px, cores=cores)
    classes = read_classes(folder, most=pictures_per_class)
    size = (SIZE_PX_GPU if visible_devices() else SIZE_PX) if size_px is None else size_px
    work = work_of(classes, starts_at_hand(weights, size_px=size), size_px=size)
    cores = cores or cores_at_hand()
    rows = [row for start in work.starts for row in untrained(work.of(start), cores)]
    until = began + 3600 * hours
    chosen = chosen_trainings(work, hours, until, cores)
    if chosen.schedule.budget is not None:
        chosen = train(work, chosen, hours, until, cores)
        rows += trained(chosen)
    recommendation = recommend([each.row for each in rows])
    found = next(each for each in rows if each.row is recommendation.row)
    stored = [
        found.part.results / result_file(found.plan, kind, found.way.recipe, DATASET, 0)
        for kind in ("model", "embeddings")
    ]
    pairs = confused(found.plan.deciding(found.way.recipe, DATASET)["evaluate"], *stored)
    pictures = project_root() / found.plan.datasets[DATASET].root
    lines = next_lines(found, pictures, pairs)
    if recommendation.case in (Case.UNDECIDED, Case.NOT_TRAINED):
        options = [*(f"--weights {shlex.quote(each)}" for each in weights), f"--hours {4 * hours:g}"]
        options += [f"--pictures-per-class {pictures_per_class}"] * (pictures_per_class is not None)
        options += [f"--size {size_px}"] * (size_px is not None)
        lines.append(f"lookalike recommend {shlex.quote(str(folder))} {' '.join(options)}")
    report = Report(
        str(folder), recommendation, pairs, pictures, chosen.schedule.left_out, terms(work, chosen, hours), lines
    )
    return report, work.folder
