"""What a split of own pictures must hold so that something can be learned from it and found in it."""

from __future__ import annotations

import pandas as pd

from lookalike.data.roles import UNLABELLED


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
    """How many queries of a split find no other picture of their class, so that no metric counts them, and of how many.

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
