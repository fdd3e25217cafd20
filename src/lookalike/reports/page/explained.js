// The dialog that explains one match: maps, counterparts of places, nodes, and what the other methods say of it.
"use strict";

const dialog = document.getElementById("explained");
const sides = {query: new Side(document.getElementById("query")), match: new Side(document.getElementById("match"))};
const part = name => document.getElementById(name);
let opened = null;  // {query, rows, row, rank}

const percent = share => `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`;
const spot = (place, grid) => `row ${Math.floor(place / grid[1]) + 1}, column ${place % grid[1] + 1}`;

// query: {dataset, number, name, label, picture}; rows: those that are shown, each with its matches.
function openPair(query, rows, row, rank) {
  opened = {query, rows, row, rank};
  const method = rows[row], match = method.matches[rank];
  const place = `match ${rank + 1} of ${method.matches.length}`;
  part("pair").textContent = `${method.label}: ${place}, ${match.right ? "right" : "wrong"}`;
  part("words").textContent = match.words + rankedBy(match);
  const address = name => PICTURES[query.dataset][method.view][name];
  sides.query.show(address(query.picture), `Query: ${query.name}`, `Query: ${query.name}`);
  sides.match.show(address(match.picture), `Match: ${nameOf(match.picture)}`, `${match.right ? "✓" : "✗"} ${nameOf(match.picture)}`);
  const distance = match.measure === "distance";
  const signed = match.maps.some(map => map.cells.some(cell => cell < 0));
  part("meaning").textContent = (distance ? "where they differ" : "what makes them alike") + (signed ? `; blue: ${distance ? "less different" : "speaks against it"}` : "; bare: up to the map's median");
  showMaps(match);
  showNodes(match);
  showOthers(match);
  part("before").disabled = rank === 0;
  part("after").disabled = rank === method.matches.length - 1;
  if (!dialog.open) dialog.showModal();
}

// What a structural match is ranked by, where that is the sum with the cosine, of which only one part is explained.
function rankedBy(match) {
  const alone = match.score === null || Math.abs(match.score - match.value) < 0.002;
  if (alone || match.measure !== "structural similarity") return "";
  return ` It is ranked by ${match.score.toFixed(3)}, the sum of structural similarity and cosine.`;
}

function showMaps(match) {
  const both = [["query", "match"], ["match", "query"]];
  both.forEach(([one, other], side) => {
    const map = match.maps[side], grid = match.places ? match.places.grid : map.grid;
    sides[one].draw(map);
    sides[one].mark([]);
    const said = match.places ? "the arrow keys show what each place is matched with" : "the arrow keys read the map";
    sides[one].frame.setAttribute("aria-label", `${one === "query" ? "Query" : "Match"}, ${grid[0]} by ${grid[1]} places; ${said}`);
    sides[one].follow(grid, place => tell(match, one, other, side, grid, place));
  });
  tell(match);
}

// The cell of a coarser map in which a place of a grid lies.
function within(place, grid, coarse) {
  const row = Math.floor(place / grid[1]), column = place % grid[1];
  return Math.floor((row + 0.5) * coarse[0] / grid[0]) * coarse[1] + Math.floor((column + 0.5) * coarse[1] / grid[1]);
}

// What is known of a place: its share, and where its counterparts lie.
function tell(match, one, other, side, grid, place = null) {
  sides.query.mark([]);
  sides.match.mark([]);
  if (place === null) {
    part("place").textContent = match.places ? "Point at a place to see what it is matched with." : "Point at a place to read the map.";
    return;
  }
  sides[one].mark([{place, weight: 0.5}], grid);
  const map = match.maps[side], same = map.grid[0] === grid[0] && map.grid[1] === grid[1];
  const cell = map.cells[same ? place : within(place, grid, map.grid)] / FULL;
  const share = same && map.peak !== null ? `adds ${percent(cell * map.peak)} of the ${match.measure}` : `is at ${percent(cell)} of the map's strongest place`;
  let said = `The ${one}'s ${spot(place, grid)} ${share}`;
  if (match.places) {
    const found = match.places[one][place];
    const most = found.length ? found[0][1] : 1;
    sides[other].mark(found.map(([counterpart, permille]) => ({place: counterpart, weight: permille / most})), grid);
    said += found.length ? `; with the ${other}'s ${found.map(([counterpart, permille]) => `${spot(counterpart, grid)} (${percent(permille / 1000)})`).join("; ")}` : "; with no place of the other in particular";
  }
  part("place").textContent = `${said}.`;
}

function showNodes(match) {
  part("nodes").replaceChildren();
  if (!match.nodes) return;
  const list = element("ol", {className: "nodes"});
  for (const node of match.nodes) {
    const title = `node ${node.node} of level ${node.level}`;
    const bar = element("span", {className: "bar", "aria-hidden": "true"});
    bar.style.width = `${100 * node.share / match.nodes[0].share}%`;
    const button = element("button", {type: "button"}, `${title}: ${percent(node.share)}`, bar);
    const below = node.below.map(([other, weight]) => `${other} (${weight.toFixed(2)})`).join(", ");
    const said = `${title[0].toUpperCase()}${title.slice(1)} adds ${percent(node.share)} of the distance: difference ${node.difference} times sensitivity ${node.sensitivity}, reliability ${node.reliability}` + (below ? `; where it is not reliable, nodes ${below} of level ${node.level - 1} stand in for it.` : ".");
    button.onpointerenter = button.onfocus = button.onclick = () => {
      sides.query.draw(node.maps[0]);
      sides.match.draw(node.maps[1]);
      part("place").textContent = `${said} The maps show where it looks.`;
    };
    button.onpointerleave = button.onblur = () => showMaps(match);
    list.append(element("li", {}, button));
  }
  part("nodes").append(element("h3", {}, "Nodes that add most to the distance"), list);
}

// The same picture among the matches of the other methods.
function showOthers(match) {
  const found = opened.rows.map((row, number) => ({number, rank: row.matches.findIndex(each => each.picture === match.picture)}));
  const buttons = found.filter(each => each.rank >= 0 && each.number !== opened.row).map(each => {
    const button = element("button", {type: "button"}, `${opened.rows[each.number].label}: match ${each.rank + 1}`);
    button.onclick = () => openPair(opened.query, opened.rows, each.number, each.rank);
    return button;
  });
  part("others").replaceChildren(...(buttons.length ? [element("h3", {}, "The same picture by other methods"), element("p", {className: "steps"}, ...buttons)] : []));
}

const step = by => openPair(opened.query, opened.rows, opened.row, opened.rank + by);
part("before").onclick = () => step(-1);
part("after").onclick = () => step(1);
part("close").onclick = () => dialog.close();
part("covered").onchange = () => dialog.classList.toggle("bare", !part("covered").checked);
dialog.onclick = event => { if (event.target === dialog) dialog.close(); };
const ramp = SHOWN.colours.map((colour, place) => {
  const strength = place / (SHOWN.colours.length - 1);
  return `rgb(${colour.join(" ")} / ${SHOWN.opacity * strength ** SHOWN.contrast})`;
});
part("colours").style.background = `linear-gradient(to right, ${ramp.join(", ")}), #888`;
