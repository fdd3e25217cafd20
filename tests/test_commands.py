"""What a document asks to type can be copied as it stands."""

import re
import shlex

import pytest

from projects import ROOT

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "results" / "README.md"]
PROGRAMS = {"snakemake", "lookalike", "dvc", "mlflow", "git", "pip", "uv", "python", "export", "mkdir", "tar", "curl"}
A_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def begins(line):
    """Word that a line begins with, behind values of variables, if it is that of a program."""
    first = re.match(r"(?:[A-Z]\w*=\S+ (?:&& )?)*([\w./-]+)", line)
    name = first[1].rpartition("/")[2] if first else ""
    return name if name in PROGRAMS or (first and first[1].startswith(".ci/")) else ""


def wrapped(text):
    """What a document asks to type and breaks over lines, or shows outside of a fence for it."""
    for language, block in A_FENCE.findall(text):
        if language == "sh":
            yield from (line for line in block.splitlines() if not begins(line) or not closed(line))
    prose = A_FENCE.sub("", text)
    yield from (code for code in re.findall(r"(?<!`)`([^`]+)`", prose) if "\n" in code)
    yield from (line for line in prose.splitlines() if line.startswith("    ") and begins(line.strip()))


def closed(line):
    try:
        shlex.split(line)
    except ValueError:
        return False
    return not line.endswith(("\\", "&&", "|"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_stands_on_one_line_and_a_block_of_them_in_a_fence(document):
    assert list(wrapped(document.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "Type `snakemake --cores all\ntables`.\n",
        "by `--set-threads\ntrain=16`.\n",
        "So:\n\n    lookalike explain a b --negative\n    c\n",
        "```sh\nlookalike explain a b --negative\nc\n```\n",
        "```sh\nsnakemake --config 'seeds=[0,\n1]'\n```\n",
        "```sh\npip install uv &&\nuv venv\n```\n",
    ],
)
def test_a_wrapped_command_is_found(text):
    assert list(wrapped(text))


def test_what_is_no_command_is_left_alone():
    fences = (
        "```yaml\nname: mine\n    lookalike: 1\n```\n\n```sh\nBIRDS=data && .venv/bin/lookalike explain $BIRDS\n```\n"
    )
    assert list(wrapped(f"Type `snakemake -n`.\n\n{fences}\n    avsl_1  tags.tables\n")) == []
