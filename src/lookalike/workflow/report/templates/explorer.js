// The pair explorer: a data set, a query, and what each method takes for most like it.
"use strict";

const chosen = {dataset: Object.keys(SHOWN.datasets)[0], query: 0, hidden: new Set()};

// Data lie in scripts, which a page from disk may load, other than JSON. Each is loaded once.
const loading = {};
function load(file) {
  loading[file] ??= new Promise((done, failed) => {
    document.head.append(element("script", {src: `data/${file}.js`, onload: done, onerror: () => failed(file)}));
  });
  return loading[file];
}

async function showDataset(name) {
  chosen.dataset = name;
  chosen.query = 0;
  await load(`${name}/pictures`);
  if (chosen.dataset !== name) return;  // another one was chosen meanwhile
  const dataset = SHOWN.datasets[name], {pictures} = PICTURES[name];
  part("queries").replaceChildren(...dataset.queries.map((query, number) => {
    const choice = element("input", {type: "radio", name: "query", value: number, checked: number === 0});
    choice.onchange = () => showQuery(number);
    return element("label", {title: query.name}, choice, element("img", {src: pictures[query.picture], alt: query.name}));
  }));
  part("methods").replaceChildren(...dataset.rows.map(row => {
    const choice = element("input", {type: "checkbox", checked: !chosen.hidden.has(row.recipe)});
    choice.onchange = () => { chosen.hidden[choice.checked ? "delete" : "add"](row.recipe); showQuery(chosen.query); };
    return element("label", {}, choice, ` ${row.label}`);
  }));
  await showQuery(0);
}

async function showQuery(number) {
  chosen.query = number;
  const key = `${chosen.dataset}/${number}`, dataset = SHOWN.datasets[chosen.dataset];
  await load(key);
  if (key !== `${chosen.dataset}/${chosen.query}`) return;  // another one was chosen meanwhile
  const query = {dataset: chosen.dataset, number, ...dataset.queries[number]};
  const rows = dataset.rows.map((row, place) => ({...row, matches: PAIRS[key][place]})).filter(row => !chosen.hidden.has(row.recipe));
  part("counted").textContent = `Methods: ${rows.length} of ${dataset.rows.length} shown`;
  const picture = PICTURES[chosen.dataset].pictures[query.picture];
  part("asked").replaceChildren(element("img", {src: picture, alt: ""}), element("span", {}, query.name));
  part("rows").replaceChildren(...rows.map((row, place) => rowOf(query, rows, row, place)));
}

function rowOf(query, rows, row, place) {
  const right = row.matches.filter(match => match.right).length;
  const facts = [`${right} of ${row.matches.length} right`];
  if (row.recall !== null) facts.push(`R@1 ${(100 * row.recall).toFixed(1)}`);
  if (row.query_ms !== null) facts.push(`${Number(row.query_ms.toPrecision(2))} ms a query`);
  const list = element("ol", {className: "matches"}, ...row.matches.map((match, rank) => {
    const name = nameOf(match.picture), score = (match.score ?? match.value).toFixed(3);
    const button = element("button", {type: "button", className: match.right ? "is-right" : "is-wrong"},
      element("img", {src: PICTURES[query.dataset].pictures[match.picture], alt: `${rank + 1}: ${name}, ${match.right ? "right" : "wrong"}`}),
      element("span", {className: match.right ? "right" : "wrong", "aria-hidden": "true"}, match.right ? "✓" : "✗"),
      element("span", {className: "score", title: match.score === null ? match.measure : ""}, score));
    button.onclick = () => openPair(query, rows, place, rank);
    return element("li", {}, button);
  }));
  const heading = element("h3", {}, row.label, " ", element("small", {}, facts.join(" · ")));
  return element("section", {className: "row", "aria-label": row.label}, heading, list);
}

part("dataset").append(...Object.entries(SHOWN.datasets).map(([name, dataset]) => element("option", {value: name}, dataset.title)));
part("dataset").onchange = event => showDataset(event.target.value);
for (const [name, hides] of [["all", false], ["none", true]]) {
  part(name).onclick = () => {
    const rows = SHOWN.datasets[chosen.dataset].rows;
    chosen.hidden = new Set(hides ? rows.map(row => row.recipe) : []);
    for (const choice of part("methods").querySelectorAll("input")) choice.checked = !hides;
    showQuery(chosen.query);
  };
}
part("choice").onsubmit = event => event.preventDefault();
showDataset(chosen.dataset);
