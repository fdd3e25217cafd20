"""One lock for everybody: pip, conda and the package agree, with hashes and without addresses."""

import re
import tomllib

import yaml

from projects import ROOT

PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ]+)((?: ; .*)?) \\$")


def locked():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return [(match[1], match[2], match[3]) for line in lines if (match := PIN.match(line))]


def test_conda_users_get_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == [f"{name}=={version}{marker}" for name, version, marker in locked()]


def test_every_pin_has_hashes_and_no_registry_is_named():
    text = (ROOT / "requirements.lock").read_text()
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)
    assert "://" not in text
    assert "index-url" not in text


def test_every_dependency_of_the_package_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[><=~! ]", requirement)[0].lower().replace("_", "-") for requirement in wanted}
    assert names <= {name.lower() for name, _, _ in locked()}
