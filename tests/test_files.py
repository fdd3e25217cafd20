"""Files are read whole or refused."""

import pytest

from lookalike.files import read_about, read_tensors


@pytest.mark.parametrize("read", [read_tensors, read_about])
def test_what_is_no_file_of_tensors_is_named(tmp_path, read):
    (tmp_path / "seed0.safetensors").write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"seed0\.safetensors is no whole safetensors file \(.*\)$"):
        read(tmp_path / "seed0.safetensors")
    with pytest.raises(ValueError, match="is a folder, no safetensors file"):
        read(tmp_path)
