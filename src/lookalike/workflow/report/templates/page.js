// A heading sorts its table: largest first, then smallest first, then as it was. Dashes stay last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const ways = ["descending", "ascending", "none"];
  const key = (row, place) =>
    row.cells[place].dataset.order ?? (row.cells[place].firstChild?.textContent ?? "").trim();
  table.tHead.addEventListener("click", event => {
    const head = event.target.closest("th");
    const way = ways[(ways.indexOf(head.getAttribute("aria-sort")) + 1) % 3], place = head.cellIndex;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const compare = (one, two) => {
      const [a, b] = [key(one, place), key(two, place)];
      if (a === "–" || b === "–") return (a === "–") - (b === "–");
      const difference = parseFloat(a) - parseFloat(b);
      return sign * (isNaN(difference) ? a.localeCompare(b) : difference);
    };
    body.append(...(way === "none" ? rows : [...rows].sort(compare)));
  });
}
// Takes the line before a button; where the clipboard is refused it is marked, for the keys that copy.
document.addEventListener("click", async event => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const line = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(line.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(line);
  }
});
