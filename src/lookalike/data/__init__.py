"""Data sets on disk: fetch, unpack, read, check. Nothing here needs torch."""

from lookalike.data.archives import ArchiveError
from lookalike.data.download import DownloadError, fetch
from lookalike.data.manifest import manifest_hash, read_manifest, with_file_hashes, write_manifest
from lookalike.data.pictures import copy_faults, read_picture, resized_copy
from lookalike.data.prepare import ensure_data, fetched_by_hand
from lookalike.data.splits import (
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
