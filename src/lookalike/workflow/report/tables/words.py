"""Words for readers in place of the keys that the files use."""

from __future__ import annotations

import re

from lookalike.metrics.names import ON_TRAINING

DATASETS = {
    "cub": "CUB",
    "cars": "Cars196",
    "sop": "SOP",
    "inshop": "In-Shop",
    "inat": "iNaturalist",
    "cuhk03": "CUHK03",
    "duke": "DukeMTMC-reID",
    "pascal5i": "PASCAL-5i",
}
BACKBONES = {"resnet50": "ResNet-50", "googlenet": "GoogLeNet", "bn_inception": "BN-Inception"}
COLUMNS = {"query_ms": "ms per query", "warm_query_ms": "ms per query, warm", "training_s": "training"}
SYMBOLS = {"lambda": "λ", "gamma": "γ", "alpha": "α", "beta": "β", "eps": "ε", "s_tilde": "mean similarity"}
# Parts of a printed row's set-up, as the transcription calls them.
SETTINGS = {
    "dagger": "marked † in print",
    "own_rerun": "run by the authors",
    "miner": "with miner",
    "no Lreg": "without regulariser",
    "no re-rank": "not re-ranked",
    "label=Yes": "learned from masks",
    "label=No": "no masks to learn from",
    "Lml only": "metric loss alone",
    "Lml+gamma*Lsm": "metric loss and mining",
    "test only": "at test time only",
    "test+train": "in training too",
}


def dataset_words(name: str) -> str:
    """Name of a data set: the usual one of a published set, else its own."""
    return DATASETS.get(name, name.replace("_", " "))


def metric_words(name: str) -> str:
    """Name of a metric: ``binary_iou_fold0`` is binary IoU, fold 0."""
    if name.startswith(ON_TRAINING):
        return f"{metric_words(name.removeprefix(ON_TRAINING))} on training pictures"
    if name.startswith("delta_"):
        return f"gain in {metric_words(name.removeprefix('delta_'))}"
    if match := re.fullmatch(r"(mean|binary)_iou_(?:mean|fold(\d))", name):
        return f"{match[1]} IoU" + (f", fold {match[2]}" if match[2] else "")
    if match := re.fullmatch(r"mAP_(\w+)", name):
        return f"mAP, {match[1]} level"
    return {"rank1": "rank 1"}.get(name, name.replace("_", " "))


def setting_words(text: str) -> str:
    """Set-up of a printed row: ``own_rerun;res=224`` is run by the authors, 224 px."""
    return ", ".join(_setting(part) for part in text.split(";"))


def label_words(label: str, setting: str, embedding_dim: str) -> str:
    """Label of a row: of a sweep without underscores and with Greek letters, of a printed row with its set-up in words.

    Args:
        label: what the table calls the row.
        setting: set-up of the printed row, empty if there is none.
        embedding_dim: embedding size of the printed row, empty if there is none.
    """
    key = f" ({setting}, {embedding_dim})"
    if label.endswith(key):
        parts = [setting_words(setting), embedding_dim]
        return f"{label.removesuffix(key)} ({', '.join(part for part in parts if part)})"
    with_letters = re.sub(r"\b(\w+)(?= = )", lambda match: SYMBOLS.get(match[1], match[1]), label)
    return with_letters.replace("_", " ")


def column_words(name: str) -> str:
    """Heading of any other column of a table."""
    return COLUMNS.get(name, name.replace("_", " "))


def _setting(part: str) -> str:
    if part in SETTINGS:
        return SETTINGS[part]
    key, equals, value = part.partition("=")
    if not equals:
        return part
    named = {"res": f"{value} px", "arch": value}
    return named.get(key, f"{SYMBOLS.get(key, key)} = {value}")
