"""The digest follows the code a job uses, and nothing else."""

import ast
import hashlib
import re
import shutil
from pathlib import Path

import pytest

from lookalike.base.paths import PACKAGE
from lookalike.methods import METHODS
from lookalike.workflow.plan.inputs import recipe_digest
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.settings.sources import code, trees

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


class StatedLoss:
    mining = dict(miner="near")

    def __init__(self):
        self.miner = MINERS[self.mining["miner"]]
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
    folder = tmp_path / "lookalike"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(trees, "ROOT", tmp_path)
    forget()
    yield folder
    forget()


def forget():
    """What a new process has not read yet."""
    for module in (code, trees):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def digests():
    forget()
    return {name: code.code_digest(["lookalike.stage:run"], {"loss": {"name": name}}) for name in ("first", "second")}


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
    edit(package / "losses" / "second.py", "SCALE = 2", '\n\nSCALE = 2  # twice\n"""Of what."""')
    assert digests() == before


def test_an_import_inside_a_function_counts(package):
    before = digests()
    edit(package / "late.py", "3", "4")
    after = digests()
    assert all(after[name] != before[name] for name in before)


def test_a_definition_in_another_module_has_the_same_digest(package):
    before = digests()
    (package / "losses" / "shared.py").rename(package / "losses" / "ground.py")
    (package / "late.py").rename(package / "losses" / "later.py")
    for path in package.rglob("*.py"):
        text = path.read_text().replace("import shared", "import ground").replace("shared.", "ground.")
        path.write_text(text.replace("lookalike.late", "lookalike.losses.later"))
    assert digests() == before
    edit(package / "losses" / "ground.py", "value + 1", "value + 2")
    assert {name for name, digest in digests().items() if digest != before[name]} == {"first"}


def test_an_import_that_moves_into_a_function_changes_nothing(package):
    before = digests()
    edit(package / "stage.py", "    from lookalike.late import number\n\n", "")
    edit(package / "stage.py", "def run", "from lookalike.late import number\n\n\ndef run")
    assert digests() == before


@pytest.mark.parametrize("name", ["MinedLoss", "StatedLoss"])
def test_an_entry_that_is_only_chosen_by_a_default_or_an_attribute_counts(package, name):
    entry_point = [f"lookalike.losses.mined:{name}"]
    before = code.code_digest(entry_point)
    edit(package / "miners.py", "return 2", "return 3")
    forget()
    assert code.code_digest(entry_point) == before
    edit(package / "miners.py", "return 1", "return 3")
    forget()
    assert code.code_digest(entry_point) != before


def test_lookup_tells_where_an_entry_is_defined(package):
    assert code.lookup("lookalike.losses", "LOSSES") == {
        "first": "lookalike.losses.first:FirstLoss",
        "second": "lookalike.losses.second:SecondLoss",
    }
    assert code.constructor_arguments("lookalike.losses.first:FirstLoss") == {"margin", "classes"}


def test_a_class_without_an_init_takes_the_arguments_of_its_nearest_one_and_inherits_every_one(package):
    (package / "losses" / "plain.py").write_text(
        "from torch import nn\n\nfrom lookalike.losses import first\n\n\n"
        "class PlainLoss(nn.Module):\n    def forward(self):\n        return 0\n\n\n"
        "class NextLoss(first.FirstLoss):\n    pass\n"
    )
    forget()
    assert code.constructor_arguments("lookalike.losses.plain:PlainLoss") == set()
    assert code.constructor_arguments("lookalike.losses.plain:NextLoss") == {"margin", "classes"}
    ancestors = {name: f"lookalike.losses.{name}" for name in ("first:FirstLoss", "shared:Base", "plain:NextLoss")}
    found = {name: code.inherits("lookalike.losses.plain:NextLoss", each) for name, each in ancestors.items()}
    assert found == dict.fromkeys(ancestors, True)
    assert not code.inherits("lookalike.losses.plain:PlainLoss", "lookalike.losses.shared:Base")
    assert not code.inherits("lookalike.losses.first:FirstLoss", "lookalike.losses.plain:NextLoss")


def test_what_an_argument_takes_is_read_from_its_annotation(package):
    (package / "losses" / "kinds.py").write_text(
        "from typing import Literal\n\nForm = Literal['plain', 'squared'] | None\nOther = list\n"
    )
    (package / "losses" / "typed.py").write_text(
        "from lookalike.losses.kinds import Form, Other\n\n\n"
        "class TypedLoss:\n    def __init__(\n        self, weight: float, k: int | None = 3, on: bool = True, "
        "form: Form = None,\n        name: str = '', other: Other = (), both: float | Other = 0, bare=1\n    ):\n"
        "        pass\n"
    )
    forget()
    assert code.constructor_values("lookalike.losses.typed:TypedLoss") == {
        "weight": (float,),
        "k": (int, None),
        "on": (bool,),
        "form": ("plain", "squared", None),
        "name": (str,),
    }


def test_unpacked_options_stand_for_their_keys_and_other_keywords_for_nothing(package):
    (package / "losses" / "open.py").write_text(
        "from typing import Any, TypedDict, Unpack\n\nfrom lookalike.losses.first import FirstLoss\n\n\n"
        "class Options(TypedDict, total=False):\n    miner: str\n    seed: int\n\n\n"
        "class OpenLoss(FirstLoss):\n"
        "    def __init__(self, *, weight=1, **options: Unpack[Options]):\n        super().__init__(**options)\n\n\n"
        "class AnyLoss(FirstLoss):\n"
        "    def __init__(self, *, weight=1, **options: Any):\n        super().__init__(**options)\n\n\n"
        "class ManyLoss(FirstLoss):\n"
        "    def __init__(self, *, weight=1, **options: FirstLoss):\n        super().__init__()\n"
    )
    forget()
    assert code.constructor_arguments("lookalike.losses.open:Options") == {"miner", "seed"}
    assert code.constructor_arguments("lookalike.losses.open:OpenLoss") == {"weight", "miner", "seed"}
    assert code.constructor_arguments("lookalike.losses.open:AnyLoss") == {"weight"}
    assert code.constructor_arguments("lookalike.losses.open:ManyLoss") == {"weight"}


def test_an_option_named_like_a_loss_does_not_choose_it(package):
    settings = {"loss": {"name": "first", "second": 0.5}}
    before = code.code_digest(["lookalike.stage:run"], settings)
    edit(package / "losses" / "second.py", "SCALE = 2", "SCALE = 3")
    forget()
    assert code.code_digest(["lookalike.stage:run"], settings) == before


def test_a_missing_module_or_name_is_refused(package):
    with pytest.raises(ValueError, match=r"no module 'lookalike.nothing'"):
        code.code_digest(["lookalike.nothing:run"])
    with pytest.raises(ValueError, match=r"defines no 'walk'; it has .*run"):
        code.code_digest(["lookalike.stage:walk"])


def test_the_real_training_stage_reaches_its_loss_and_its_loop():
    def of(loss):
        return code.code_digest(
            ["lookalike.workflow.stages.train:train", METHODS["embedder"].learner], {"loss": {"name": loss}}
        )

    assert of("margin") != of("proxy_anchor")


@pytest.fixture(scope="module")
def plan():
    return Plan({"scale": "mini", "seeds": [0], "archives": "data/archives", "tracking": False})


def copy_package(folder):
    shutil.copytree(PACKAGE, folder / "lookalike", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def real(tmp_path, monkeypatch):
    """A copy of the package itself to edit."""
    monkeypatch.setattr(trees, "ROOT", copy_package(tmp_path))
    forget()
    yield tmp_path / "lookalike"
    forget()


RECIPES = ("margin", "margin_diml", "contextual", "siamese", "sam_triplet", "avsl_margin", "diml_trained_margin")


def of_recipes(plan):
    """Digest by recipe and stage."""
    forget()
    return {
        (recipe, stage): recipe_digest(
            [f"lookalike.workflow.stages.{stage}:{stage}"], plan.deciding(recipe, "figurines_birds", stage)
        )
        for recipe in RECIPES
        for stage in ("train", "embed", "evaluate")
    }


@pytest.fixture(scope="module")
def before(plan, tmp_path_factory):
    """Digests of a copy of the package that nobody edits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ROOT", copy_package(tmp_path_factory.mktemp("unedited")))
        found = of_recipes(plan)
    forget()
    return found


def changed(plan, before):
    """Recipes and stages whose digest is another one now."""
    return {key for key, digest in of_recipes(plan).items() if digest != before[key]}


def edit_every_function(folder):
    """Change the body of every function with a result; the meaning stays, the syntax does not."""
    for path in folder.glob("*.py"):
        path.write_text(re.sub(r"^( +)return (?!\*)", r"\1return None or ", path.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("folder", "recipes"),
    [
        ("sam", {"sam_triplet"}),
        ("avsl", {"avsl_margin"}),
    ],
)
def test_editing_a_method_reaches_its_own_recipes_alone(real, plan, before, folder, recipes):
    edit_every_function(real / "methods" / folder)
    assert changed(plan, before) == {(recipe, stage) for recipe in recipes for stage in ("train", "embed", "evaluate")}


def test_editing_structural_matching_reaches_no_training_of_an_embedder(real, plan, before):
    edit_every_function(real / "methods" / "diml")
    stages = {("margin_diml", stage) for stage in ("embed", "evaluate")}
    assert changed(plan, before) == stages | {
        ("diml_trained_margin", stage) for stage in ("train", "embed", "evaluate")
    }


def test_editing_a_scoring_reaches_the_evaluations_that_use_it(real, plan, before):
    edit(real / "methods" / "diml" / "scoring.py", "truncation: int | None = 100", "truncation: int | None = 99")
    # a training by structural matching compares its epochs by it
    own = {("diml_trained_margin", stage) for stage in ("train", "embed", "evaluate")}
    assert changed(plan, before) == {("margin_diml", "evaluate")} | own


def test_adding_a_method_a_representation_or_a_scoring_reaches_nothing(real, plan, before):
    (real / "workflow" / "training" / "methods" / "new.py").write_text("class NewLearner:\n    pass\n")
    edit(real / "methods" / "__init__.py", '"sam": SAM,\n', '"sam": SAM,\n    "new": SAM,\n')
    edit(real / "methods" / "diml" / "__init__.py", "keeps_locations=True", "keeps_locations=True, has_attention=True")
    for path, last in (
        ("workflow/training/evaluation.py", '"random_vectors": random_vectors,'),
        ("workflow/training/evaluation.py", '"structural_matching": structural_matching,'),
    ):
        edit(real / path, last, f'{last.rstrip(",")}, "new": NewLearner,')
        text = (real / path).read_text()
        imported = "from lookalike.workflow.training.methods.new import NewLearner\n"
        (real / path).write_text(text.replace("from lookalike", f"{imported}from lookalike", 1))
    assert changed(plan, before) == set()


def test_editing_the_loop_reaches_every_training_and_nothing_else(real, plan, before):
    edit(real / "workflow" / "training" / "loop.py", "seed * 100_003 + epoch", "seed * 100_019 + epoch")
    assert changed(plan, before) == {(recipe, "train") for recipe in RECIPES}


def test_a_key_that_settings_gain_reaches_nothing(real, plan, before):
    edit(real / "workflow" / "settings" / "recipes.py", "    flip: Share\n", "    flip: Share\n    turn: Share = 0\n")
    assert changed(plan, before) == set()


def test_no_default_of_a_setting_chooses_an_entry():
    """What stands apart from the digest must not decide which code is in it."""
    forget()
    settings = trees.files()
    modules = [
        ".".join(path.relative_to(trees.ROOT).with_suffix("").parts) for path in settings if "settings" in path.parts
    ]
    named = {(module, name) for module in modules for name in trees.parse(module).definitions}
    assert {"steps", "hits"} <= code._defaults(named)
    assert not code._defaults(named) & code._lookup_keys()


def test_editing_a_loss_reaches_no_recipe_with_an_option_of_that_name(real, plan, before):
    edit(real / "losses" / "pairwise.py", "boundary: float = 1.2", "boundary: float = 1.1")
    assert {recipe for recipe, _ in changed(plan, before)} == {"margin", "margin_diml"}


def test_a_definition_has_the_same_text_in_every_python_that_runs_us():
    text = """
@cache
class One(Base, kind=2):
    value: int | None = None

    async def get(self, *given, key=(1, "two"), **named) -> list[str]:
        match key:
            case {"a": [_, *rest]}:
                return [f"{each!r:>9} of {len(rest)}" for each in rest if each]
        return []
"""
    (definition,) = ast.parse(text).body
    assert hashlib.sha256(code._dump(definition).encode()).hexdigest()[:12] == "22e2846de1a5"  # of Python 3.11
