from __future__ import annotations

import pytest

from described import read_layout
from lookalike.workflow.data import load_specification
from lookalike.workflow.data.manifest import read_manifest, write_manifest
from lookalike.workflow.data.readers.inat import SUPER_CATEGORIES

SPECIFICATION = {
    "title": "some nature",
    "layout": "inat",
    "split_seed": 3,
    "super_categories": {"Animalia": 2, "Birds": 4, "Mollusks": 1, "Plants": 5},
}
FOLDERS = [
    *(f"{n:05d}_Animalia_Annelida_Clitellata_O_F_G_s{n}" for n in range(2)),
    *(f"{n:05d}_Animalia_Chordata_Aves_O_F_G_s{n}" for n in range(2, 6)),
    "00006_Animalia_Mollusca_Gastropoda_O_F_G_s6",
    *(f"{n:05d}_Plantae_Tracheophyta_Magnoliopsida_O_F_G_s{n}" for n in range(7, 12)),
]


@pytest.fixture
def root(tmp_path, touch):
    touch(tmp_path / "train_mini", [f"{folder}/{n}.jpg" for folder in FOLDERS for n in range(2)])
    return tmp_path


def test_of_each_super_category_the_smaller_half_tests(root):
    classes = read_layout(SPECIFICATION, root).drop_duplicates("label")
    sizes = classes.groupby(["coarse_super", "role"]).size().unstack(fill_value=0)
    # sorted names: Amphibians 0, Animalia 1, Arachnids 2, Birds 3, ..., Mollusks 7, Plants 8
    assert sizes["test"].to_dict() == {1: 1, 3: 2, 7: 0, 8: 2}
    assert sizes["train"].to_dict() == {1: 1, 3: 2, 7: 1, 8: 3}


def test_the_own_split_says_so_and_depends_on_its_seed_alone(root):
    frame = read_layout(SPECIFICATION, root)
    assert frame.attrs["split"] == "own split, seed 3"
    assert set(frame["split"]) == {"own"}
    assert frame["role"].tolist() == read_layout(SPECIFICATION, root)["role"].tolist()
    others = [read_layout({**SPECIFICATION, "split_seed": seed}, root)["role"].tolist() for seed in range(8)]
    assert any(frame["role"].tolist() != other for other in others)


def test_the_manifest_tells_the_own_split_from_the_authors(root, tmp_path, write_lines):
    def manifest() -> list[str]:
        write_manifest(read_layout(SPECIFICATION, root), tmp_path / "manifest.csv")
        return sorted(set(read_manifest(tmp_path / "manifest.csv")["split"]))

    assert manifest() == ["own"]
    for role, numbers in (("train", range(0, 12, 2)), ("test", range(1, 12, 2))):
        ids = [1, 1, 3, 3, 3, 3, 7, 8, 8, 8, 8, 8]
        write_lines(root / f"iNaturalist_{role}.txt", [f"{FOLDERS[n]}/0.jpg,{ids[n]},{n}" for n in numbers])
    assert manifest() == ["authors"]


def test_labels_are_the_numbers_of_the_folders(root):
    frame = read_layout(SPECIFICATION, root)
    assert frame["label"].tolist() == [n for n in range(12) for _ in range(2)]
    assert frame["path"][0] == f"train_mini/{FOLDERS[0]}/0.jpg"


def test_the_authors_lists_take_precedence(root, write_lines):
    for role, numbers in (("train", range(0, 12, 2)), ("test", range(1, 12, 2))):
        rows = [
            f"{FOLDERS[n]}/{i}.jpg,{[1, 1, 3, 3, 3, 3, 7, 8, 8, 8, 8, 8][n]},{n}" for n in numbers for i in range(2)
        ]
        write_lines(root / f"iNaturalist_{role}.txt", rows)
    frame = read_layout(SPECIFICATION, root)
    assert frame.attrs["split"] == "authors' lists"
    assert set(frame["split"]) == {"authors"}
    assert set(frame.loc[frame["role"] == "train", "label"]) == set(range(0, 12, 2))
    assert frame["path"][0] == f"train_mini/{FOLDERS[0]}/0.jpg"
    (root / frame["path"][0]).unlink()
    with pytest.raises(ValueError, match=r"0\.jpg does not exist"):
        read_layout(SPECIFICATION, root)
    (root / "iNaturalist_test.txt").write_text(f"{FOLDERS[0]}/1.jpg,1,0\n")
    with pytest.raises(ValueError, match="class 0 is in both of the authors' lists"):
        read_layout(SPECIFICATION, root)
    (root / "iNaturalist_test.txt").unlink()
    with pytest.raises(ValueError, match=r"iNaturalist_test\.txt does not exist, though the other half"):
        read_layout(SPECIFICATION, root)


def test_a_super_category_of_another_size_is_refused(root, touch):
    touch(root / "train_mini", ["00012_Animalia_Chordata_Aves_O_F_G_s12/0.jpg"])
    with pytest.raises(ValueError, match="super-category Birds: 4 classes expected, 5 found"):
        read_layout(SPECIFICATION, root)


def test_an_empty_or_oddly_named_class_folder_is_named(root):
    (root / "train_mini" / "00013_Animalia_Chordata_Aves_O_F_G_s").mkdir()
    with pytest.raises(ValueError, match="00013_Animalia_Chordata_Aves_O_F_G_s holds no image"):
        read_layout(SPECIFICATION, root)
    (root / "train_mini" / "00013_Animalia_Chordata_Aves_O_F_G_s").rmdir()
    (root / "train_mini" / FOLDERS[0]).rename(root / "train_mini" / "00000_Martians")
    with pytest.raises(ValueError, match="00000_Martians is not named <id>_<kingdom>"):
        read_layout(SPECIFICATION, root)


def test_the_stated_counts_follow_from_the_rule():
    specification = load_specification("inat")
    sizes = specification.super_categories
    assert set(sizes) == set(SUPER_CATEGORIES.values())
    assert sum(size // 2 for size in sizes.values()) == specification.counts.test.classes
    assert sum(size - size // 2 for size in sizes.values()) == specification.counts.train.classes
    assert all(role["images"] == 50 * role["classes"] for role in specification.counts.dump().values())
