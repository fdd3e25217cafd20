"""The digest follows the code a job uses, and nothing else."""

from pathlib import Path

import pytest

from lookalike import source

FILES = {
    "losses/__init__.py": """
from lookalike.losses.first import FirstLoss
from lookalike.losses.second import SecondLoss

LOSSES = {"first": FirstLoss, "second": SecondLoss}
""",
    "losses/first.py": """
from lookalike.losses import shared


class FirstLoss(shared.Base):
    def __init__(self, margin=0.1, *, classes):
        self.margin = margin
""",
    "losses/second.py": """
SCALE = 2


class SecondLoss:
    def forward(self):
        return SCALE
""",
    "losses/shared.py": """
class Base:
    \"\"\"What losses have in common.\"\"\"

    def forward(self):
        return formula(1)


def formula(value):
    return value + 1


def unrelated(value):
    return value - 1
""",
    "miners.py": """
def near():
    return 1


def far():
    return 2


MINERS = {"near": near, "far": far}
""",
    "losses/mined.py": """
from lookalike.miners import MINERS


class MinedLoss:
    def __init__(self, miner="near"):
        self.miner = MINERS[miner]
""",
    "stage.py": """
from lookalike.losses import LOSSES


def run(name):
    from lookalike.late import number

    return LOSSES[name](), number
""",
    "late.py": "number = 3\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(source, "ROOT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget():
    for cached in (source._digest, source._parse, source._path, source._lookup_keys):
        cached.cache_clear()


def digests():
    forget()
    return {name: source.code_digest(["lookalike.stage:run"], {"loss": {"name": name}}) for name in ("first", "second")}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_editing_a_formula_changes_only_the_runs_that_use_it(package):
    before = digests()
    edit(package / "losses" / "shared.py", "value + 1", "value + 2")
    after = digests()
    assert after["first"] != before["first"]
    assert after["second"] == before["second"]


def test_editing_a_constant_changes_the_runs_that_read_it(package):
    before = digests()
    edit(package / "losses" / "second.py", "SCALE = 2", "SCALE = 3")
    after = digests()
    assert after["first"] == before["first"]
    assert after["second"] != before["second"]


def test_adding_a_loss_changes_no_run(package):
    before = digests()
    (package / "losses" / "third.py").write_text("class ThirdLoss:\n    pass\n")
    edit(package / "losses" / "__init__.py", '"second": SecondLoss}', '"second": SecondLoss, "third": ThirdLoss}')
    edit(
        package / "losses" / "__init__.py",
        "import FirstLoss",
        "import FirstLoss\nfrom lookalike.losses.third import ThirdLoss",
    )
    assert digests() == before


def test_comments_docstrings_and_unused_code_change_nothing(package):
    before = digests()
    edit(package / "losses" / "shared.py", "What losses have in common.", "What they share.")
    edit(package / "losses" / "shared.py", "value - 1", "value - 2  # as it should be")
    edit(package / "losses" / "second.py", "SCALE = 2", "\n\nSCALE = 2  # twice")
    assert digests() == before


def test_an_import_inside_a_function_counts(package):
    before = digests()
    edit(package / "late.py", "3", "4")
    after = digests()
    assert all(after[name] != before[name] for name in before)


def test_an_entry_that_is_only_chosen_by_a_default_counts(package):
    entry_point = ["lookalike.losses.mined:MinedLoss"]
    before = source.code_digest(entry_point)
    edit(package / "miners.py", "return 2", "return 3")
    forget()
    assert source.code_digest(entry_point) == before
    edit(package / "miners.py", "return 1", "return 3")
    forget()
    assert source.code_digest(entry_point) != before


def test_lookup_tells_where_an_entry_is_defined(package):
    assert source.lookup("lookalike.losses", "LOSSES") == {
        "first": "lookalike.losses.first:FirstLoss",
        "second": "lookalike.losses.second:SecondLoss",
    }
    assert source.constructor_arguments("lookalike.losses.first:FirstLoss") == {"margin", "classes"}


def test_a_missing_module_or_name_is_refused(package):
    with pytest.raises(ValueError, match=r"no module 'lookalike.nothing'"):
        source.code_digest(["lookalike.nothing:run"])
    with pytest.raises(ValueError, match=r"defines no 'walk'; it has .*run"):
        source.code_digest(["lookalike.stage:walk"])


def test_the_real_training_stage_reaches_its_loss_and_its_loop():
    def of(loss):
        return source.code_digest(["lookalike.stages.train:train"], {"method": "embedder", "loss": {"name": loss}})

    assert of("margin") == of("margin")
    assert of("margin") != of("proxy_anchor")
