from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from lookalike.workflow.data import ArchiveError
from tars import unpack

CONTENT = {
    "birds/a.txt": b"a" * 700,
    "birds/deep/b.jpg": bytes(range(256)) * 9,
    "list.txt": b"",
    "other/\u00e9.jpg": b"x",
}
MODES = {"plain.tar": "w", "gzip.tgz": "w:gz", "bzip2.tar.bz2": "w:bz2", "xz.tar.xz": "w:xz"}


def entry(name, **attributes):
    header = tarfile.TarInfo(name)
    for key, value in attributes.items():
        setattr(header, key, value)
    return header


def write_tar(path, entries, mode="w"):
    """A tar of ``(header, bytes)``; a header keeps a size that was set."""
    with tarfile.open(path, mode) as tar:
        for header, content in entries:
            header.size = header.size or len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def write_archive(folder, name, content=CONTENT):
    if name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as opened:
            for member, data in content.items():
                opened.writestr(member, data)
        return folder / name
    return write_tar(folder / name, [(entry(member), data) for member, data in content.items()], MODES[name])


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_nothing_is_left(folder, archive):
    assert {path.name for path in folder.iterdir()} <= {archive.name, ".target.lock"}


@pytest.fixture(params=[*MODES, "deflated.zip"])
def archive(request, tmp_path):
    return write_archive(tmp_path, request.param)


def test_every_kind_of_archive_gives_its_files(archive, tmp_path):
    assert unpack(archive, tmp_path / "target") == tmp_path / "target"
    assert files(tmp_path / "target") == CONTENT
    assert {path.name for path in tmp_path.iterdir()} == {archive.name, ".target.lock", "target"}


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.5, 0.6])  # a plain tar ends in 3 KiB of padding
def test_an_archive_that_is_cut_short_is_refused(archive, tmp_path, share):
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ArchiveError, match=f"{archive.name} is"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_tar_that_is_cut_between_two_members_is_refused(tmp_path):
    archive = write_archive(tmp_path, "plain.tar")
    archive.write_bytes(archive.read_bytes()[:1536])  # the first header and its 700 bytes in two blocks
    with pytest.raises(ArchiveError, match="empty header"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_tar_with_an_overwritten_header_is_refused_and_not_taken_for_its_end(tmp_path):
    archive = write_archive(tmp_path, "plain.tar")
    data = bytearray(archive.read_bytes())
    data[1536:1600] = b"#" * 64
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match="bad checksum"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


@pytest.mark.parametrize("name", ["gzip.tgz", "xz.tar.xz", "bzip2.tar.bz2", "deflated.zip"])
def test_a_flipped_byte_is_noticed_by_the_archives_own_checksum(tmp_path, name):
    noise = bytes((n * n * 7919 + n // 3) % 251 for n in range(20000))
    archive = write_archive(tmp_path, name, {"a/noise.jpg": noise})
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 0x10
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match=f"{name} is"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_web_page_is_no_archive(tmp_path):
    page = tmp_path / "quota.zip"
    page.write_text("<html>Too many users have viewed or downloaded this file recently</html>")
    with pytest.raises(ArchiveError, match=r"quota\.zip is no tar or zip archive, cut short, .*not a zip"):
        unpack(page, tmp_path / "target")
    assert_nothing_is_left(tmp_path, page)


OUTWARD = {
    "a path upwards": entry("../x"),
    "a path upwards inside": entry("a/../../x"),
    "a link upwards": entry("a/b", type=tarfile.SYMTYPE, linkname="../../x"),
    "a link to an absolute path": entry("a", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link out of the folder": entry("a", type=tarfile.LNKTYPE, linkname="../plain.tar"),
    "a device": entry("a", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
    "a pipe": entry("a", type=tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("header", OUTWARD.values(), ids=OUTWARD.keys())
def test_a_tar_that_leads_out_of_its_folder_is_refused(tmp_path, header):
    archive = write_tar(tmp_path / "plain.tar", [(header, b"")])
    with pytest.raises(ArchiveError, match=r"plain\.tar: "):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_a_zip_that_leads_out_of_its_folder_is_unpacked_into_it(tmp_path, name):
    archive = write_archive(tmp_path, "deflated.zip", {name: b"x"})
    (path,) = files(unpack(archive, tmp_path / "target"))
    assert Path(path).name == "x"
    assert {path.name for path in tmp_path.iterdir()} == {archive.name, ".target.lock", "target"}


def test_an_encrypted_zip_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"a": b"x" * 50})
    data = bytearray(archive.read_bytes())
    data[6] |= 1  # general purpose flags in the member's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match="encrypted"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


@pytest.mark.parametrize("name", ["plain.tar", "deflated.zip"])
def test_what_desktop_systems_leave_behind_is_passed_over(tmp_path, name):
    junk = ("__MACOSX/birds/._a.txt", "birds/._a.txt", "birds/.DS_Store", "birds/Thumbs.db", "birds/desktop.ini")
    archive = write_archive(tmp_path, name, {**CONTENT, **dict.fromkeys(junk, b"junk")})
    assert files(unpack(archive, tmp_path / "target")) == CONTENT


def test_folders_that_a_backslash_parts_are_folders(tmp_path):
    """As .NET before 4.6.1 and other old programs of Windows wrote them."""
    junk = {"__MACOSX\\birds\\._a.txt": b"junk", "birds\\Thumbs.db": b"junk"}
    named = {name.replace("/", "\\"): content for name, content in CONTENT.items()}
    archive = write_archive(tmp_path, "windows.zip", {"birds\\": b"", **named, **junk})
    assert files(unpack(archive, tmp_path / "target")) == CONTENT


@pytest.mark.parametrize("name", ["..\\x", "\\x", "a\\..\\..\\x", "..\\../x"])
def test_a_backslash_leads_out_of_no_folder(tmp_path, name):
    archive = write_archive(tmp_path, "windows.zip", {name: b"x"})
    (path,) = files(unpack(archive, tmp_path / "target"))
    assert Path(path).name == "x"
    assert {path.name for path in tmp_path.iterdir()} == {archive.name, ".target.lock", "target"}
