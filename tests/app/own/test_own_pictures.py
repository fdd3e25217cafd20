"""``lookalike search``, ``explain`` and ``export``, as a person with a folder of pictures calls them."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from lookalike.app.command import main
from lookalike.app.own import serving
from own_pictures import write_pictures
from trainings import save


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call in an empty folder with pictures and a finished training; the exit status is returned."""
    monkeypatch.chdir(tmp_path)
    write_pictures(tmp_path / "pictures", 8)
    save(tmp_path / "seed0.safetensors", "embedder")

    def call(line):
        index = [] if line.startswith("explain") else ["--index", str(tmp_path / "index")]
        return main([*line.split(), *index])

    return call


def test_a_search_prints_rank_score_name_and_reason(run, capsys):
    assert run("search seed0.safetensors pictures/even/000.png --in pictures --top 3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "8 pictures in pictures, 8 of them new; by cosine"
    assert lines[2] == "pictures/even/000.png"
    hits = [re.fullmatch(r" +(\d)  +(0\.\d{3}|1\.000)  (\S+) +Cosine .* of 9 places .*\.", line) for line in lines[3:]]
    assert [hit[1] for hit in hits] == ["1", "2", "3"]
    assert "even/000.png" not in [hit[3] for hit in hits]
    assert run("search seed0.safetensors pictures/even/000.png --in pictures --top 3") == 0
    assert capsys.readouterr().out.splitlines()[0] == "8 pictures in pictures; by cosine"


def test_a_folder_of_queries_searches_itself_or_another(run, capsys):
    assert run("search seed0.safetensors pictures/odd --json --top 2") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["folder"], found["pictures"], found["measure"]) == ("pictures/odd", 4, "cosine")
    assert [len(query["hits"]) for query in found["queries"]] == [2] * 4
    hit = found["queries"][0]["hits"][0]
    assert hit["explanation"]["value"] == pytest.approx(hit["score"], abs=1e-4)
    assert run("search seed0.safetensors pictures/odd --in pictures/even --json --top 2 --by structure") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["queries"][0]["hits"][0]["explanation"]["method"] == "structure"


@pytest.mark.parametrize("broken", ["001", "003"])
def test_a_query_of_several_that_cannot_be_read_is_named_and_the_exit_status(run, tmp_path, capsys, broken):
    (tmp_path / "pictures" / "odd" / f"{broken}.png").write_bytes(b"no picture")
    assert run("search seed0.safetensors pictures/odd --in pictures/even --json --top 2") == 1
    told = capsys.readouterr()
    assert told.err.startswith(f"lookalike: pictures/odd/{broken}.png: no readable picture")
    assert len(json.loads(told.out)["queries"]) == 3


def test_one_model_of_several_that_cannot_be_read_is_left_out_of_a_service(run, tmp_path, capsys, monkeypatch):
    served = []
    monkeypatch.setattr(serving, "print_service", lambda models, *_, **named: served.append(len(models)))
    (tmp_path / "half.safetensors").write_bytes(b"x" * 20)
    others = ["half.safetensors", "absent.safetensors", "untrained:tiny=no.pth"]
    assert run("serve pictures --model seed0.safetensors " + " ".join(f"--model {each}" for each in others)) == 1
    told = capsys.readouterr().err.splitlines()
    assert sorted(line.partition(" is left out: ")[0] for line in told) == sorted(
        f"lookalike: --model {each}" for each in others
    )
    assert run("serve pictures --model half.safetensors --model absent.safetensors") == 2
    assert served == [1]


def test_the_page_needs_no_other_file_and_shows_every_match(run, tmp_path, capsys):
    (tmp_path / "pictures" / "even" / "<b>.png").write_bytes(b"no picture")
    assert run("search seed0.safetensors pictures/odd/001.png --in pictures --top 5 --out found.html") == 0
    page = (tmp_path / "found.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 1 + 3 * 5
    assert "http" not in page and 'src="data' in page
    assert page.count("Orange speaks for the likeness, blue against it. The frame holds what the model sees.</p>") == 1
    assert len(re.findall(r'alt="[^"]+"', page)) == page.count("<img")
    linked = [Path(unquote(urlsplit(link).path)) for link in re.findall(r'href="([^"]+)"', page)]
    assert len(linked) == 5 and all(path.is_relative_to(tmp_path.resolve()) and path.is_file() for path in linked)
    assert "<summary>1 could not be read</summary>" in page
    assert "&lt;b&gt;.png: no readable picture" in page and "<b>.png" not in page
    assert "passed over pictures/even/<b>.png: no readable picture" in capsys.readouterr().err


def test_an_explanation_is_a_sentence_a_picture_and_data(run, tmp_path, capsys):
    line = "explain seed0.safetensors pictures/odd/001.png pictures/odd/005.png"
    assert run(line) == 0
    words = capsys.readouterr().out.strip()
    assert words.startswith("Cosine ") and words.endswith(".")
    assert run(f"{line} --negative pictures/even/000.png --method structure --out why/this") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "why/this/explanation.png, why/this/explanation.json"
    data = json.loads((tmp_path / "why/this/explanation.json").read_text())
    assert data["words"] == printed[0]
    assert data["pictures"] == {
        "query": "pictures/odd/001.png", "gallery": "pictures/odd/005.png", "negative": "pictures/even/000.png",
    }  # fmt: skip
    assert Image.open(tmp_path / "why/this/explanation.png").size[0] > 900
    assert len(data["maps"]) == 3


def test_an_export_says_what_it_wrote_and_how_to_use_it(run, tmp_path, capsys):
    (tmp_path / "pictures" / "even" / "broken.png").write_bytes(b"no picture")
    assert run("export seed0.safetensors --to out/model --in pictures") == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines[:9]] == [str(path.relative_to(tmp_path)) for path in written(tmp_path)]
    assert lines[9] == "Vectors are compared by inner product: cosine."
    assert re.fullmatch(r"ONNX differs from torch by \de-\d\d at most\.", lines[10])
    assert lines[11:] == ["Without lookalike: python out/model/use.py PICTURE, or in out/model: uvicorn service:app"]
    assert "passed over pictures/even/broken.png" in told.err


def written(folder):
    return sorted((folder / "out" / "model").iterdir())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search seed0.safetensors empty", "empty holds no picture"),
        ("search seed0.safetensors seed0.safetensors --in pictures", "seed0.safetensors: no readable picture"),
        (
            "search seed0.safetensors pictures --by graph",
            "--by graph: not of this model, whose pictures are",
        ),
        (
            "search seed0.safetensors pictures --method graph",
            "--method graph: does not explain this model; ",
        ),
        ("search seed0.safetensors pictures --out seed0.safetensors/found.html", "seed0.safetensors"),
        ("explain margin@figurines_birds#7 pictures/odd/001.png pictures/odd/005.png", "is not trained; `cd "),
        ("export seed0.safetensors --to out --in empty", "empty holds no picture"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_it(run, tmp_path, capsys, line, said):
    (tmp_path / "empty").mkdir()
    before = {path for path in tmp_path.rglob("*") if "index" not in path.parts}
    assert run(line) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1
    assert {path for path in tmp_path.rglob("*") if "index" not in path.relative_to(tmp_path).parts} == before


def test_a_name_that_is_not_utf_8_is_found_and_shown(run, tmp_path, capsys):
    picture = tmp_path / "pictures" / "even" / "000.png"
    picture.rename(os.fsdecode(os.fsencode(picture.parent) + b"/caf\xe9.png"))
    assert run("search seed0.safetensors pictures/odd/001.png --in pictures --top 8 --out found.html") == 0
    assert "caf\ufffd.png" in capsys.readouterr().out
    assert "caf\ufffd.png" in (tmp_path / "found.html").read_text()
