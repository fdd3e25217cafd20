"""Data sets on disk: fetch, unpack, read, check. Nothing here needs torch."""

from lookalike.workflow.data.archives import ArchiveError
from lookalike.workflow.data.download import DownloadError, fetch
from lookalike.workflow.data.manifest import manifest_hash, read_manifest, with_file_hashes, write_manifest
from lookalike.workflow.data.pictures import copy_faults, read_picture, resized_copy
from lookalike.workflow.data.prepare import ensure_data, fetched_by_hand
from lookalike.workflow.data.splits import (
    load_specification,
    read_keypoints,
    read_layout,
    read_layout_keypoints,
    read_split,
)

__all__ = [
    "ArchiveError",
    "DownloadError",
    "copy_faults",
    "ensure_data",
    "fetch",
    "fetched_by_hand",
    "load_specification",
    "manifest_hash",
    "read_keypoints",
    "read_layout",
    "read_layout_keypoints",
    "read_manifest",
    "read_picture",
    "read_split",
    "resized_copy",
    "with_file_hashes",
    "write_manifest",
]
