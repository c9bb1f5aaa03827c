"use strict";

/** Text that was packed as gzip in base64. */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** A new element; texts are put in as text, never as HTML. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "text/csv;charset=utf-8"}));
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** What is behind a field: the number in full, or else its words without what stands below them. */
function valueOf(cell) {
  if (cell.dataset.csv !== undefined) return cell.dataset.csv;
  if (cell.dataset.v !== undefined) return cell.dataset.v;
  const told = cell.cloneNode(true);
  for (const button of told.querySelectorAll("button:not(.sort)")) button.remove();
  const parts = [...told.childNodes];
  const words = (kept) => kept.map((one) => one.textContent.trim()).filter(Boolean);
  const small = words(parts.filter((one) => one.nodeName === "SMALL"));
  const main = words(parts.filter((one) => one.nodeName !== "SMALL")).join(" ");
  if (main === "\u2013") return ""; // the dash of a field without a value
  return cell.classList.contains("number") || !small.length ? main : `${main} (${small.join(" ")})`;
}

/** The table as text; the verdict beside a delta has a column of its own, with its reasons in full. */
function csvOf(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const judged = new Set([...table.querySelectorAll(".said")].map((one) => one.closest("td").cellIndex));
  const said = (cell) => (cell.nodeName === "TH" ? "Verdict" : cell.querySelector(".said")?.textContent ?? "");
  const fields = (cell) => (judged.has(cell.cellIndex) ? [valueOf(cell), said(cell)] : [valueOf(cell)]);
  const reasons = [...table.closest(".table").querySelectorAll(".reasons > li")].map((one) => one.textContent.trim());
  const named = (numbers) => numbers.split(", ").map((one) => reasons[one - 1]).join("; ");
  const whole = (text) => (reasons.length ? text.replace(/\[(\d+(?:, \d+)*)\]$/, (_, numbers) => `(${named(numbers)})`) : text);
  return [...table.rows].map((row) => [...row.cells].flatMap(fields).map(whole).map(quoted).join(",")).join("\n") + "\n";
}

function compare(one, other) {
  const [a, b] = [one, other].map((cell) => Number(cell?.dataset.v ?? NaN));
  if (!Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  if (Number.isNaN(a) !== Number.isNaN(b)) return null;
  return valueOf(one).localeCompare(valueOf(other), "en", {numeric: true});
}

/** Sort up, then down, then as it was; what has no number comes last either way. */
function sort(table, heading, column, original) {
  const next = {ascending: "descending", descending: "none"}[heading.ariaSort] ?? "ascending";
  for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
  heading.ariaSort = next;
  const sign = next === "descending" ? -1 : 1;
  const rows = [...original];
  if (next !== "none") {
    rows.sort((a, b) => {
      const [one, other] = [a.cells[column], b.cells[column]];
      return (compare(one, other) ?? (one.dataset.v === undefined ? sign : -sign)) * sign;
    });
  }
  table.tBodies[0].append(...rows);
}

/** A box that leaves the rows with all of its words. */
function filterOf(rows, caption) {
  const box = element("input", {type: "search", className: "filter", placeholder: "Filter the rows", ariaLabel: `Filter the rows: ${caption}`});
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
  });
  return box;
}

function equip(table) {
  const headings = [...table.tHead.rows[0].cells];
  const original = [...table.tBodies[0].rows];
  const caption = table.caption.textContent.trim();
  if (headings[0].nodeName === "TH" && original.length > 1) {
    headings.forEach((heading, column) => {
      if (heading.nodeName !== "TH") return; // a column without a name, such as that of links
      const button = element("button", {type: "button", className: "sort"}, ...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, column, original));
      heading.replaceChildren(button);
    });
  }
  if (table.dataset.filtered !== undefined) table.closest(".scroll").before(filterOf(original, caption));
  const csv = element("button", {type: "button", className: "csv", ariaLabel: `Download as CSV: ${caption}`}, "CSV");
  csv.addEventListener("click", () => save(`${table.id}.csv`, csvOf(table)));
  const scroll = table.closest(".scroll");
  const sideways = element("p", {className: "sideways", hidden: true}, "Scroll the table sideways for more columns \u2192");
  scroll.before(sideways);
  new ResizeObserver(() => (sideways.hidden = scroll.scrollWidth <= scroll.clientWidth + 1)).observe(scroll);
  scroll.after(element("p", {className: "tools"}, csv));
  for (const row of original) {
    if (!row.querySelector("[data-p]")) continue;
    const label = `Where the numbers of ${row.cells[0].firstChild.textContent.trim()} come from`;
    const button = element("button", {type: "button", className: "why", ariaLabel: label, title: label}, "i");
    putBehind(row.cells[0].firstChild, button);
  }
}

/** A button behind a text, on the line of its last word. */
function putBehind(text, button) {
  const words = text.textContent.trimEnd();
  const last = words.slice(words.lastIndexOf(" ") + 1);
  if (text.nodeType !== Node.TEXT_NODE) return text.replaceWith(element("span", {className: "kept"}, text.cloneNode(true), button));
  text.textContent = words.slice(0, words.length - last.length);
  return text.after(element("span", {className: "kept"}, last, button));
}

let evidence;

async function ask(cells) {
  const dialog = document.getElementById("provenance");
  evidence ??= unpacked(document.getElementById("evidence").textContent).then(JSON.parse);
  const {proofs, jobs} = await evidence;
  dialog.querySelector(".proofs").replaceChildren(...cells.map((cell) => told(cell.dataset.p, proofs, jobs, "h3")));
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(".proofs").scrollTop = 0;
}

function told(number, proofs, jobs, level) {
  const [title, facts, recordings, places, parts] = proofs[number];
  const list = (items) => element("ul", {}, ...items.map((one) => element("li", {}, element("code", {}, one))));
  const terms = facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  const section = element("section", {}, element(level, {}, title), element("dl", {}, ...terms));
  if (parts.length) {
    section.append(...parts.map((one) => told(one, proofs, jobs, "h4")));
    return section;
  }
  section.append(element("p", {}, recordings.length > 1 ? "Recordings" : "Recording"), list(recordings));
  if (places.length) {
    const count = places.length > 1 ? `${places.length} cells of fio, or of what made the requests` : "The cell";
    section.append(element("details", {open: places.length <= 7}, element("summary", {}, count), list(places)));
  }
  const job = jobs[places[0]];
  if (job) {
    const summary = element("summary", {}, `fio job: ${places[0]}/job.fio`);
    section.append(element("details", {open: true}, summary, element("pre", {tabIndex: 0}, job)));
  }
  return section;
}

function answerQuestions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.why");
    if (button) return ask([...button.closest("tr").querySelectorAll("[data-p]")]);
    const cell = event.target.closest("td[data-p]");
    if (cell && !String(getSelection())) return ask([cell]);
    return null;
  });
  const dialog = document.getElementById("provenance");
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

function navigate() {
  const contents = document.getElementById("contents");
  const details = contents.querySelector("details");
  const wide = matchMedia("(min-width: 75rem)");
  const fold = () => (details.open = wide.matches);
  wide.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => event.target.closest("a") && fold());
  for (const link of document.querySelectorAll('a[href="#contents"]')) {
    link.addEventListener("click", () => (details.open = true));
  }

  const box = element("input", {type: "search", placeholder: "Filter", ariaLabel: "Filter the contents"});
  const told = element("p", {className: "told", ariaLive: "polite"});
  details.querySelector("ul").before(box, told);
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const link of contents.querySelectorAll("li > a")) {
      const text = (link.ariaLabel ?? link.textContent).toLowerCase();
      link.parentElement.hidden = !wanted.every((word) => text.includes(word));
    }
    for (const group of contents.querySelectorAll(".group")) group.hidden = !group.querySelector("li:not([hidden])");
    told.textContent = contents.querySelector("li:not([hidden]) > a") ? "" : "No test or section matches.";
  });

  const links = new Map([...contents.querySelectorAll("li > a")].map((link) => [link.hash.slice(1), link]));
  const visible = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) visible[isIntersecting ? "add" : "delete"](target.id);
    const current = [...links.keys()].find((id) => visible.has(id));
    if (!current) return;
    contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const link = links.get(current);
    link.setAttribute("aria-current", "location");
    if (wide.matches) contents.scrollTop = link.offsetTop - contents.clientHeight / 2;
  }, {rootMargin: "-20% 0px -70% 0px"});
  for (const section of document.querySelectorAll("main section[id]")) if (links.has(section.id)) watch.observe(section);
}

/** The place of an id, which may be in what opens on demand. */
async function opened(id) {
  const holder = document.querySelector(`[data-holds~="${CSS.escape(id)}"]`);
  if (!holder) return document.getElementById(id);
  await unpack(holder);
  holder.open = true;
  return document.getElementById(id);
}

async function unpack(details) {
  const packed = details.querySelector(":scope > .packed");
  if (!packed) return;
  packed.remove();
  details.append(document.createRange().createContextualFragment(await unpacked(packed.textContent)));
  bringToLife(details);
}

function openOnDemand() {
  document.addEventListener("toggle", ({target}) => target.matches(".on-demand") && unpack(target), true);
  const follow = async () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (document.querySelector(`[data-holds~="${CSS.escape(id)}"]`)) (await opened(id))?.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => event.target.closest?.("a")?.hash === location.hash && location.hash && follow());
  follow();
}

function bringToLife(root) {
  root.querySelectorAll("table").forEach(equip);
  globalThis.drawCharts?.(root); // a page may be without charts
}

document.addEventListener("DOMContentLoaded", () => {
  bringToLife(document.querySelector("main"));
  answerQuestions();
  navigate();
  openOnDemand();
});
