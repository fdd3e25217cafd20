"""Roles of classes, training and testing, and checks that a split can be learned from and searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from lookalike.workflow.settings.datasets import Dataset

Selection = Sequence[int] | Sequence[str]
ROLES = ({"train", "test"}, {"train", "query", "gallery"})
# Beside them, of own pictures only: those of no known class, which lie in every gallery, and in a manifest those that
# the split left out for a reason, which nothing reads.
UNLABELLED, LEFT_OUT = "unlabelled", "left_out"
SEARCHED = ("test", "query", "gallery")  # between epochs
EMBEDDED = (*SEARCHED, UNLABELLED)
NO_LABEL = -1  # of unlabelled pictures


def assign_roles(
    frame: pd.DataFrame, classes: Mapping[str, Selection] | None, names: Mapping[int, str]
) -> pd.DataFrame:
    """The rows of the chosen classes with the columns ``role`` and ``class_name``.

    Args:
        frame: one row per picture with the column ``label``.
        classes: for each role the first and the last class id, both included, or a list of class names. Pictures of
            classes in no role are left out. ``None`` gives the first half of the classes, in the order of their ids, to
            training and the second to testing; the middle one of an odd number goes to training.
        names: label to name of every class the data set lists.

    Raises:
        ValueError: if a class has two roles or no picture, or if a class name is unknown.
    """
    if classes is None:
        classes_of = _halves(sorted(names))
    else:
        classes_of = {role: selected_classes(selection, names) for role, selection in classes.items()}
    role_of: dict[int, str] = {}
    for role, labels in classes_of.items():
        for label in labels:
            if label in role_of:
                raise ValueError(f"class {label} is in the roles {role_of[label]} and {role}; a class has one role")
            role_of[label] = role
    check_no_class_is_empty(frame, role_of, names)
    kept = frame[frame["label"].isin(list(role_of))]
    nameless = kept["label"][~kept["label"].isin(list(names))]
    if len(nameless):
        raise ValueError(f"class {nameless.iloc[0]} has images, but is not in the list of classes")
    return kept.assign(role=kept["label"].map(role_of), class_name=kept["label"].map(dict(names)))


def selected_classes(selection: Selection, names: Mapping[int, str]) -> list[int]:
    """Labels from a pair of class ids, both included, or from a list of class names.

    Raises:
        ValueError: if it is neither, or if a name is unknown.
    """
    if len(selection) == 2 and all(isinstance(value, int) for value in selection):
        first, last = (int(value) for value in selection)
        if first > last:
            raise ValueError(f"[{first}, {last}] is no choice of classes: the first class id is above the last")
        return list(range(first, last + 1))
    label_of = {name: label for label, name in names.items()}
    unknown = [value for value in selection if value not in label_of]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no class; allowed: first and last class id, or names as {list(label_of)[:3]}"
        )
    return [label_of[str(name)] for name in selection]


def check_no_class_is_empty(frame: pd.DataFrame, role_of: Mapping[int, str], names: Mapping[int, str]) -> None:
    """Raise ``ValueError`` naming the first class of a role that has no picture."""
    empty = sorted(set(role_of) - set(frame["label"]))
    if empty:
        name = names.get(empty[0], "not in the list of classes")
        raise ValueError(f"class {empty[0]} ({name}) of role {role_of[empty[0]]} has no image")


def check_roles(frame: pd.DataFrame, specification: Dataset) -> None:
    """Raise ``ValueError`` unless the roles belong together and agree with ``self_match``."""
    present = set(frame["role"]) - {UNLABELLED}
    if not any(present <= roles for roles in ROLES):
        raise ValueError(f"roles {sorted(present)} found; allowed: train, test or train, query, gallery")
    asymmetric = bool(present & {"query", "gallery"})
    stated = "self_match" in specification.model_fields_set
    if stated and specification.self_match == asymmetric and present - {"train"}:
        raise ValueError(
            f"self_match={specification.self_match} does not go with the roles {sorted(present)}; "
            "a test set is its own gallery, query and gallery are two"
        )


def check_usable(frame: pd.DataFrame, title: str) -> None:
    """Refuse a split in which nothing can be learned or nothing found.

    Args:
        frame: the table of a split.
        title: title of the data set, for the message.

    Raises:
        ValueError: in one line that says what would be enough.
    """
    of_role = {str(role): rows for role, rows in frame.groupby("role")}
    for role, doing in (("train", "learn from"), ("test", "test on")):
        if role in of_role:
            _check_classes(of_role[role], f"{title}, {role}", doing, alone=UNLABELLED not in of_role or role == "train")
    if "train" not in of_role:
        raise ValueError(
            f"{title} has no training classes; models of another data set embed it if `trained_on` names that one"
        )
    if not of_role.keys() & {"test", "query"}:
        raise ValueError(f"{title} has no test classes; it takes at least 2, each with 2 pictures or more")
    if "query" in of_role:
        galleries = set(of_role["gallery"]["label"]) if "gallery" in of_role else set()
        if not galleries & set(of_role["query"]["label"]):
            raise ValueError(
                f"{title}: no query has a picture of its class in the gallery, so none can be right; "
                "a gallery with 1 picture of each query's class is enough, or `trained_on` to embed only"
            )


def queries_without_positive(frame: pd.DataFrame) -> tuple[int, int]:
    """Number of a split's queries without another picture of their class, which no metric counts, and of all queries.

    Args:
        frame: the table of a split.
    """
    labels = {role: rows["label"] for role, rows in frame.groupby("role")}
    if "query" in labels:
        queries = labels["query"]
        return int((~queries.isin(labels.get("gallery", queries[:0]))).sum()), len(queries)
    queries = labels.get("test", frame["label"][:0])
    return int((~queries.duplicated(keep=False)).sum()), len(queries)


def _check_classes(rows: pd.DataFrame, where: str, doing: str, *, alone: bool) -> None:
    classes = rows["label"].nunique()
    if alone and classes < 2:
        raise ValueError(f"{where}: 1 class to {doing} tells nothing apart; 2 classes are enough")
    if rows.drop_duplicates("path")["label"].value_counts().max() < 2:
        raise ValueError(
            f"{where}: each of the {classes} classes has 1 picture, so none has another of its class; "
            "2 pictures per class are enough"
        )


def _halves(labels: list[int]) -> dict[str, list[int]]:
    middle = (len(labels) + 1) // 2
    if middle == len(labels):
        raise ValueError(f"{len(labels)} class(es) cannot be halved; at least 2 are needed")
    return {"train": labels[:middle], "test": labels[middle:]}
