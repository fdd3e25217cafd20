"""Files are read whole or refused."""

import pytest

from lookalike.files import read_tensors


def test_a_broken_file_of_tensors_is_named(tmp_path):
    (tmp_path / "seed0.safetensors").write_bytes(b"half a file")
    with pytest.raises(
        ValueError, match=r"seed0\.safetensors is no whole safetensors file .*; remove it and call again"
    ):
        read_tensors(tmp_path / "seed0.safetensors")
