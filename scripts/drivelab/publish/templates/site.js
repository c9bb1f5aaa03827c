
/* The pages of a site. Texts of archives are put in as text, never as HTML. */

/** Filter the tables of the first page by words. */
function searchTables() {
  const place = document.getElementById("search-place");
  if (!place) return;
  const box = element("input", {type: "search", id: "search", autocomplete: "off", placeholder: "Model, firmware, protocol, study …"});
  const found = element("p", {className: "found", ariaLive: "polite"});
  place.append(element("label", {className: "search", htmlFor: "search"}, "Search drive models, firmware, tests and studies", box), found);
  const rows = [...document.querySelectorAll("#model-table tbody tr, #tests tbody tr, #study-table tbody tr")];
  const texts = new Map(rows.map((row) => [row, `${row.textContent} ${row.closest("table").caption.textContent}`.toLowerCase()]));
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    for (const test of document.querySelectorAll(".test")) test.hidden = !test.querySelector("tbody tr:not([hidden])");
    const count = (id) => document.querySelectorAll(`#${id} tbody tr:not([hidden])`).length;
    const said = (number, one, many) => `${number} ${number === 1 ? one : many}`;
    found.textContent = words.length
      ? `${said(count("model-table"), "model", "models")}, ${said(count("tests"), "result", "results")}, ${said(count("study-table"), "study", "studies")} match.`
      : "";
  };
  box.addEventListener("input", filter);
}

const FLIPPED = {
  "faster beyond the margin": "slower beyond the margin", "slower beyond the margin": "faster beyond the margin",
  "faster (size unsure)": "slower (size unsure)", "slower (size unsure)": "faster (size unsure)",
};
const TONES = {faster: "good", slower: "bad"};
const NONE = "no verdict computed";

/** Four significant digits, whole numbers in full, as everywhere in drivelab. */
function digits(value) {
  if (value === null) return "not recorded";
  const size = Math.abs(value);
  if (size >= 999.95 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  if (size >= 1) return value.toFixed(3 - Math.floor(Math.log10(size)));
  return size >= 1e-4 ? value.toFixed(2 - Math.floor(Math.log10(size))) : value.toExponential(2);
}

function percentOf(fraction) {
  const value = 100 * fraction, size = Math.abs(value);
  const shown = size >= 10 ? size.toFixed(0) : size >= 1 ? size.toFixed(1) : size.toFixed(2);
  const sign = Number(shown) === 0 ? "±" : value < 0 ? "\u2212" : "+";
  return `${sign}${shown}\u00a0%`;
}

/** Reasons why two results are not compared; the rules come from drivelab. */
function reasonsBetween(one, other, head) {
  const [a, b] = [head.groups[one.group], head.groups[other.group]];
  return head.reasons.filter(([facet]) => a[facet] !== b[facet])
    .map(([facet, words]) => words.replace(/\{([ab])\}/g, (_, side) => (side === "a" ? a : b)[facet]));
}

/** The difference of a value, positive for an improvement; null if a value is not positive. */
function difference(basis, comparison, kind) {
  if (!(basis > 0 && comparison > 0)) return null;
  return kind === "time" ? basis / comparison - 1 : comparison / basis - 1;
}

/** Rows of the comparison: cell, both values, difference, verdict, doubts. */
function compared(block, basis, comparison, fewest) {
  const [left, right] = [block.entries[basis.id][0], block.entries[comparison.id][0]];
  const judged = block.pairs[`${basis.id} ${comparison.id}`] ?? null;
  const turned = judged ? null : block.pairs[`${comparison.id} ${basis.id}`] ?? null;
  const verdicts = new Map((judged ?? turned ?? []).map((row) => [row[0], row]));
  const others = new Map(right.map((row) => [row[0], row]));
  return left.filter((row) => others.has(row[0])).map((row) => {
    const other = others.get(row[0]), cell = block.cells[row[0]];
    const change = difference(row[1], other[1], cell[4]);
    const doubts = [[basis, row], [comparison, other]].filter(([, one]) => one[5]).map(([entry, one]) => `${entry.name}: ${one[5]}`);
    const loads = (text) => text.match(/, at (T\d+Q\d+(?: or T\d+Q\d+)*)/)?.[1] ?? "";
    const statistic = (text) => text.replace(/, at T\d+Q\d+(?: or T\d+Q\d+)*/, "")
      .replace(/, (?:geometric )?mean of \d+ recordings/, "").replace(/\b(median|mean|best) of \d+/g, "$1");
    if (loads(row[6]) !== loads(other[6])) doubts.unshift(`at different loads: ${loads(row[6])} and ${loads(other[6])}`);
    if (statistic(row[6]) !== statistic(other[6])) doubts.unshift("different statistics");
    const made = {cell, row, other, change, verdict: NONE, low: null, high: null, doubts};
    if (Math.min(row[4], other[4]) < fewest) return {...made, verdict: "in these recordings"};
    const known = verdicts.get(row[0]);
    if (!known) return made;
    const turn = (value) => (value === null ? null : 100 * (1 / (1 + value / 100) - 1));
    return turned
      ? {...made, verdict: FLIPPED[known[1]] ?? known[1], low: turn(known[3]), high: turn(known[2]), doubts: known[4]}
      : {...made, verdict: known[1], low: known[2], high: known[3], doubts: known[4]};
  });
}

function barOf(change, longest, tone) {
  const made = (tag, properties) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
    return node;
  };
  const svg = made("svg", {class: "bar", viewBox: "0 0 64 10", width: 64, height: 10, "aria-hidden": true});
  const share = longest ? Math.sign(change) * Math.log1p(100 * Math.abs(change)) / Math.log1p(100 * longest) : 0;
  svg.append(made("rect", {class: tone || "open", x: 32 + 32 * Math.min(share, 0), y: 1, width: 32 * Math.abs(share), height: 8}));
  svg.append(made("line", {x1: 32, y1: 0, x2: 32, y2: 10}));
  return svg;
}

function tableOf(id, caption, headings, rows) {
  const head = headings.map(([text, numeric]) => element("th", {scope: "col", className: numeric ? "number" : ""}, text));
  const table = element("table", {id}, element("caption", {id: `${id}-caption`}, element("span", {className: "aside"}, caption)),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  const scroll = element("div", {className: "scroll", tabIndex: 0, role: "region"}, table);
  scroll.setAttribute("aria-labelledby", `${id}-caption`);
  const whole = element("div", {}, element("h3", {}, caption), element("div", {className: "table"}, scroll));
  return [whole, table];
}

function differencesTable(rows, basis, comparison) {
  const longest = Math.max(0, ...rows.map((row) => Math.abs(row.change ?? 0)));
  const made = rows.map(({cell, row, other, change, verdict, low, high, doubts}) => {
    const [words, notation, metric, unit] = cell;
    const tone = TONES[verdict.split(" ")[0]] ?? "";
    const number = (value) => {
      const td = element("td", {className: "number"}, digits(value[1]), " ", element("span", {className: "unit"}, unit));
      if (value[1] !== null) td.dataset.v = value[1];
      if (value[4] > 1 && value[2] !== null) td.append(element("small", {}, `${digits(value[2])} to ${digits(value[3])}`));
      return td;
    };
    const delta = element("td", {className: `number ${tone}`});
    if (change === null) delta.append("not compared");
    else {
      delta.dataset.v = 100 * change;
      delta.append(element("span", {className: "delta-field"}, barOf(change, longest, tone), element("span", {}, percentOf(change))));
      if (low !== null && high !== null) delta.append(element("small", {}, `${percentOf(low / 100)} to ${percentOf(high / 100)}`));
    }
    const said = element("td", {className: tone}, verdict);
    if (doubts.length) said.append(element("small", {}, doubts.join("; ")));
    const head = element("th", {scope: "row"}, words);
    if (words !== notation) head.append(element("small", {}, notation));
    return element("tr", {}, head, element("td", {}, metric), number(row), number(other), delta, said);
  });
  return tableOf("differences", "Differences of the common values",
    [["Workload"], ["Metric"], [basis.name, true], [comparison.name, true], ["Difference", true], ["Verdict"]], made);
}

function conditionsTable(block, basis, otherBlock, comparison) {
  const [a, b] = [block.entries[basis.id][1], otherBlock.entries[comparison.id][1]];
  const kinds = {...otherBlock.kinds, ...block.kinds};
  const facets = Object.keys(kinds).filter((facet) => (a[facet] ?? "not recorded") !== (b[facet] ?? "not recorded"));
  const rows = facets.map((facet) => element("tr", {}, element("th", {scope: "row"}, facet), element("td", {}, kinds[facet]),
    element("td", {}, a[facet] ?? "not recorded"), element("td", {}, b[facet] ?? "not recorded")));
  if (!rows.length) return [element("p", {className: "note"}, "All recorded conditions are equal."), null];
  return tableOf("conditions", "Conditions that differ", [["Condition"], ["Kind"], [basis.name], [comparison.name]], rows);
}

/** The result in words: how many values, and with which verdicts. */
function sentenceOf(rows, basis, comparison, fewest) {
  const counts = new Map();
  for (const {verdict} of rows) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const values = `${rows.length} common value${rows.length === 1 ? "" : "s"}`;
  if (counts.get("in these recordings") === rows.length) {
    return [`${comparison.name} against ${basis.name}: differences in these recordings`,
      `${values}. A verdict needs ${fewest} recordings a side; here are ${comparison.recordings} and ${basis.recordings}.`];
  }
  const parts = [...counts].sort((one, other) => other[1] - one[1]).map(([verdict, count]) => `${count} ${verdict}`);
  const hint = counts.has(NONE) ? " For verdicts, restore both archives and run drivelab compare." : "";
  return [`${comparison.name} against ${basis.name}`, `${values}: ${parts.join(", ")}.${hint}`];
}

function refusal(title, reasons) {
  return element("aside", {className: "banner refused"}, element("h3", {}, title),
    element("ul", {}, ...reasons.map((reason) => element("li", {}, reason))));
}

const blocks = new Map();

function blockOf(group) {
  if (!blocks.has(group)) blocks.set(group, unpacked(document.getElementById(`group-${group}`).textContent).then(JSON.parse));
  return blocks.get(group);
}

async function outcomeOf(basis, comparison, head) {
  if (basis.id === comparison.id) return [refusal("The same result on both sides", ["Choose another result for one side."])];
  const block = await blockOf(basis.group);
  if (basis.group !== comparison.group) {
    const [conditions, table] = conditionsTable(block, basis, await blockOf(comparison.group), comparison);
    return [refusal("Not comparable", reasonsBetween(basis, comparison, head)), conditions, [table]];
  }
  const prints = new Set(block.entries[basis.id][2]);
  const common = block.entries[comparison.id][2].filter((print) => prints.has(print)).length;
  if (common) return [refusal("Not comparable", [`both sides have the same ${common === 1 ? "recording" : `${common} recordings`}`])];
  const rows = compared(block, basis, comparison, head.terms.fewest);
  if (!rows.length) return [refusal("Not comparable", ["they share no workload and metric"])];
  const [lead, counts] = sentenceOf(rows, basis, comparison, head.terms.fewest);
  const labels = [...new Set([...basis.labels, ...comparison.labels])];
  const limits = element("p", {className: "limits"}, labels.length ? "Limitations: " : "");
  for (const label of labels) limits.append(element("span", {className: "chip"}, label), " ");
  const [differences, table] = differencesTable(rows, basis, comparison);
  const [conditions, other] = conditionsTable(block, basis, block, comparison);
  return [element("p", {className: "lead"}, lead), element("p", {className: "counts"}, counts), limits, differences, conditions, [table, other]];
}

const MOST_OPTIONS = 200;

function picker(side, legend, entries, changed) {
  const box = element("input", {type: "search", autocomplete: "off", placeholder: "Filter: model, firmware, protocol …", ariaLabel: `Filter, ${legend}`});
  const list = element("select", {size: matchMedia("(max-width: 40rem)").matches ? 5 : 8, ariaLabel: legend});
  const told = element("p", {className: "picked quiet", ariaLive: "polite"});
  const texts = entries.map((entry) => [entry.drive, entry.model, entry.details, entry.firmware, entry.protocol, entry.measurement, entry.date, entry.name, entry.serial, ...entry.labels].join(" ").toLowerCase());
  let chosen = null;
  const fill = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fitting = entries.filter((entry, place) => words.every((word) => texts[place].includes(word)));
    list.replaceChildren(...fitting.slice(0, MOST_OPTIONS).map((entry) => element("option", {value: entry.id, selected: entry === chosen},
      `${entry.name} · ${entry.measurement}`)));
    tell(fitting.length);
  };
  const tell = (count) => {
    const more = count > MOST_OPTIONS ? ` ${MOST_OPTIONS} of ${count} are listed; filter to see others.` : "";
    told.textContent = chosen
      ? `${chosen.model}, ${chosen.details} · ${chosen.protocol} · ${chosen.date || "no date"} · ${chosen.recordings} recording${chosen.recordings === 1 ? "" : "s"}`
      : `${count} result${count === 1 ? "" : "s"}.${more}`;
  };
  box.addEventListener("input", fill);
  const choose = (entry) => {
    chosen = entry ?? null;
    fill();
  };
  list.addEventListener("change", () => {
    chosen = entries.find((entry) => entry.id === list.value) ?? null;
    tell(list.length);
    changed(side, chosen);
  });
  fill();
  return [element("fieldset", {className: "picker"}, element("legend", {}, legend), box, list, told), choose];
}

async function compareTwo() {
  const place = document.getElementById("pickers");
  if (!place) return;
  const head = JSON.parse(await unpacked(document.getElementById("entries").textContent));
  const names = ["id", "group", "name", "model", "details", "firmware", "protocol", "date", "recordings", "labels", "measurement", "serial"];
  const entries = head.entries.map((row) => Object.fromEntries(row.map((value, at) => [names[at], value])));
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const chosen = {a: null, b: null};
  const outcome = document.getElementById("outcome");
  const empty = [...outcome.childNodes];
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    if (!chosen.a || !chosen.b) return outcome.replaceChildren(...empty);
    const parts = await outcomeOf(chosen.a, chosen.b, head);
    if (mine !== turn) return null;
    const tables = Array.isArray(parts.at(-1)) ? parts.pop() : [];
    outcome.replaceChildren(...parts);
    tables.filter(Boolean).forEach(equip);
    return null;
  };
  const changed = (side, entry) => {
    chosen[side] = entry;
    const hash = Object.entries(chosen).filter(([, one]) => one).map(([name, one]) => `${name}=${one.id}`).join("&");
    history.replaceState(null, "", `#${hash}`);
    show();
  };
  const sides = {a: picker("a", "Basis", entries, changed), b: picker("b", "Comparison", entries, changed)};
  place.append(sides.a[0], sides.b[0]);
  const follow = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("a") && !wanted.has("b")) return;
    for (const side of ["a", "b"]) {
      chosen[side] = byId.get(wanted.get(side)) ?? null;
      sides[side][1](chosen[side]);
    }
    show();
  };
  addEventListener("hashchange", follow);
  follow();
}

searchTables();
compareTwo();
