import hashlib
import logging
import os
import subprocess
import sys
import tarfile

import pytest
import yaml

from described import ensure_data, read_layout
from lookalike.workflow.data import ArchiveError, DownloadError
from tars import tar_of

NAMES = ["x", "y", "z"]


def birds():
    rows = [(n, f"{1 + n % 3:03d}.{NAMES[n % 3]}/{n}.jpg", 1 + n % 3) for n in range(6)]
    lists = {
        "images.txt": [f"{n} {path}" for n, path, _ in rows],
        "image_class_labels.txt": [f"{n} {label}" for n, _, label in rows],
        "classes.txt": [f"{label} {label:03d}.{name}" for label, name in enumerate(NAMES, start=1)],
    }
    files = {f"CUB_200_2011/{name}": "\n".join(lines).encode() for name, lines in lists.items()}
    images = {f"CUB_200_2011/images/{path}": b"image" for _, path, _ in rows}
    masks = {f"segmentations/{path[:-4]}.png": b"mask" for _, path, _ in rows}
    return tar_of({**files, **images, "attributes.txt": b"outside of the top folder"}), tar_of(masks)


def archive_of(content, url, **keys):
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "urls": [url], **keys}


@pytest.fixture
def specification(server):
    server.files["/images"], server.files["/masks"] = birds()
    return {
        "title": "few birds",
        "layout": "cub",
        "classes": {"train": [1, 2], "test": [3, 3]},
        "counts": {"train": {"classes": 2, "images": 4}, "test": {"classes": 1, "images": 2}},
        "archives": [
            archive_of(server.files["/images"], f"{server.url}/images", file="birds.tgz", creates="CUB_200_2011"),
            archive_of(
                server.files["/masks"], f"{server.url}/masks", file="masks.tgz", creates="segmentations", optional=True
            ),
        ],
        "manual": "ask the owner",
    }


@pytest.fixture
def places(tmp_path):
    return tmp_path / "data" / "birds", tmp_path / "archives"


def test_a_data_set_is_fetched_unpacked_and_counted(server, specification, places):
    root = ensure_data(specification, *places)
    assert root == places[0]
    assert {path.name for path in root.iterdir()} == {"CUB_200_2011", "segmentations", "attributes.txt"}
    assert len(read_layout(specification, root)["mask"]) == 6
    assert [path for path, _ in server.requests] == ["/images", "/masks"]
    assert {path.name for path in root.parent.iterdir()} == {"birds", ".birds.lock"}


def test_a_readable_root_asks_nobody(server, specification, places):
    root = ensure_data(specification, *places)
    asked = len(server.requests)
    assert ensure_data(specification, root, places[1] / "none") == root
    assert len(server.requests) == asked


def test_a_root_unpacked_by_hand_is_taken_as_it_is(server, specification, places, tmp_path):
    (tmp_path / "by hand.tgz").write_bytes(server.files["/images"])
    places[0].mkdir(parents=True)
    with tarfile.open(tmp_path / "by hand.tgz") as tar:
        tar.extractall(places[0], filter="data")
    assert ensure_data({**specification, "archives": []}, *places) == places[0]
    assert server.requests == []


def test_counts_that_differ_leave_no_root(specification, places):
    specification["counts"]["train"]["images"] = 5
    with pytest.raises(ValueError, match="few birds, train: 2 classes and 5 images expected, 2 classes and 4 images"):
        ensure_data(specification, *places)
    assert {path.name for path in places[0].parent.iterdir()} == {".birds.lock"}


def test_a_missing_optional_archive_is_a_warning(server, specification, places, caplog):
    del server.files["/masks"]
    with caplog.at_level(logging.WARNING):
        root = ensure_data(specification, *places)
    assert "going on without an optional archive: masks.tgz cannot be fetched" in caplog.text
    assert "mask" not in read_layout(specification, root)


def test_a_root_that_lost_a_folder_gets_it_back(specification, places):
    root = ensure_data(specification, *places)
    (root / "CUB_200_2011").rename(root.parent / "lost")
    ensure_data(specification, *places)
    assert (root / "CUB_200_2011" / "images.txt").is_file()


def test_a_broken_root_is_explained_and_not_overwritten(specification, places):
    root = ensure_data(specification, *places)
    image = next(root.rglob("0.jpg"))
    image.unlink()
    with pytest.raises(ValueError, match=r"0\.jpg does not exist"):
        ensure_data(specification, *places)
    assert not image.exists()


def test_without_any_address_one_line_says_what_to_do_by_hand(specification, places):
    for archive in specification["archives"]:
        archive["urls"] = []
    with pytest.raises(
        DownloadError, match=r"birds\.tgz cannot be fetched: .* By hand: ask the owner; put the file into"
    ):
        ensure_data(specification, *places)
    with pytest.raises(DownloadError, match=r"few birds has no address\. By hand, into .*birds: ask the owner"):
        ensure_data({**specification, "archives": []}, *places)
    assert not places[0].exists()


def test_files_that_are_no_archives_are_copied_to_their_place(server, places):
    image, lists = b"img", b"3\nimage_name item_id evaluation_status\n"
    for n, role in enumerate(("train", "query", "gallery")):
        lists += f"img/MEN/Denim/id_{max(n, 1)}/{n}.jpg   id_{max(n, 1)}   {role}\n".encode()
    server.files["/img"] = tar_of({f"img/MEN/Denim/id_{max(n, 1)}/{n}.jpg": image for n in range(3)})
    server.files["/list"] = lists
    specification = {
        "title": "clothes",
        "layout": "inshop",
        "archives": [
            {"file": "img.tgz", "into": "Img", "creates": "Img/img", "unverified": True, "urls": [f"{server.url}/img"]},
            {
                "file": "list_eval_partition.txt",
                "into": "Eval",
                "creates": "Eval/list_eval_partition.txt",
                "unverified": True,
                "urls": [f"{server.url}/list"],
            },
        ],
    }
    assert len(read_layout(specification, ensure_data(specification, *places))) == 3


def packagings(server):
    """The same birds packed twice: in one archive that is on disk, and in one that is only on the server."""
    content = server.files["/images"]
    return [
        {"file": "a.tgz", "creates": "nothing", "packaging": "never", "md5": "0" * 32},
        archive_of(content, f"{server.url}/gone", file="b.tgz", creates="CUB_200_2011", packaging="on disk"),
        archive_of(content, f"{server.url}/images", file="c.tgz", creates="CUB_200_2011", packaging="on the server"),
    ]


def test_the_packaging_that_is_on_disk_comes_before_the_one_that_has_an_address(server, specification, places):
    del server.files["/masks"]
    specification["archives"] = packagings(server)
    specification["archives"][1]["urls"] = []
    places[1].mkdir()
    ensure_data(specification, *places)
    assert [path for path, _ in server.requests] == ["/images"]


def test_a_packaging_on_disk_is_not_downloaded_in_another_form(server, specification, places):
    specification["archives"] = packagings(server)
    places[1].mkdir()
    (places[1] / "mine.tgz").write_bytes(server.files["/images"])
    ensure_data(specification, *places)
    assert server.requests == []


def test_an_archive_without_what_it_should_hold_is_refused(specification, places):
    specification["archives"][0]["creates"] = "CUB_200_2012"
    with pytest.raises(ValueError, match=r"birds\.tgz does not hold CUB_200_2012"):
        ensure_data(specification, *places)
    assert not places[0].exists()


def own(tmp_path, **files):
    path = tmp_path / "mine.tgz"
    path.write_bytes(tar_of({f"mine/{name}": content for name, content in files.items()}))
    return {"title": "mine", "layout": "folder", "archive": str(path)}


def test_an_own_archive_is_unpacked_again_when_its_bytes_change(tmp_path, places):
    images = {"a/0.jpg": b"0", "b/0.jpg": b"1"}
    specification = own(tmp_path, **images)
    root = ensure_data(specification, *places)
    (root / "mine" / "a" / "0.jpg").write_bytes(b"edited")
    ensure_data(specification, *places)
    assert (root / "mine" / "a" / "0.jpg").read_bytes() == b"edited"
    ensure_data(own(tmp_path, **images, **{"c/0.jpg": b"2"}), *places)
    assert (root / "mine" / "a" / "0.jpg").read_bytes() == b"0"
    assert len(read_layout(specification, root)) == 3


def test_a_bad_new_archive_leaves_the_old_data_in_place(tmp_path, places):
    root = ensure_data(own(tmp_path, **{"a/0.jpg": b"0", "b/0.jpg": b"1"}), *places)
    with pytest.raises(
        ValueError, match=r"a is the only class folder of .*; it takes a folder for each class"
    ) as refused:
        ensure_data(own(tmp_path, **{"a/0.jpg": b"0"}), *places)
    assert str(refused.value).endswith(f"(unpacked from {tmp_path / 'mine.tgz'})")
    assert ".partial" not in str(refused.value)  # a folder that is gone when this is read
    with pytest.raises(ArchiveError, match="outside the destination"):
        ensure_data(own(tmp_path, **{"a/0.jpg": b"0", "../../b/1.jpg": b""}), *places)
    assert len(read_layout({"layout": "folder"}, root)) == 2


def test_an_own_archive_does_not_replace_a_folder_from_elsewhere(tmp_path, places):
    specification = own(tmp_path, **{"a/0.jpg": b"0", "b/0.jpg": b"1"})
    places[0].mkdir(parents=True)
    with pytest.raises(ValueError, match="exists, and was not unpacked from an archive; remove it to use"):
        ensure_data(specification, *places)
    with pytest.raises(ValueError, match=r"archive .*gone\.zip does not exist"):
        ensure_data({**specification, "archive": "gone.zip"}, *places)


def test_an_own_folder_is_read_in_place(tmp_path, places, touch):
    touch(tmp_path / "mine", ["a/0.jpg", "b/0.jpg"])
    specification = {"title": "mine", "layout": "folder", "folder": str(tmp_path / "mine")}
    assert ensure_data(specification, *places) == tmp_path / "mine"
    assert not places[0].parent.exists()
    (tmp_path / "mine" / "c").mkdir()
    with pytest.raises(ValueError, match="mine/c holds no image"):
        ensure_data(specification, *places)


def test_warnings_of_a_command_that_dvc_runs_are_marked(server, specification, params, tmp_path):
    del server.files["/masks"]
    (params / "datasets" / "birds.yaml").write_text(yaml.safe_dump(specification))
    done = subprocess.run(
        [sys.executable, "-m", "lookalike.workflow.stages.download", "birds"],
        cwd=params.parent,
        env={**os.environ, "LOOKALIKE_ARCHIVES": str(tmp_path / "archives")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("warning: going on without")]
    assert "masks.tgz cannot be fetched" in line
