"""One lock for users and one for developers: pip, conda and the package agree, with hashes and without addresses."""

import re
import tomllib

import pytest
import yaml

from projects import ROOT

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ]+)((?: ; .*)?) \\$")
USERS, DEVELOPERS = "requirements.lock", "requirements-dev.lock"
LINES = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
BLOCKS = {USERS: LINES[0], DEVELOPERS: LINES[1]}


def locked(lock):
    lines = (ROOT / lock).read_text().splitlines()
    return [(match[1], match[2], match[3]) for line in lines if (match := PIN.match(line))]


def names_of(requirements):
    return {re.split(r"[\[><=~! ]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


def test_conda_users_get_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == [f"{name}=={version}{marker}" for name, version, marker in locked(USERS)]


@pytest.mark.parametrize("lock", [USERS, DEVELOPERS])
def test_every_pin_has_hashes_and_no_registry_is_named(lock):
    text = (ROOT / lock).read_text()
    blocks = [block for block in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE) if "==" in block]
    assert len(blocks) > 100
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert "://" not in text
    assert "index-url" not in text


def test_every_dependency_of_the_package_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    of_users = [each for extra in ("serve", "workflow", "cluster", "team") for each in extras[extra]]
    wanted = names_of([*project["dependencies"], *of_users]) - {"lookalike"}
    assert wanted <= {name.lower() for name, _, _ in locked(USERS)}
    tools = names_of(extras["dev"]) - {"lookalike"}
    assert wanted | tools <= {name.lower() for name, _, _ in locked(DEVELOPERS)}
    assert not tools & {name.lower() for name, _, _ in locked(USERS)}  # who only runs the workflow needs none of them


def test_developers_run_what_users_run():
    assert set(locked(USERS)) < set(locked(DEVELOPERS))


@pytest.mark.parametrize("lock", [USERS, DEVELOPERS])
def test_each_line_of_the_readme_installs_its_lock(lock):
    assert f"uv pip install -r {lock} -e .\n" in BLOCKS[lock]


def test_the_citation_names_the_version_and_the_four_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
    papers = {path.stem for path in (ROOT / "params" / "fidelity").glob("*.yaml")}
    assert {paper["notes"].rsplit(".")[-1] for paper in citation["references"]} == papers


def test_an_image_holds_nothing_of_dvc_that_git_does_not_hold_keys_least_of_all():
    own = (ROOT / ".dvc" / ".gitignore").read_text().split()
    assert "/config.local" in own
    assert {f".dvc{path}" for path in own} <= set((ROOT / ".dockerignore").read_text().split())
