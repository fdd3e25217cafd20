"""One module per layout on disk: ``read(specification, root)`` gives ``path, label, role, class_name`` and more."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from lookalike.workflow.data.readers import cars, cub, cuhk03, folder, inat, inshop, pascal5i, sop
from lookalike.workflow.settings.datasets import Dataset

READERS: dict[str, Callable[[Dataset, Path], pd.DataFrame]] = {
    "cub": cub.read,
    "cars": cars.read,
    "sop": sop.read,
    "inshop": inshop.read,
    "inat": inat.read,
    "cuhk03": cuhk03.read,
    "pascal5i": pascal5i.read,
    "folder": folder.read,
}
KEYPOINT_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {"cub": cub.read_keypoints}
