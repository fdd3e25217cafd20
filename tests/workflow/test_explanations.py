"""The target `explanations` in real calls: triplets are drawn once, each method is measured once per model."""

import csv
import json
import re

import pytest

pytestmark = pytest.mark.slow

LINE = "--cores 2 --resources gpu=1 explanations --configfile own.yaml"
EXPLANATIONS = """
explanations:
  triplets: 6
  grid: 6
  steps: 2
  substitutes: [mean]
  datasets: [pictures]
  blocks:
    - title: One model
      rows:
        - {label: exact, recipe: compared_margin, explainer: activation}
        - {label: chance, recipe: compared_margin, explainer: random}
    - title: Models
      rows:
        - {label: exact again, recipe: compared_margin_diml, explainer: activation}
        - {label: AVSL, recipe: compared_margin_avsl, explainer: graph, seeds: [0]}
seeds: [0, 1]
"""


@pytest.fixture
def explained(project):
    with (project.root / "own.yaml").open("a") as stream:
        stream.write(EXPLANATIONS)
    return project


@pytest.mark.nightly
def test_a_small_table_is_made_and_a_new_row_measures_itself_alone(explained):
    done = explained.run(LINE, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    results = explained.root / "results" / "own"
    with (results / "explanations.csv").open() as stream:
        cells = {(each["label"], each["column"]): each for each in csv.DictReader(stream)}
    assert {label for label, _ in cells} == {"exact", "chance", "exact again", "AVSL"}
    assert cells["exact", "partner"] | {"label": "", "block": "", "recipe": ""} == cells["exact again", "partner"] | {
        "label": "",
        "block": "",
        "recipe": "",
    }
    assert (cells["exact", "partner"]["seeds"], cells["AVSL", "partner"]["seeds"]) == ("2", "1")
    assert cells["exact", "agreement"]["reason"] == "the data set names no parts"
    assert "Empty, as the data set names no parts: part agreement" in (results / "explanations.md").read_text()
    measures = sorted(
        str(path.relative_to(results / "explanations")) for path in results.glob("explanations/*/*/*.json")
    )
    assert measures == [
        "compared_margin/pictures/activation-seed0.json",
        "compared_margin/pictures/activation-seed1.json",
        "compared_margin/pictures/random-seed0.json",
        "compared_margin/pictures/random-seed1.json",
        "compared_margin_avsl/pictures/graph-seed0.json",
    ]
    assert len(json.loads((results / "explanations" / measures[0]).read_text())["values"]["partner"]) == 6

    explained.edit("own.yaml", "explainer: random}", "explainer: edges}")
    again = explained.run(f"-n {LINE}")
    assert again.returncode == 0, again.stderr
    jobs = re.findall(
        r"Job \d+: (\w+) (?:the quality|compared_margin on pictures by (\w+))", again.stdout + again.stderr
    )
    assert sorted(set(jobs)) == [("Explain", "edges"), ("Put", "")]


def test_a_method_that_does_not_explain_a_recipe_is_refused_before_any_job(explained):
    explained.edit("own.yaml", "explainer: graph", "explainer: attention")
    done = explained.run(f"-n {LINE}")
    assert done.returncode != 0
    message = "explainer 'attention' does not explain recipe compared_margin_avsl, which trains avsl; these do: graph"
    assert message in done.stdout + done.stderr
    assert "compared_margin" in explained.run("-n --cores 1 tables --configfile own.yaml").stdout
