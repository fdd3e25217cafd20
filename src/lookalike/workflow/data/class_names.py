"""Names of classes as folders bear them: one form of each, their order, and the classes that numbers mean."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from lookalike.workflow.data.roles import Selection

_DIGITS = 20  # to which numbers within names are filled up: as text they are in the order of their values then
TOLD = 3  # classes that a message names


def one_form(name: str) -> str:
    """A name in NFC and without white space around it: names that look equal are written in one way."""
    return unicodedata.normalize("NFC", name).strip() or name


def in_order(names: Iterable[str]) -> list[str]:
    """Names as people sort them, numbers in them by their values: 1, 2, 10."""
    return sorted(names, key=lambda name: (re.sub(r"\d+", lambda digits: digits[0].zfill(_DIGITS), name), name))


def remarks_on(written: Iterable[str]) -> list[str]:
    """Remarks on names that are one class, or that only seem to be one, a sentence each.

    Args:
        written: names of folders as they are on the disk.
    """
    said = []
    for name, forms in _alike(written, one_form).items():
        said.append(f"{_listed(forms)} are one name, written in {len(forms)} forms, and one class: {name!r}")
    for names in _alike(map(one_form, written), _without_case).values():
        said.append(f"{_listed(names)} are {len(names)} classes, though their names differ by case or form alone")
    return said


def by_label(classes: Mapping[str, Selection], names: Mapping[int, str]) -> dict[str, Selection]:
    """A choice of classes as it is meant: numbers as labels, and names in one form.

    A pair of numbers means labels, unless a name begins with one of them. Where all names are numbers they are names.

    Args:
        classes: by role the first and the last number, or names.
        names: by label the names of all classes, which are in order.

    Raises:
        ValueError: if two of the chosen names are one, if a number is no name where all names are numbers, or if
            it may mean two classes.
    """
    meant: dict[str, Selection] = {}
    written: dict[str, str] = {}
    for role, selection in classes.items():
        if len(selection) == 2 and all(isinstance(value, int) for value in selection):
            meant[role] = _labels(f"classes.{role}", int(selection[0]), int(selection[1]), names)
            continue
        for name in map(str, selection):
            if one_form(name) in written:
                raise ValueError(f"classes: {written[one_form(name)]!a} and {name!a} are one name, and name one class")
            written[one_form(name)] = name
        meant[role] = [one_form(str(name)) for name in selection]
    return meant


def told(role: str, names: Iterable[str]) -> str:
    """Number of a role's classes, and the first of them by name."""
    ordered = in_order(names)
    return f"{role}: {len(ordered):,} {'class' if len(ordered) == 1 else 'classes'}, {_few(ordered)}"


def _labels(where: str, first: int, last: int, names: Mapping[int, str]) -> Selection:
    """First and last label of the classes that two numbers mean."""
    numbers = {label: int(digits[0]) for label, name in names.items() if (digits := re.match(r"\d+", name))}
    named = [label for label, number in numbers.items() if first <= number <= last]
    if all(re.fullmatch(r"\d+", name) for name in names.values()):
        for number in (first, last):
            bearing = [names[label] for label, own in numbers.items() if own == number]
            if len(bearing) != 1:
                called = f"{_listed(bearing)} are" if bearing else "no class is"
                known = _few(in_order(names.values()))
                raise ValueError(
                    f"{where}: {called} called {number}; all names are numbers, so that it is one ({known})"
                )
        return [min(named), max(named)] if named else [first, last]
    placed = [label for label in names if first <= label <= last]
    if {first, last} & set(numbers.values()) and named != placed:
        raise ValueError(
            f"{where}: [{first}, {last}] may mean the names that begin with these numbers "
            f"({_few([names[label] for label in named])}) or places in their order "
            f"({_few([names[label] for label in placed])}); list the names"
        )
    return [first, last]


def _alike(names: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """Different names of the same key, by key."""
    groups: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        groups.setdefault(key(name), []).append(name)
    return {form: group for form, group in groups.items() if len(group) > 1}


def _without_case(name: str) -> str:
    """A name in lower case, wide and narrow letters alike, without invisible signs."""
    seen = "".join(sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    return " ".join(seen.casefold().split())


def _few(names: list[str]) -> str:
    shown = names if len(names) <= TOLD + 1 else [*names[:TOLD], f"... {names[-1]}"]
    return ", ".join(shown)


def _listed(names: list[str]) -> str:
    """Names with signs that no two of them share."""
    return " and ".join(ascii(name) for name in names)
