"""How far a call is: jobs done and left by stage, what each took, and how long the rest will take."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = 5  # of results that a line still names one by one


@dataclass
class Job:
    """One job that has begun.

    Attributes:
        rule: its stage.
        title: what it does, in words.
        log: file that it writes to, if it has one.
        outputs: files that it makes.
        inputs: files that it reads.
        started: seconds since the epoch.
        took_s: how long it took, once it has ended.
    """

    rule: str
    title: str
    log: Path | None
    outputs: list[str]
    inputs: list[str]
    started: float
    took_s: float = 0.0


@dataclass
class Progress:
    """State of a call.

    Attributes:
        planned: jobs by stage, in the order in which stages begin.
        earlier_s: seconds a job of a stage took in earlier calls, where that is known.
        started: seconds since the epoch.
        running: jobs that have begun, by number.
        done: jobs that have ended well, in order.
        failed: jobs that have not, by number, and that have not begun again.
    """

    planned: Mapping[str, int]
    started: float
    earlier_s: dict[str, float] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    done: list[Job] = field(default_factory=list)
    failed: dict[int, Job] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All jobs of the call."""
        return sum(self.planned.values())

    def begin(self, number: int, job: Job) -> None:
        """Note that a job has begun, which may have failed before."""
        self.failed.pop(number, None)
        self.running[number] = job

    def finish(self, number: int, now: float) -> Job | None:
        """Note that a job has ended well; returns it, ``None`` for one that is unknown."""
        job = self.running.pop(number, None)
        if job is not None:
            job.took_s = now - job.started
            self.done.append(job)
        return job

    def fail(self, number: int, now: float) -> Job | None:
        """Note that a job has failed; returns it, ``None`` for one that is unknown."""
        job = self.running.pop(number, None)
        if job is not None:
            job.took_s = now - job.started
            self.failed[number] = job
        return job

    def by_stage(self) -> dict[str, tuple[int, int, int, float]]:
        """By stage: jobs done, running and planned, and seconds of work of those done."""
        done = Counter(job.rule for job in self.done)
        running = Counter(job.rule for job in self._at_work())
        work = dict.fromkeys(self.planned, 0.0)
        for job in self.done:
            work[job.rule] = work.get(job.rule, 0.0) + job.took_s
        return {rule: (done[rule], running[rule], planned, work[rule]) for rule, planned in self.planned.items()}

    def left_s(self, now: float) -> float | None:
        """Seconds that the rest will take, if jobs go on as those before them; ``None`` while too few are measured.

        A stage without a finished job counts with what its jobs took in earlier calls, or as a job of the others; more
        than half of the jobs that are left must belong to stages that are measured.
        """
        stages = self.by_stage()
        work = sum(seconds for *_, seconds in stages.values())
        if not self.done or work == 0:
            return None
        means = {rule: seconds / done for rule, (done, _, _, seconds) in stages.items() if done}
        means = {**self.earlier_s, **means}
        left = {rule: planned - done for rule, (done, _, planned, _) in stages.items()}
        unmeasured = sum(number for rule, number in left.items() if rule not in means)
        if 2 * unmeasured > sum(left.values()):
            return None
        mean = work / len(self.done)
        begun = sum(min(now - job.started, means.get(job.rule, mean)) for job in self._at_work())
        rest = sum(number * means.get(rule, mean) for rule, number in left.items()) - begun
        first = min(job.started for job in (*self.done, *self._at_work()))
        at_once = (work + begun) / max(now - first, 1e-9)  # jobs at a time, pauses between them counted
        return max(rest, 0.0) / max(at_once, 1e-9)

    def _at_work(self) -> list[Job]:
        """Of this moment: one thread draws the state while another adds jobs and takes them away."""
        return list(self.running.values())

    def results(self) -> list[str]:
        """What the call was for: of jobs whose files no other job has read, the one file of a folder, or how many.

        Of more than `FOLDERS` folders only what they have in common is named.
        """
        read = {name for job in self.done if job.outputs for name in job.inputs}
        made = [name for job in self.done if not read.intersection(job.outputs) for name in job.outputs]
        folders: dict[Path, list[str]] = {}
        for name in made:
            folders.setdefault(Path(name).parent, []).append(name)
        if len(folders) > FOLDERS:
            return [f"{os.path.commonpath(folders)}/ ({len(made)} files)"]
        return [
            names[0] if len(names) == 1 else f"{folder}/ ({len(names)} files)"
            for folder, names in sorted(folders.items())
        ]
