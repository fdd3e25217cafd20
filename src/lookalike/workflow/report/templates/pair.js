// Maps and marks over pictures, and the dialog that explains one match.
"use strict";

// Maps over pictures. A map is {grid: [rows, columns], cells: percent of its largest cell, peak: share of that cell}.

const FULL = 99;

// A colour for a value from -1 to 1, opaque where it is large: [red, green, blue, alpha].
function colourOf(value) {
  const strength = Math.min(1, Math.abs(value));
  const steps = SHOWN.colours;
  const colour = value < 0 ? SHOWN.against : steps[Math.round(strength * (steps.length - 1))];
  return [...colour, Math.round(255 * SHOWN.opacity * strength ** SHOWN.contrast)];
}

// Up to where a map stays bare: zero where it has a sign, else its median, as some maps are high everywhere.
function floorOf(cells) {
  const ordered = [...cells].sort((one, other) => one - other);
  return ordered[0] < 0 ? 0 : Math.min(FULL - 1, ordered[Math.floor(ordered.length / 2)]);
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made && key !== "role") made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// One picture with a map of the part that a model sees, in a frame, and a second layer for marks.
class Side {
  constructor(figure) {
    this.figure = figure;
    this.picture = element("img", {alt: "", draggable: false});
    this.map = element("canvas", {"aria-hidden": "true"});
    this.marks = element("canvas", {"aria-hidden": "true"});
    this.frame = element("div", {className: "frame", tabIndex: 0, role: "group"}, this.picture, this.map, this.marks);
    figure.prepend(this.frame);
  }

  // part: [left, top, width, height] as shares of the picture's, of what the model sees.
  show(address, name, caption, part) {
    const [left, top, width, height] = part.map(share => `${100 * share}%`);
    for (const layer of [this.map, this.marks]) Object.assign(layer.style, {left, top, width, height});
    this.marks.classList.toggle("framed", part.some((share, place) => share !== (place < 2 ? 0 : 1)));
    this.mark([]);
    this.picture.onload = () => {
      this.frame.style.aspectRatio = `${this.picture.naturalWidth} / ${this.picture.naturalHeight}`;
      this.mark(...this.marked); // of a frame that was not as large before
    };
    this.picture.src = address;
    this.picture.alt = name;
    this.figure.querySelector("figcaption").textContent = caption;
  }

  draw(map) {
    const [rows, columns] = map.grid;
    const small = element("canvas", {width: columns, height: rows});
    const pixels = new ImageData(columns, rows);
    const floor = floorOf(map.cells);
    map.cells.forEach((cell, place) => pixels.data.set(colourOf(cell < 0 ? cell / FULL : Math.max(0, cell - floor) / (FULL - floor)), 4 * place));
    small.getContext("2d").putImageData(pixels, 0, 0);
    Object.assign(this.map, {width: 16 * columns, height: 16 * rows});
    const context = this.map.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(small, 0, 0, this.map.width, this.map.height);
  }

  // Outlines places of a grid: [{place, weight from 0 to 1}], the heaviest in the thickest line.
  mark(places, grid = [1, 1]) {
    this.marked = [places, grid];
    const [width, height] = [this.marks.clientWidth, this.marks.clientHeight];
    Object.assign(this.marks, {width: 2 * width, height: 2 * height});
    const context = this.marks.getContext("2d");
    context.scale(2, 2);
    const [rows, columns] = grid;
    for (const {place, weight} of places) {
      const [x, y] = [(place % columns) * width / columns, Math.floor(place / columns) * height / rows];
      const line = 1 + 3 * weight;
      for (const [colour, more] of [["#000", 2], ["#fff", 0]]) {
        context.strokeStyle = colour;
        context.lineWidth = line + more;
        context.strokeRect(x + line, y + line, width / columns - 2 * line, height / rows - 2 * line);
      }
    }
  }

  // Calls back with the place of a grid that is pointed at, or that the arrow keys lead to; with null when left.
  follow(grid, told) {
    const [rows, columns] = grid;
    let place = null;
    const go = next => { if (next !== place) told(place = next); };
    this.frame.onpointermove = this.frame.onpointerdown = event => {
      const box = this.marks.getBoundingClientRect();
      const cell = (part, whole, count) => Math.max(0, Math.min(count - 1, Math.floor(part / whole * count)));
      go(cell(event.clientY - box.top, box.height, rows) * columns + cell(event.clientX - box.left, box.width, columns));
    };
    this.frame.onpointerleave = event => { if (event.pointerType === "mouse") go(null); };
    this.frame.onblur = () => go(null);
    this.frame.onkeydown = event => {
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      if (!step) return;
      event.preventDefault();
      const [row, column] = place === null ? [0, 0] : [Math.floor(place / columns) + step[0], place % columns + step[1]];
      go(Math.max(0, Math.min(rows - 1, row)) * columns + Math.max(0, Math.min(columns - 1, column)));
    };
  }
}

// The dialog that explains one match: maps, counterparts of places, nodes, and what the other methods say of it.

const dialog = document.getElementById("explained");
const sides = {query: new Side(document.getElementById("query")), match: new Side(document.getElementById("match"))};
const part = name => document.getElementById(name);
let opened = null;  // {query, rows, row, rank}

const nameOf = picture => picture.split("/").pop().replace(/\.[^.]*$/, "").replaceAll("_", " ");
const percent = share => `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`;
const spot = (place, grid) => `row ${Math.floor(place / grid[1]) + 1}, column ${place % grid[1] + 1}`;

// query: {dataset, number, name, label, picture}; rows: those that are shown, each with its matches.
function openPair(query, rows, row, rank) {
  opened = {query, rows, row, rank};
  const method = rows[row], match = method.matches[rank];
  const place = `match ${rank + 1} of ${method.matches.length}`;
  const judged = match.right === undefined ? ["", ""] : match.right ? [", right", "✓ "] : [", wrong", "✗ "];
  part("pair").textContent = `${method.label}: ${place}${judged[0]}`;
  part("words").textContent = match.words + rankedBy(match);
  const {pictures, parts} = PICTURES[query.dataset];
  const show = (side, picture, ...said) => side.show(pictures[picture], ...said, parts[method.view][picture]);
  show(sides.query, query.picture, `Query: ${query.name}`, `Query: ${query.name}`);
  const name = match.name ?? nameOf(match.picture);
  show(sides.match, match.picture, `Match: ${name}`, `${judged[1]}${name}`);
  const distance = match.measure === "distance";
  const signed = match.maps.some(map => map.cells.some(cell => cell < 0));
  const framed = Object.values(sides).some(side => side.marks.classList.contains("framed"));
  part("meaning").textContent = (distance ? "where they differ" : "what makes them alike") + (signed ? `; blue: ${distance ? "less different" : "speaks against it"}` : "; bare: up to the map's median") + (framed ? "; the frame holds what the model sees" : "");
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
      if (node.maps) ["query", "match"].forEach((name, side) => sides[name].draw(node.maps[side]));
      part("place").textContent = node.maps ? `${said} The maps show where it looks.` : said;
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
