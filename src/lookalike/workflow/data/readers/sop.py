"""Stanford Online Products: ``Ebay_train.txt`` and ``Ebay_test.txt`` in ``Stanford_Online_Products``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lookalike.workflow.data.readers.annotations import read_rows
from lookalike.workflow.data.roles import check_no_class_is_empty, selected_classes
from lookalike.workflow.settings.datasets import Dataset

TOP = "Stanford_Online_Products"


def read(specification: Dataset, root: Path) -> pd.DataFrame:
    """One row per listed picture; ``coarse_super`` is the list's ``super_class_id``.

    Where ``classes`` gives the class ids of a role, exactly these must be in the role's list.

    Raises:
        ValueError: if a list is missing or broken, or a class is empty or in the wrong list.
    """
    fields = {"image_id": int, "label": int, "coarse_super": int, "path": str}
    lists = []
    for role in ("train", "test"):
        rows = read_rows(root / TOP / f"Ebay_{role}.txt", fields, skip=1)
        lists.append(rows.assign(role=role, path=f"{TOP}/" + rows["path"]))
    frame = pd.concat(lists, ignore_index=True).drop(columns="image_id")
    frame["class_name"] = frame["path"].str.removeprefix(f"{TOP}/").str.split("/").str[0].str.removesuffix("_final")
    frame["class_name"] += " " + frame["label"].astype(str)
    shared = set(lists[0]["label"]) & set(lists[1]["label"])
    if shared:
        raise ValueError(f"{root / TOP}: class {min(shared)} is in both lists")
    for role, selection in (specification.classes_by_role or {}).items():
        rows = frame[frame["role"] == role]
        wanted = selected_classes(selection, dict(zip(frame["label"], frame["class_name"], strict=True)))
        check_no_class_is_empty(rows, dict.fromkeys(wanted, role), {})
        strange = set(rows["label"]) - set(wanted)
        if strange:
            raise ValueError(
                f"{root / TOP}: class {min(strange)} is in the list of role {role}, but not in its classes"
            )
    return frame
