import os

import pytest

from described import read_layout

FOLDER = {"title": "mine", "layout": "folder"}


def test_one_tree_is_split_by_class_and_junk_is_passed_over(tmp_path, touch):
    touch(tmp_path, [f"{name}/{n}.{kind}" for name in "badec" for n, kind in enumerate(("jpg", "JPEG", "png", "webp"))])
    touch(
        tmp_path,
        ["__MACOSX/a/._0.jpg", "a/._0.jpg", "a/.DS_Store", "b/Thumbs.db", "a/notes.txt", "README.md", ".git/x/y.jpg"],
    )
    frame = read_layout(FOLDER, tmp_path)
    assert frame.groupby("role")["label"].unique().map(list).to_dict() == {"train": [1, 2, 3], "test": [4, 5]}
    assert len(frame) == 20
    assert frame["path"][0] == "a/0.jpg"
    assert frame["label"].dtype == "int64"


def test_a_name_that_no_list_can_hold_is_refused(tmp_path, touch):
    touch(tmp_path, ["a/1.jpg", "b/1.jpg", os.fsdecode(b"b/caf\xe9.jpg")])
    with pytest.raises(ValueError, match=r"caf\\udce9\.jpg': the name is no UTF-8, .*; rename it"):
        read_layout(FOLDER, tmp_path)


def test_a_colour_copy_is_an_image_where_no_list_says_otherwise(tmp_path, touch):
    touch(tmp_path, ["a/0.jpg", "a/0_rgb.jpg", "b/0.jpg"])
    assert len(read_layout(FOLDER, tmp_path)) == 3


def test_classes_are_chosen_by_name_or_by_place(tmp_path, touch):
    touch(tmp_path, [f"{name}/0.jpg" for name in "abcd"])
    by_name = read_layout({**FOLDER, "classes": {"train": ["d", "a"], "test": ["b"]}}, tmp_path)
    assert dict(zip(by_name["path"], by_name["role"], strict=True)) == {
        "a/0.jpg": "train",
        "b/0.jpg": "test",
        "d/0.jpg": "train",
    }
    by_place = read_layout({**FOLDER, "classes": {"train": [1, 1], "test": [2, 4]}}, tmp_path)
    assert by_place["role"].tolist() == ["train", "test", "test", "test"]


def test_folders_named_by_numbers_are_in_the_order_of_these_and_chosen_by_them(tmp_path, touch):
    touch(tmp_path, [f"{number}/{place}.jpg" for number in range(1, 13) for place in range(2)])
    classes = {"train": [1, 6], "test": [7, 12]}
    frame = read_layout({**FOLDER, "classes": classes}, tmp_path)
    assert frame["label"].tolist() == [int(path.split("/")[0]) for path in frame["path"]]
    assert set(frame.loc[frame["role"] == "train", "label"]) == set(range(1, 7))
    assert frame.attrs["classes"] == ["test: 6 classes, 7, 8, 9, ... 12", "train: 6 classes, 1, 2, 3, ... 6"]
    columns = ["path", "label", "role"]
    assert read_layout(FOLDER, tmp_path)[columns].equals(frame[columns])  # the halves are the same
    touch(tmp_path, ["30/0.jpg"])
    with pytest.raises(ValueError, match=r"classes\.test: no class is called 13; .* \(1, 2, 3, \.\.\. 30\)"):
        read_layout({**FOLDER, "classes": {"train": [1, 6], "test": [7, 13]}}, tmp_path)
    with pytest.raises(ValueError, match=r"\[6, 1\] is no choice of classes: the first class id is above the last"):
        read_layout({**FOLDER, "classes": {"train": [6, 1], "test": [7, 12]}}, tmp_path)


def test_a_name_in_two_forms_is_one_class(tmp_path, touch):
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    touch(tmp_path, [f"train/{name}/0.jpg" for name in "xy"])
    touch(tmp_path, [f"query/{name}/{number}.jpg" for name in (nfc, "owl ") for number in range(2)])
    touch(tmp_path, [f"gallery/{name}/{number}.jpg" for name in (nfd, "owl") for number in range(2)])
    frame = read_layout(FOLDER, tmp_path)
    labels = {role: set(rows["label"]) for role, rows in frame.groupby("role")}
    assert labels["query"] == labels["gallery"]
    assert [remark.split(" are one name")[0] for remark in frame.attrs["remarks"]] == [
        r"'cafe\u0301' and 'caf\xe9'",
        "'owl' and 'owl '",
    ]


def test_a_class_that_an_overlay_names_in_two_forms_is_refused(tmp_path, touch):
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    touch(tmp_path, [f"{name}/0.jpg" for name in (nfc, nfd, "owl", "jay")])
    chosen = read_layout({**FOLDER, "classes": {"train": [nfd, "owl"], "test": ["jay"]}}, tmp_path)
    assert chosen.loc[chosen["role"] == "train", "label"].nunique() == 2
    assert len(chosen) == 4
    with pytest.raises(ValueError, match=r"classes: 'caf\\xe9' and 'cafe\\u0301' are one name, and name one class"):
        read_layout({**FOLDER, "classes": {"train": [nfc, "owl"], "test": [nfd, "jay"]}}, tmp_path)


def test_a_hierarchy_in_the_other_form_names_the_same_class(tmp_path, touch):
    touch(tmp_path, ["caf\u00e9/0.jpg", "owl/0.jpg"])
    (tmp_path / "hierarchy.csv").write_text("class_id,name,super\n1,cafe\u0301,10\n2,owl,2\n", encoding="utf-8")
    # Groups that are called by numbers are these numbers, by which `strangers_super` chooses.
    assert read_layout(FOLDER, tmp_path)["coarse_super"].tolist() == [10, 2]


def test_files_that_are_no_pictures_are_counted_and_pictures_too_deep_refused(tmp_path, touch):
    touch(tmp_path, ["a/0.jpg", "b/0.jpg", "a/notes.txt", "b/IMG_1", "a/.DS_Store", "a/.hidden", "hierarchy.csv.bak"])
    assert read_layout(FOLDER, tmp_path).attrs["others"] == ["a/notes.txt", "b/IMG_1", "hierarchy.csv.bak"]
    touch(tmp_path, ["a/x/y/1.jpg"])
    with pytest.raises(ValueError, match="a/x/y lies inside of a class folder; images belong directly into it"):
        read_layout(FOLDER, tmp_path)


@pytest.mark.parametrize("roles", [("train", "test"), ("train", "query", "gallery")])
def test_folders_named_after_roles_are_roles(tmp_path, touch, roles):
    touch(tmp_path, [f"birds/{role}/{name}/0.jpg" for role in roles for name in ("x", "y")])
    frame = read_layout(FOLDER, tmp_path)
    assert set(frame["role"]) == set(roles)
    assert frame.loc[frame["path"] == f"birds/{roles[1]}/y/0.jpg", "label"].tolist() == [2]
    with pytest.raises(ValueError, match="holds a folder for each role, so the split cannot be chosen by `classes`"):
        read_layout({**FOLDER, "classes": {"train": ["x"], "test": ["y"]}}, tmp_path)


def test_train_may_be_a_class_of_vehicles(tmp_path, touch):
    touch(tmp_path, [f"{name}/0.jpg" for name in ("bus", "car", "train", "test")])
    assert set(read_layout(FOLDER, tmp_path)["label"]) == {1, 2, 3, 4}


def test_coarse_labels_come_from_the_own_hierarchy(tmp_path, touch):
    touch(tmp_path, [f"{name}/0.jpg" for name in "ab"])
    (tmp_path / "hierarchy.csv").write_text("class_id,name,colour,shape_type\n1,a,red,round\n2, b ,blue,round\n")
    frame = read_layout(FOLDER, tmp_path)
    assert frame["coarse_colour"].tolist() == [1, 0]
    assert frame["coarse_shape"].tolist() == [0, 0]


def grouped(tmp_path, touch, groups, folders=None):
    """Coarse labels by class of folders whose hierarchy gives them these groups."""
    touch(tmp_path, [f"{name}/0.jpg" for name in folders or groups])
    rows = [f"{number},{name},{group}" for number, (name, group) in enumerate(groups.items(), start=1)]
    (tmp_path / "hierarchy.csv").write_text("\n".join(["class_id,name,kind", *rows, ""]), encoding="utf-8")
    frame = read_layout(FOLDER, tmp_path)
    return dict(zip(frame["path"].str.split("/").str[0], frame["coarse_kind"], strict=True))


@pytest.mark.parametrize(
    "groups",
    [
        {"C": "f1", "C#": "f2", "C++": "f3", "c": "f4"},
        {"\u0915\u0947\u0932\u093e": "a", "\u0915\u094b\u0932\u093e": "b"},  # kela and kola
        {"No 1.5": "a", "No 15": "b", "No_15": "c"},
        {"+": "a", "-": "b"},
    ],
)
def test_names_that_share_their_letters_are_classes_of_their_own(tmp_path, touch, groups):
    assert grouped(tmp_path, touch, groups) == {name: place for place, name in enumerate(groups)}


@pytest.mark.parametrize("stranger", ["C++", "Cpp", "c", "C\u0301"])
def test_a_class_that_the_hierarchy_does_not_name_takes_no_other_ones_group(tmp_path, touch, stranger):
    message = f"class {stranger!r} is not in the hierarchy, which has 3 classes".replace("+", "[+]")
    with pytest.raises(ValueError, match=message.replace("C\u0301", "\u0106|C\u0301")):
        grouped(tmp_path, touch, {"A": "f1", "B": "f2", "C": "f1"}, ["A", "B", "C", stranger])


@pytest.mark.parametrize(
    "groups",
    [("1", "01", "2"), ("1", "\u0661", "2"), ("9" * 20, "2", "1"), ("f1 ", " f1", "f2"), ("e\u0301", "\xe9", "a")],
)
def test_groups_are_one_where_their_names_are(tmp_path, touch, groups):
    one = len({group.strip() for group in groups}) < 3 or groups[2] == "a"
    found = grouped(tmp_path, touch, dict(zip("xyz", groups, strict=True)))
    assert len(set(found.values())) == (2 if one else 3)
    assert max(found.values()) == (1 if one else 2)


@pytest.mark.parametrize(
    ("files", "empty", "message"),
    [
        (["a/0.jpg", "b/0.jpg"], "c", "class folder .*c holds no image"),
        (["a/0.jpg", "b/0.jpg", "stray.jpg"], None, "stray.jpg lies outside of the class folders"),
        (["a/0.jpg", "a/deep/1.jpg", "b/0.jpg"], None, "a/deep lies inside of a class folder"),
        (["a/0.jpg"], None, "a is the only class folder of .*; it takes a folder for each class, two to train on and"),
        (["0.jpg"], None, "holds pictures and no class folders; it takes a folder for each class"),
        ([], None, "holds no class folder"),
        (["only/train/0.jpg", "only/test/0.jpg"], None, "test/0.jpg lies outside of the class folders"),
    ],
)
def test_a_tree_of_another_form_is_refused_by_path(tmp_path, touch, files, empty, message):
    touch(tmp_path, files)
    if empty:
        (tmp_path / empty).mkdir()
    with pytest.raises(ValueError, match=message):
        read_layout(FOLDER, tmp_path)


CLASSES = [f"{name}/{number}.jpg" for name in "abcd" for number in range(2)]


def test_unlabelled_folders_hold_pictures_of_no_class_at_any_depth(tmp_path, touch):
    touch(tmp_path, [*CLASSES, "new/0.jpg", "new/may/1.jpg", "new/may/notes.txt", "a/later/2.jpg", "new/.thumbs/3.jpg"])
    frame = read_layout({**FOLDER, "unlabelled": ["new", "a/later"]}, tmp_path)
    apart = frame[frame["role"] == "unlabelled"]
    assert sorted(apart["path"]) == ["a/later/2.jpg", "new/0.jpg", "new/may/1.jpg"]
    assert set(apart["label"]) == {-1}
    labelled = frame[frame["role"] != "unlabelled"].reset_index(drop=True)
    (tmp_path / "new").rename(tmp_path.parent / f"{tmp_path.name}-new")
    (tmp_path / "a/later/2.jpg").unlink()
    assert labelled.equals(read_layout(FOLDER, tmp_path))


LINKS = {
    "back to its folder": {"new/all": "."},
    "back to a folder above it": {"new/may/up": ".."},
    "two folders at each other": {"new/may/june": "../june", "new/june/may": "../may"},
    "to nothing": {"new/gone": "nowhere"},
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_links_that_lead_in_a_circle_are_followed_once(tmp_path, touch, links):
    touch(tmp_path, [*CLASSES, "new/0.jpg", "new/may/1.jpg", "new/june/2.jpg"])
    for place, target in links.items():
        (tmp_path / place).symlink_to(target)
    frame = read_layout({**FOLDER, "unlabelled": ["new"]}, tmp_path)
    found = {os.path.realpath(tmp_path / path) for path in frame.loc[frame["role"] == "unlabelled", "path"]}
    assert found == {str(tmp_path.resolve() / "new" / name) for name in ("0.jpg", "may/1.jpg", "june/2.jpg")}
    assert (frame["role"] == "unlabelled").sum() == 3


@pytest.mark.parametrize(
    ("link", "target", "first"),
    [("new/y", "x", "new/y/0.jpg"), ("new/y.jpg", "x/0.jpg", "new/x/0.jpg"), ("more/y", "../new/x", "more/y/0.jpg")],
)
def test_an_unlabelled_picture_that_links_lead_to_counts_once_and_a_remark_says_so(
    tmp_path, touch, link, target, first
):
    touch(tmp_path, [*CLASSES, "new/x/0.jpg", "more/1.jpg"])
    (tmp_path / link).symlink_to(target)
    frame = read_layout({**FOLDER, "unlabelled": ["new", "more"]}, tmp_path)
    assert (frame["role"] == "unlabelled").sum() == 2
    assert frame.attrs["remarks"] == [f"1 unlabelled picture met again by a link and taken once; the first is {first}"]


@pytest.mark.parametrize("roles", [("train", "test"), ("train", "query", "gallery"), ("train", "query"), ("query",)])
def test_unlabelled_folders_stand_beside_roles(tmp_path, touch, roles):
    touch(tmp_path, [f"{role}/{name}/0.jpg" for role in roles for name in "xy"] + ["new/0.jpg"])
    assert set(read_layout({**FOLDER, "unlabelled": ["new"]}, tmp_path)["role"]) == {*roles, "unlabelled"}


def test_a_folder_may_hold_unlabelled_pictures_alone(tmp_path, touch):
    touch(tmp_path, ["0.jpg", "may/1.jpg"])
    frame = read_layout({**FOLDER, "unlabelled": ["."], "counts": {"unlabelled": {"images": 2}}}, tmp_path)
    assert list(frame["role"]) == ["unlabelled"] * 2
    with pytest.raises(ValueError, match=r"mine, unlabelled: 3 images expected, 2 images found"):
        read_layout({**FOLDER, "unlabelled": ["."], "counts": {"unlabelled": {"images": 3}}}, tmp_path)


def test_unlabelled_pictures_have_no_coarse_label(tmp_path, touch):
    touch(tmp_path, ["a/0.jpg", "b/0.jpg", "new/0.jpg"])
    (tmp_path / "hierarchy.csv").write_text("class_id,name,colour\n1,a,red\n2,b,blue\n")
    frame = read_layout({**FOLDER, "unlabelled": ["new"]}, tmp_path)
    assert frame["coarse_colour"].tolist() == [1, 0, -1]
    assert frame["coarse_colour"].dtype == "int64"


def test_ignored_are_names_anywhere_and_paths_with_a_slash(tmp_path, touch):
    touch(tmp_path, [*CLASSES, "drafts/0.jpg", "a/copy_of_0.jpg", "b/copy_of_1.jpg", "c/odd/0.jpg", "stray.jpg"])
    ignore = ["drafts", "copy_of_*", "c/odd", "stray.*"]
    assert sorted(read_layout({**FOLDER, "ignore": ignore}, tmp_path)["path"]) == CLASSES


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ignore": ["darfts"]}, "ignore: 'darfts' matches no file and no folder below"),
        ({"unlabelled": ["enw"]}, "unlabelled: .*/enw is no folder; it should hold pictures of no known class"),
        ({"unlabelled": ["a/empty"]}, "unlabelled: .*/empty holds no image"),
    ],
)
def test_a_misspelt_folder_or_pattern_is_refused(tmp_path, touch, keys, message):
    touch(tmp_path, [*CLASSES, "drafts/0.jpg", "a/empty/notes.txt"])
    with pytest.raises(ValueError, match=message):
        read_layout({**FOLDER, **keys}, tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("class_id,name\n1,a\n2,b\n", "must have the columns class_id, a name and levels"),
        ("name,class_id,kind\na,1,x\n", "must have the columns"),
        ("class_id,name,kind\n1,a,x\n2,b,\n", "holds an empty cell"),
        ("class_id,name,kind\n1,a,x\n2,a ,y\n", "class 'a' stands twice"),
        ("class_id,name,kind\n1,a,x\n2,B,y\n", "class 'b' is not in the hierarchy, which has 2 classes"),
        ("class_id,name,kind\n1,a,x\n", "class 'b' is not in the hierarchy, which has 1 classes"),
    ],
)
def test_a_broken_hierarchy_is_refused(tmp_path, touch, table, message):
    touch(tmp_path, ["a/0.jpg", "b/0.jpg"])
    (tmp_path / "hierarchy.csv").write_text(table)
    with pytest.raises(ValueError, match=message):
        read_layout(FOLDER, tmp_path)


SPREADSHEET = "class_id,name,kind\n1,caf\u00e9,red\n2,owl,blue\n"
SAVED = {
    "as Excel does by itself": (
        SPREADSHEET.encode("cp1252"),
        r"is not UTF-8 text: .*; save it in UTF-8 \(Excel: `CSV U",
    ),
    "as Unicode text": (SPREADSHEET.encode("utf-16"), "is not UTF-8 text: .*; save it in UTF-8"),
    "as that without its mark": (
        "class_id,name,kind\n1,a,b\n".encode("utf-16-le"),
        "is not UTF-8 text: it holds a zero",
    ),
    "as Excel of another country does": (SPREADSHEET.replace(",", ";").encode(), "';' parts its cells; put a comma in"),
    "with tabs": (SPREADSHEET.replace(",", "\t").encode(), r"'\\t' parts its cells; put a comma in place of each"),
    "with a cell too many": (SPREADSHEET.replace("red", "red,").encode(), "line 2: 4 cells, not the 3 of line 1"),
    "with a cell too few": (SPREADSHEET.replace(",blue", "").encode(), "line 3: 2 cells, not the 3 of line 1"),
    "with an open quotation mark": (SPREADSHEET.replace("owl", '"owl').encode(), "is a quotation mark left open"),
    "with a level twice": (
        SPREADSHEET.replace("kind", "kind,kind").encode(),
        "line 2: 3 cells|column 'kind' stands tw",
    ),
    "empty": (b"", "must have the columns class_id, a name and levels"),
}


@pytest.mark.parametrize(("content", "message"), SAVED.values(), ids=SAVED)
def test_a_hierarchy_as_spreadsheets_save_it_is_refused_with_file_and_remedy(tmp_path, touch, content, message):
    touch(tmp_path, ["caf\u00e9/0.jpg", "owl/0.jpg"])
    (tmp_path / "hierarchy.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{tmp_path}/hierarchy\.csv.*{message}") as refused:
        read_layout(FOLDER, tmp_path)
    assert "\n" not in str(refused.value)


def test_a_hierarchy_in_utf_8_is_read_with_a_mark_lines_of_windows_and_blank_ones(tmp_path, touch):
    touch(tmp_path, ["caf\u00e9/0.jpg", "owl/0.jpg"])
    (tmp_path / "hierarchy.csv").write_bytes(SPREADSHEET.replace("\n", "\r\n\r\n").encode("utf-8-sig"))
    assert read_layout(FOLDER, tmp_path)["coarse_kind"].tolist() == [1, 0]
