// Maps over pictures. A map is {grid: [rows, columns], cells: percent of its largest cell, peak: share of that cell}.
"use strict";

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

// One picture with a map and a second layer for marks; draw, mark and clear change it.
class Side {
  constructor(figure) {
    this.figure = figure;
    this.picture = element("img", {alt: "", draggable: false});
    this.map = element("canvas", {"aria-hidden": "true"});
    this.marks = element("canvas", {"aria-hidden": "true"});
    this.frame = element("div", {className: "frame", tabIndex: 0, role: "group"}, this.picture, this.map, this.marks);
    figure.prepend(this.frame);
  }

  show(address, name, caption) {
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
    const [width, height] = [this.frame.clientWidth, this.frame.clientHeight];
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
      const box = this.frame.getBoundingClientRect();
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
