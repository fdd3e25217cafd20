// The page of `lookalike serve`: a picture is sent as it is, first for its matches, then for the reasons.
"use strict";

const QUERY = "\0query";  // no name of a file
const asked = {file: null, name: "", number: null, turn: 0, address: ""};  // a number where it is one of the folder
const value = id => part(id).value;

async function answer(address, options) {
  const response = await fetch(address, options);
  const said = await response.json().catch(() => ({detail: response.statusText}));
  if (!response.ok) throw new Error(typeof said.detail === "string" ? said.detail : JSON.stringify(said.detail));
  return said;
}

const about = answer("about");

async function showSamples() {
  const {samples} = await about;
  part("samples").replaceChildren(...samples.map(named => {
    const button = element("button", {type: "button", title: named.picture}, element("img", {src: `thumbnails/${named.number}`, alt: `search like ${named.picture}`}));
    button.onclick = () => askNumber(named);
    return button;
  }));
}

async function showWays() {
  const {models} = await about;
  const {ways} = models.find(each => each.model === value("model"));
  part("way").replaceChildren(...ways.map(way => element("option", {value: way}, way)));
}

function send(why) {
  const words = {model: value("model"), way: value("way"), top: value("top"), why};
  if (value("below")) words.below = value("below");
  if (asked.number !== null) words.without = asked.number;
  return answer(`search?${new URLSearchParams(words)}`, {method: "POST", body: asked.file, headers: {"Content-Type": "application/octet-stream"}});
}

async function search() {
  if (!asked.file) return;
  const turn = ++asked.turn, current = () => turn === asked.turn;
  part("status").textContent = "Searching; a model or a way that is new looks at the whole folder first.";
  try {
    const found = await send(false);
    if (!current()) return;
    show(found);
    part("status").textContent = `${told(found)}. Reasons follow.`;
    const explained = await send(true);
    if (!current()) return;
    show(explained, true);
    part("status").textContent = `${told(found)}. Open a match to see which places make it so.`;
  } catch (error) {
    if (current()) { part("status").textContent = `Refused: ${error.message}`; part("found").replaceChildren(); }
  }
}

const told = found => `${found.hits.length} of ${found.pictures.toLocaleString("en")} pictures by ${found.measure}${found.measure === "distance" ? ", smallest first" : ""}, found in ${Math.round(found.milliseconds)} ms`;

function ask(file, name, number = null) {
  Object.assign(asked, {file, name, number});
  URL.revokeObjectURL(asked.address);
  asked.address = URL.createObjectURL(file);
  part("asked").hidden = false;
  part("asked").replaceChildren(element("img", {src: asked.address, alt: "the query"}), element("span", {}, name));
  return search();
}

function show(found, why = false) {
  const pictures = {[QUERY]: found.query?.shown}, parts = {[QUERY]: found.query?.part};
  PICTURES.folder = {pictures, parts: {[found.model]: parts}};
  const matches = found.hits.map(hit => ({...hit.explanation, picture: hit.picture, name: hit.picture, score: hit.score}));
  for (const hit of found.hits) [pictures[hit.picture], parts[hit.picture]] = [`thumbnails/${hit.number}`, hit.part];
  if (found.query) part("asked").querySelector("img").src = found.query.shown;  // also of kinds that no browser shows
  const rows = [{label: found.model, view: found.model, matches}];
  const query = {dataset: "folder", name: asked.name, picture: QUERY};
  part("found").replaceChildren(...found.hits.map((hit, rank) => {
    const open = element("button", {type: "button", className: "open", disabled: !hit.explanation, title: hit.explanation ? "see why" : ""},
      element("img", {src: `thumbnails/${hit.number}`, alt: `match ${rank + 1}: ${hit.picture}`}));
    open.onclick = () => openPair(query, rows, 0, rank);
    return element("li", {}, open,
      element("p", {}, element("span", {className: "score"}, `${rank + 1}. ${hit.score.toFixed(3)}`), " ", element("span", {className: "name"}, hit.picture)),
      element("p", {className: "small"}, hit.explanation ? hit.explanation.words : why ? "The file can no longer be read." : "\u2026"), links(hit));
  }));
}

async function askNumber(named) {
  const file = await (await fetch(`pictures/${named.number}`)).blob();
  part("asked").hidden = false;
  part("asked").scrollIntoView({block: "nearest"});
  return ask(file, named.picture, named.number);
}

function links(named) {
  const like = element("button", {type: "button"}, "search like it");
  like.onclick = () => askNumber(named);
  return element("p", {className: "links"}, element("a", {href: `pictures/${named.number}`, target: "_blank"}, "open the file"), like);
}

const KINDS = {
  copies: ["Copies", each => `${each.value} of equal bytes`],
  near_copies: ["Near copies, as saved or resized anew", each => `${each.value} of 256 bits differ`],
  outliers: ["Farthest from all others, beside the picture nearest to them", each => `${each.value.toFixed(3)} to the five nearest`],
  strays: ["Nearest to another folder: the picture, that nearest one, and the nearest of its own", each => `nearer by ${each.value.toFixed(3)}`],
};

part("look").onclick = async () => {
  part("look").disabled = true;
  part("doubtful").replaceChildren(element("p", {className: "small"}, "Looking."));
  try {
    const found = await answer(`doubtful?${new URLSearchParams({model: value("model")})}`);
    part("doubtful").replaceChildren(...Object.entries(KINDS).flatMap(([kind, [title, words]]) => [
      element("h3", {}, `${title}: ${found[kind].length}`),
      element("ol", {className: "doubts"}, ...found[kind].map(each => element("li", {},
        element("div", {className: "pair"}, ...each.pictures.slice(0, 3).map(named => element("figure", {},
          element("img", {src: `thumbnails/${named.number}`, alt: named.picture, loading: "lazy"}), element("figcaption", {}, named.picture)))),
        element("p", {className: "small"}, words(each)), links(each.pictures[0])))),
    ]));
  } catch (error) { part("doubtful").textContent = `Refused: ${error.message}`; }
  part("look").disabled = false;
};

part("file").onchange = () => { const [file] = part("file").files; if (file) ask(file, file.name); };
part("model").onchange = async () => { await showWays(); search(); };
for (const id of ["way", "below", "top"]) part(id).onchange = search;
part("choice").onsubmit = event => event.preventDefault();
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, event => {
    event.preventDefault();
    part("drop").classList.toggle("over", kind === "dragover");
    const [file] = kind === "drop" ? event.dataTransfer.files : [];
    if (file) ask(file, file.name);
  });
}
document.addEventListener("paste", event => { const [file] = event.clipboardData.files; if (file) ask(file, file.name || "pasted"); });
part("address").textContent = location.origin + "/";
showWays();
showSamples();
