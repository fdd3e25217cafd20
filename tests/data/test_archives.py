from __future__ import annotations

import errno
import io
import lzma
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import zipfile

import pytest

from lookalike.data import ArchiveError, Limits, unpack

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


def test_a_target_that_exists_is_left_alone(archive, tmp_path):
    (tmp_path / "target").mkdir()
    unpack(archive, tmp_path / "target")
    assert files(tmp_path / "target") == {}


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


def test_a_zip_that_points_before_its_beginning_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"a/x.jpg": b"x"})
    data = archive.read_bytes()
    archive.write_bytes(data[4:])  # every place that its directory names is four bytes too far
    with pytest.raises(ArchiveError, match=r"deflated\.zip is .*damaged"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_zip_with_a_member_of_no_name_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"a": b"x"})
    data = bytearray(archive.read_bytes())
    for header, length, name in ((b"PK\x03\x04", 26, 30), (b"PK\x01\x02", 28, 46)):
        place = data.index(header)
        data[place + length] = 0
        del data[place + name]
    end = data.index(b"PK\x05\x06")
    data[end + 12] -= 1  # bytes of the directory, and where it begins
    data[end + 16] -= 1
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"deflated\.zip.*a member of no name"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_web_page_is_no_archive(tmp_path):
    page = tmp_path / "quota.zip"
    page.write_text("<html>Too many users have viewed or downloaded this file recently</html>")
    with pytest.raises(ArchiveError, match=r"quota\.zip is no tar or zip archive, cut short, .*neither a tar"):
        unpack(page, tmp_path / "target")
    assert_nothing_is_left(tmp_path, page)


FILE = (entry("a/x.txt"), b"x")
HOSTILE_TARS = {
    "a path upwards": [(entry("../x"), b"x")],
    "a path upwards inside": [(entry("a/../../x"), b"x")],
    "an absolute path": [(entry("/tmp/x"), b"x")],
    "a line break": [(entry("a\nb"), b"x")],
    "a control character": [(entry("a\x1b[2Jb"), b"x")],
    "a NUL": [(entry("ab", pax_headers={"path": "a\0b"}), b"x")],
    "a backslash": [(entry("..\\x"), b"x")],
    "bytes that are no text": [(entry("a\udcff"), b"x")],
    "a link to an absolute path": [(entry("a", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b"")],
    "a link upwards": [(entry("a/b", type=tarfile.SYMTYPE, linkname="../../x"), b"")],
    "a link that comes back up": [(entry("a/b/c", type=tarfile.SYMTYPE, linkname="d/../../../x"), b"")],
    "a file below a link": [(entry("a", type=tarfile.SYMTYPE, linkname="b"), b""), (entry("a/x"), b"x")],
    "a link below a link": [
        (entry("a/b/up", type=tarfile.SYMTYPE, linkname="../.."), b""),
        (entry("a/b/up/out", type=tarfile.SYMTYPE, linkname="../x"), b""),
    ],
    "a hard link out of the folder": [(entry("a", type=tarfile.LNKTYPE, linkname="../plain.tar"), b"")],
    "a hard link to an absolute path": [(entry("a", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b"")],
    "a hard link to a link": [
        FILE,
        (entry("s", type=tarfile.SYMTYPE, linkname="a/x.txt"), b""),
        (entry("h", type=tarfile.LNKTYPE, linkname="s"), b""),
    ],
    "a hard link to what is not there": [(entry("a", type=tarfile.LNKTYPE, linkname="b"), b"")],
    "a device": [(entry("a", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b"")],
    "a pipe": [(entry("a", type=tarfile.FIFOTYPE), b"")],
    "a file that is also a folder": [FILE, (entry("a"), b"x")],
    "a file below a file": [(entry("a"), b"x"), (entry("a/x"), b"x")],
}


@pytest.mark.parametrize("entries", HOSTILE_TARS.values(), ids=HOSTILE_TARS.keys())
def test_a_hostile_tar_is_refused(tmp_path, entries):
    archive = write_tar(tmp_path / "plain.tar", entries)
    with pytest.raises(ArchiveError, match=r"plain\.tar: "):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def mode(kind):
    return kind << 16


HOSTILE_ZIPS = {
    "a path upwards": ("../x", {}),
    "an absolute path": ("/tmp/x", {}),
    "a line break": ("a\nb", {}),
    "a backslash": ("..\\x", {}),
    "a control character": ("a\x1b[2Jb", {}),
    "a link": ("a", {"external_attr": mode(stat.S_IFLNK | 0o777)}),
    "a device": ("a", {"external_attr": mode(stat.S_IFCHR | 0o600)}),
    "a pipe": ("a", {"external_attr": mode(stat.S_IFIFO | 0o600)}),
}


@pytest.mark.parametrize(("name", "attributes"), HOSTILE_ZIPS.values(), ids=HOSTILE_ZIPS.keys())
def test_a_hostile_zip_is_refused(tmp_path, name, attributes):
    archive = tmp_path / "hostile.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        header = zipfile.ZipInfo(name)
        for key, value in attributes.items():
            setattr(header, key, value)
        opened.writestr(header, b"/etc/passwd")
    with pytest.raises(ArchiveError, match=r"hostile\.zip: "):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_zip_with_a_nul_in_a_name_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"a?b": b"x"})
    archive.write_bytes(archive.read_bytes().replace(b"a?b", b"a\0b"))
    with pytest.raises(ArchiveError, match="control character"):
        unpack(archive, tmp_path / "target")


def test_an_encrypted_zip_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"a": b"x" * 50})
    data = bytearray(archive.read_bytes())
    data[6] |= 1  # general purpose flags in the member's own header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    archive.write_bytes(data)
    with pytest.raises(ArchiveError, match="encrypted"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


@pytest.mark.parametrize("name", ["gzip.tgz", "deflated.zip", "xz.tar.xz"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path, name):
    archive = write_archive(tmp_path, name, {"zeros.bin": bytes(10**7)})
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_zip_that_states_too_small_a_size_is_refused(tmp_path):
    archive = write_archive(tmp_path, "deflated.zip", {"zeros.bin": bytes(10**7)})
    stated = (10**7).to_bytes(4, "little")
    assert archive.read_bytes().count(stated) == 2  # at the member and in the directory
    archive.write_bytes(archive.read_bytes().replace(stated, (1000).to_bytes(4, "little")))
    with pytest.raises(ArchiveError, match="damaged"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_members_of_a_zip_that_share_their_bytes_are_refused(tmp_path):
    archive = tmp_path / "overlapping.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("first", bytes(range(256)) * 2000)
        (first,) = opened.infolist()
        for number in range(500):
            twin = zipfile.ZipInfo(f"{number}")
            for name in ("compress_type", "compress_size", "file_size", "CRC", "header_offset"):
                setattr(twin, name, getattr(first, name))
            opened.filelist.append(twin)
    with pytest.raises(ArchiveError, match=r"unpacks to more than|no tar or zip archive, cut short, damaged"):
        unpack(archive, tmp_path / "target")
    assert_nothing_is_left(tmp_path, archive)


def test_a_sparse_file_counts_with_the_bytes_it_will_have(tmp_path):
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(2**30)
    subprocess.run(["tar", "-C", tmp_path, "-S", "-cf", tmp_path / "plain.tar", "sparse"], check=True)
    (tmp_path / "sparse").unlink()
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(tmp_path / "plain.tar", tmp_path / "target")


def test_padding_without_end_is_refused(tmp_path):
    archive = write_archive(tmp_path, "xz.tar.xz")
    archive.write_bytes(lzma.compress(lzma.decompress(archive.read_bytes()) + bytes(2**25)))
    with pytest.raises(ArchiveError, match="bytes behind the last member"):
        unpack(archive, tmp_path / "target")


def test_an_extended_header_of_megabytes_is_refused_unread(tmp_path):
    archive = write_tar(tmp_path / "gzip.tgz", [(entry("x", pax_headers={"comment": "c" * 2**21}), b"x")], "w:gz")
    with pytest.raises(ArchiveError, match="a header of 2097"):
        unpack(archive, tmp_path / "target")


@pytest.mark.parametrize("limits", [Limits(total_bytes=1000), Limits(members=2), Limits(ratio=0.01)])
def test_limits_are_kept(archive, tmp_path, limits):
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(archive, tmp_path / "target", limits=limits)
    assert_nothing_is_left(tmp_path, archive)


@pytest.mark.parametrize("name", ["plain.tar", "deflated.zip"])
def test_what_desktop_systems_leave_behind_is_passed_over(tmp_path, name):
    junk = ("__MACOSX/birds/._a.txt", "birds/._a.txt", "birds/.DS_Store", "birds/Thumbs.db", "birds/desktop.ini")
    archive = write_archive(tmp_path, name, {**CONTENT, **dict.fromkeys(junk, b"junk")})
    assert files(unpack(archive, tmp_path / "target")) == CONTENT


def test_of_two_members_of_one_name_the_last_wins(tmp_path):
    archive = write_tar(tmp_path / "plain.tar", [FILE, (entry("./a/x.txt"), b"last")])
    assert files(unpack(archive, tmp_path / "target")) == {"a/x.txt": b"last"}
    zipped = tmp_path / "deflated.zip"
    with zipfile.ZipFile(zipped, "w") as opened:
        opened.writestr("a", b"first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            opened.writestr("a", b"last")
    assert files(unpack(zipped, tmp_path / "other")) == {"a": b"last"}


def test_a_second_member_is_not_written_through_the_link_of_the_first(tmp_path):
    links = [
        FILE,
        (entry("soft", type=tarfile.SYMTYPE, linkname="a/x.txt"), b""),
        (entry("hard", type=tarfile.LNKTYPE, linkname="a/x.txt"), b""),
    ]
    archive = write_tar(tmp_path / "plain.tar", [*links, (entry("soft"), b"1"), (entry("hard"), b"2")])
    assert files(unpack(archive, tmp_path / "target")) == {"a/x.txt": b"x", "soft": b"1", "hard": b"2"}


def test_links_that_stay_inside_are_kept(tmp_path):
    links = [
        FILE,
        (entry("./"), b""),
        (entry("b/soft", type=tarfile.SYMTYPE, linkname="../a/x.txt"), b""),
        (entry("hard", type=tarfile.LNKTYPE, linkname="a/x.txt"), b""),
    ]
    links[1][0].type = tarfile.DIRTYPE
    target = unpack(write_tar(tmp_path / "plain.tar", links), tmp_path / "target")
    assert (target / "b" / "soft").is_symlink()
    assert files(target) == dict.fromkeys(("a/x.txt", "b/soft", "hard"), b"x")


def test_a_full_disk_gives_one_clear_error_and_leaves_nothing(archive, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile, "copyfileobj", full)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match=f"{archive.name} cannot be unpacked into .*: No space left on device") as error:
        unpack(archive, tmp_path / "target")
    assert error.value.errno == errno.ENOSPC
    assert_nothing_is_left(tmp_path, archive)


KILLED = """
import sys, time
from pathlib import Path
from lookalike.data import archives
write, written = archives._write, []
def slow(member, folder):
    write(member, folder)
    written.append(member)
    if len(written) == 2:
        print("half", flush=True)
        time.sleep(600)
archives._write = slow
archives.unpack(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    archive, target = write_archive(tmp_path, "gzip.tgz"), tmp_path / "target"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, archive, target], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "half\n"
        os.kill(process.pid, signal.SIGKILL)
    assert not target.exists()
    (left,) = tmp_path.glob(".target.partial")
    (left / "stale.txt").touch()
    assert files(unpack(archive, target)) == CONTENT
    assert not left.exists()
