"""Pages as a browser shows them, at 1280 and 390 px, light and dark: PNG files to look at.

    python tests/helpers/screens.py FOLDER [NAME...]
    python tests/helpers/screens.py --docs

Pages of results and of the site are those that are there. A search, a served folder and MLflow's page are made for it,
of photographs of lookalike and of the project's own runs. ``--docs`` makes the pictures of the docs anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from browser import Page, browser
from databases import free_port
from tracked import mlflow_server

ROOT = Path(__file__).resolve().parents[2]
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
QUERY = "groceries:Bravo-Apple-Juice/0.jpg"
OPENED = "document.querySelector('dialog[open] img')?.complete"
DOCS = {"pairs-1280-light": "page.png", "pair-390-light": "page_match.png", "mlflow-1280-light": "mlflow_compare.png"}


class Screen(NamedTuple):
    """A page, and what is done before it is shown.

    Attributes:
        place: gives its file or address in a block.
        steps: a condition that is waited for, or behind ``click `` what is clicked, by its selector.
    """

    place: Callable[[], object]
    steps: Sequence[str] = ()


def of_results(file: str, folder: str = "results") -> Callable[[], object]:
    """The latest file of a name below ``results/`` or ``site/``."""
    found = sorted(ROOT.glob(f"{folder}/{file}"), key=lambda path: path.stat().st_mtime)
    return lambda: nullcontext(found[-1] if found else None)


@contextmanager
def found() -> Iterator[Path]:
    """The page of a search."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "found.html"
        called = ["search", "untrained:squeezenet1_1", QUERY, "--in", "groceries:", "--top", "6", "--out", str(page)]
        subprocess.run(["lookalike", *called, "--index", folder], check=True, stdout=subprocess.DEVNULL)
        yield page


@contextmanager
def served() -> Iterator[str]:
    """The address of a served folder."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        called = ["lookalike", "serve", "groceries:", "--port", str(port), "--index", folder]
        server = subprocess.Popen(called, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout and " at http" in server.stdout.readline()
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait()


@contextmanager
def compared() -> Iterator[str | None]:
    """The address of a table's rows in MLflow's page."""
    if not (ROOT / "mlflow.db").is_file():
        yield None
        return
    import mlflow

    from lookalike.workflow.tracking.sync import SHOWN, VIEW

    store = f"sqlite:///{ROOT / 'mlflow.db'}"
    tables = {
        (key.removeprefix(VIEW), each.experiment_id)
        for each in mlflow.MlflowClient(store).search_experiments()
        for key in each.tags
        if key.startswith(VIEW)
    }
    if not tables:
        yield None
        return
    table, experiment = min(tables, key=lambda each: (each[0] not in ("comparison", "methods"), each))
    with tempfile.TemporaryDirectory() as folder, mlflow_server(Path(folder), store=store) as address:
        yield f"{address}/#/experiments/{experiment}/runs?{SHOWN}&viewStateShareKey={table}"


PAIRS, BIRDS = of_results("*/page/index.html"), of_results("reference/birds/tables.html")
ASKED = ["document.querySelector('#samples button')", "click #samples button"]
ANSWERED = [*ASKED, "document.querySelector('#found .open:not(:disabled)')"]
MLFLOW_CLOSES = ("assistant.chat_panel.close", "experiment_page.shared_view.dismiss")
SITE = {
    "front": "docs/site/index",
    "gallery": "docs/site/gallery",
    "notebook": "examples/search_and_explain",
    "reference": "docs/reference",
    "figures": "results/reference/birds/figures",
    "structure": "docs/structure",
}
SCREENS = {
    "tables_birds": Screen(BIRDS),
    "tables_mini": Screen(of_results("mini/tables.html")),
    "row": Screen(
        of_results("reference/birds/tables.html"), ["click td button", "document.querySelector(':popover-open')"]
    ),
    "recommendation": Screen(of_results("own_*/recommendation.html")),
    "pairs": Screen(PAIRS, ["document.querySelector('.matches img')?.complete"]),
    "pair": Screen(PAIRS, ["document.querySelector('.matches button')", "click .matches button", OPENED]),
    **{name: Screen(of_results(f"*/page/{name}.html")) for name in ("tables", "figures", "claims", "explanations")},
    "found": Screen(found),
    "served": Screen(served, ANSWERED),
    "served_pair": Screen(served, [*ANSWERED, "click #found li:nth-child(2) .open", OPENED]),
    **{f"site_{name}": Screen(of_results(f"{page}.html", "site")) for name, page in SITE.items()},
    # Its assistant opens once, and covers a quarter; once closed it stays so.
    "mlflow": Screen(
        compared,
        [
            "document.querySelectorAll('[role=row]').length > 3",
            *(f"(document.querySelector('[data-component-id$=\"{part}\"]')?.click(), true)" for part in MLFLOW_CLOSES),
        ],
    ),
}


def show(page: Page, screen: Screen, place: object, *, width: int, dark: bool) -> None:
    """Open a page and take its steps."""
    page.open(place if isinstance(place, str) else Path(str(place)), width=width, dark=dark)
    for step in screen.steps:
        if step.startswith("click "):
            page.click(step.removeprefix("click "))
        else:
            page.wait(step)
    time.sleep(1)  # what moves comes to rest


def main(folder: Path, names: Sequence[str], kinds: Sequence[str] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as page:
        for name in names:
            with SCREENS[name].place() as place:  # type: ignore[attr-defined]
                if place is None:
                    print(f"{name}: not there")
                    continue
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        kind = f"{name}-{width}-{scheme}"
                        if kinds and kind not in kinds:
                            continue
                        show(page, SCREENS[name], place, width=width, dark=scheme == "dark")
                        page.picture(folder / f"{kind}.png")
                        wide = page.run("document.documentElement.scrollWidth")
                        print(f"{kind}: {wide} px wide" + (f"; {page.problems}" if page.problems else ""))
                        page.problems.clear()


if __name__ == "__main__":
    if sys.argv[1:] == ["--docs"]:
        with tempfile.TemporaryDirectory() as drawn:
            main(Path(drawn), [kind.split("-")[0] for kind in DOCS], [*DOCS])
            for kind, file in DOCS.items():
                if Path(drawn, f"{kind}.png").is_file():
                    shutil.copy(Path(drawn, f"{kind}.png"), ROOT / "docs" / file)
    else:
        main(Path(sys.argv[1]), sys.argv[2:] or [*SCREENS])
