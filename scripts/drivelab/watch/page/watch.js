// The page: events of the server into gauges, chart, steady state and log.

import {GAP_S, draw, end, nearest} from "./chart.js";

// As in the figures of the report: safe for colour-blind readers.
const COLOURS = ["#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const MOST_LINES = 12, MOST_POINTS = 3600, MOST_LOG = 200;
const METRICS = {iops: ["IOPS", 2], mib: ["MiB/s", 3], latency: ["Latency", 4]};
const AXES = {clock: "Clock", since: "Since start"};
const SPANS = {60: "1 min", 300: "5 min", 900: "15 min", 3600: "1 h", all: "All"};
const STANDINGS = {
  running: "running", measured: "measured", between: "between two stages", failed: "failed", interrupted: "interrupted",
  silent: "no sign of life", waiting: "to do", finished: "finished", stopped: "not running",
};

const $ = (id) => document.getElementById(id);
// Points are by drive, STUDY/DRIVE, and by recording, the one that has news last at the end.
const studies = new Map(), drives = new Map(), points = new Map(), cards = new Map(), hidden = new Set();
let shown = {metric: "iops", axis: "clock", span: "all"}, axisChosen = false;
let cursor = null, timeAt = () => null, lines = [], gaugeTop = 0, lastNews = 0, offset = 0, lostSince = null;

// Making elements

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "rect", "text", "polyline", "polygon", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((one) => one !== null));
  return node;
}
function put(node, text) { if (node.textContent !== text) node.textContent = text; }
function paint(node, colour) { node.style.setProperty("--colour", colour); return node; }

// Numbers and times in words

function number(value, digits = 0) {
  return value.toLocaleString("en", {maximumFractionDigits: digits, minimumFractionDigits: digits});
}
function few(value) { return number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2); }
function short(value) {
  const [factor, letter] = value >= 1e6 ? [1e6, "M"] : value >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${(value / factor).toLocaleString("en", {maximumFractionDigits: 2})}${letter}`;
}
function latency(us) {
  if (us === null) return "–";
  return us < 1000 ? `${few(us)} µs` : us < 1e6 ? `${few(us / 1000)} ms` : `${few(us / 1e6)} s`;
}
function duration(s) {
  const whole = Math.round(s), minutes = Math.floor(whole / 60);
  if (whole < 60) return `${whole} s`;
  return minutes < 60 ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}
function clock(s) { return new Date(s * 1000).toLocaleTimeString("en-GB"); }
function since(s) {
  const whole = Math.abs(Math.round(s)), sign = Math.round(s) < 0 ? "−" : "";
  const [h, m, r] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return sign + (h ? `${h}:${String(m).padStart(2, "0")}:${String(r).padStart(2, "0")}` : `${m}:${String(r).padStart(2, "0")}`);
}
const METRIC_TEXT = {iops: (v) => `${number(v)} IOPS`, mib: (v) => `${few(v)} MiB/s`, latency};

// What the server says

function take(body, isSnapshot) {
  if (isSnapshot) { points.clear(); $("log").replaceChildren(); }
  for (const name of body.anew || []) pointsBeside(name).delete(name);
  for (const [name, found] of Object.entries(body.points)) {
    const own = pointsBeside(name), known = own.get(name) || [];
    own.delete(name);
    own.set(name, known.concat(found).slice(-MOST_POINTS));
    forget(own);
  }
  for (const study of body.studies) {
    const before = studies.get(study.name);
    studies.set(study.name, study);
    for (const drive of study.drives) {
      const key = `${study.name}/${drive.drive}`;
      announce(drives.get(key), drive);
      if (!drives.has(key) && drives.size >= MOST_LINES) hidden.add(key);
      drives.set(key, {...drive, key, study: study.name, order: drives.get(key)?.order ?? drives.size});
    }
    if (before && before.standing !== study.standing) say(`Study ${study.name}: ${STANDINGS[study.standing]}`);
  }
  log(body.lines);
}
// Of the drive that a recording is of.
function pointsBeside(name) {
  const key = name.split("/", 2).join("/");
  if (!points.has(key)) points.set(key, new Map());
  return points.get(key);
}
// The oldest recordings, when those after them have as many points as are kept.
function forget(own) {
  let left = [...own.values()].reduce((sum, found) => sum + found.length, 0);
  for (const name of [...own.keys()].slice(0, -1)) {
    left -= own.get(name).length;
    if (left < MOST_POINTS) return;
    own.delete(name);
  }
}

function announce(before, now) {
  if (!before) return;
  if (before.standing !== now.standing) say(`${now.drive}: ${STANDINGS[now.standing]}${now.failure ? `, ${now.failure}` : ""}`);
  else if (before.stage !== now.stage || before.measurement !== now.measurement) say(`${now.drive}: ${now.stage}, ${now.measurement}`);
  else if (before.progress?.ended !== now.progress?.ended && now.progress?.ended) say(`${now.drive}: ${now.progress.ended}`);
}
function say(text) { $("announce").textContent = text; }

function colour(drive) { return COLOURS[drive.order % COLOURS.length]; }
// Neighbours differ, as curves that are the same hide each other; and those of one colour, up to 40 drives.
function dash(drive) { return DASHES[(drive.order + Math.floor(drive.order / 20)) % DASHES.length]; }
function name(drive) { return studies.size > 1 ? `${drive.study}: ${drive.drive}` : drive.drive; }
function isShown(drive) { return !["waiting", "measured"].includes(drive.standing) || seriesOfAll(drive).length > 0; }
function seriesOf(drive) { return points.get(drive.key)?.get(`${drive.study}/${drive.recording}`) || null; }
// With earlier measurements: [name, points], oldest first.
function seriesOfAll(drive) { return [...(points.get(drive.key) || [])]; }
function highest(found, column) {
  let most = 0;
  for (const drive of found) for (const [, series] of seriesOfAll(drive)) for (const point of series) if (point[column] > most) most = point[column];
  return most;
}

// Header, cards and tables

function showStudies() {
  const nodes = [...studies.values()].map((study) => {
    const words = [STANDINGS[study.standing], `${study.done} of ${study.recordings} measurements done`];
    if (study.standing === "finished") words.push(`results in ${study.results}/`);
    const chips = [["simulated", "virtual clock"], ["virtual", "virtual drive"], ["reduced", "reduced protocol"]]
      .filter(([key]) => [...drives.values()].some((one) => one.study === study.name && one[key]))
      .map(([, label]) => make("span", {class: "chip"}, label));
    return make("div", {class: "study"}, make("h1", {}, study.title),
      make("p", {}, ...chips, words.join(" · ")));
  });
  if ($("studies").textContent !== nodes.map((one) => one.textContent).join("")) $("studies").replaceChildren(...nodes);
  document.title = [...studies.values()].map((one) => `${one.name}: ${STANDINGS[one.standing]}`).join(", ") + " – drivelab";
}

const START = -120, SWEEP = 240;
function onDial(share, radius) {
  const angle = (START + SWEEP * share) * Math.PI / 180;
  return [100 + radius * Math.sin(angle), 100 - radius * Math.cos(angle)];
}
function arc(to) {
  const [x0, y0] = onDial(0, 84), [x1, y1] = onDial(to, 84);
  return `M${x0} ${y0}A84 84 0 ${SWEEP * to > 180 ? 1 : 0} 1 ${x1} ${y1}`;
}

function newCard(drive) {
  const parts = {};
  const part = (key, node) => (parts[key] = node);
  const ticks = [0, .25, .5, .75, 1].map((share) => {
    const [[x0, y0], [x1, y1]] = [onDial(share, 74), onDial(share, 70)];
    return make("line", {class: "tick", x1: x0, y1: y0, x2: x1, y2: y1});
  });
  const [labelX, labelY] = [onDial(1, 84)[0], onDial(1, 84)[1] + 17];
  parts.root = paint(make("article", {class: "drive", "aria-label": drive.drive},
    make("div", {class: "top"}, part("name", make("h3")), part("standing", make("span", {class: "standing"}))),
    part("model", make("p", {class: "model"})),
    make("svg", {class: "gauge", viewBox: "0 0 200 162", "aria-hidden": "true"},
      make("path", {class: "track", d: arc(1)}), part("value", make("path", {class: "value", d: arc(0)})), ...ticks,
      make("text", {x: 200 - labelX, y: labelY}, "0"), part("top", make("text", {x: labelX, y: labelY})),
      part("needle", make("polygon", {class: "needle", points: "97,100 100,32 103,100"})),
      make("circle", {class: "hub", cx: 100, cy: 100, r: 6})),
    make("p", {class: "iops"}, part("iops", make("b")), make("span", {}, "IOPS")),
    make("p", {class: "pair"}, make("span", {}, part("mib", make("b")), "MiB/s"), make("span", {}, part("latency", make("b")), "mean latency")),
    part("doing", make("p", {class: "doing"})),
    part("progress", make("progress", {max: 1, "aria-label": "share of the drive's measurements that is done"})),
    part("facts", make("p", {class: "facts"})),
    part("taint", make("p", {class: "banner warn", hidden: ""})),
    part("failure", make("p", {class: "banner", hidden: ""}))), colour(drive));
  return parts;
}

function showCard(drive) {
  if (!cards.has(drive.key)) cards.set(drive.key, newCard(drive));
  const card = cards.get(drive.key), running = drive.standing === "running";
  const series = seriesOf(drive);
  const last = drive.latest || (drive.simulated && series ? series[series.length - 1] : null);
  card.root.dataset.standing = drive.standing;
  put(card.name, name(drive));
  put(card.standing, drive.standing === "silent" ? `no sign of life since ${clock(drive.at_s)}` : STANDINGS[drive.standing]);
  put(card.model, [drive.model, drive.firmware && `firmware ${drive.firmware}`, drive.host && `on ${drive.host}`].filter(Boolean).join(", "));
  const share = last ? Math.min(last[2] / gaugeTop, 1) : 0;
  card.needle.style.transform = `rotate(${START + SWEEP * share}deg)`;
  card.value.setAttribute("d", arc(Math.max(share, 0.0005)));
  put(card.top, short(gaugeTop));
  put(card.iops, last ? number(last[2]) : "–");
  put(card.mib, last ? few(last[3]) : "–");
  put(card.latency, last ? latency(last[4]) : "–");
  const heading = [drive.measurement, drive.run > 1 ? `run ${drive.run}` : null, drive.stage].filter(Boolean).join(", ");
  put(card.doing, `${heading}: ${drive.text || ""}`);
  card.progress.value = drive.share || 0;
  const told = drive.telemetry || {};
  const facts = [
    `${drive.done} of ${drive.recordings} measured`,
    running && drive.left_s ? `${drive.progress && !drive.progress.fixed ? "at most " : ""}about ${duration(drive.left_s)} left of this stage` : null,
    "temperature_c" in told ? `${number(told.temperature_c)} °C${told.temperature_limit_c ? ` (warns from ${number(told.temperature_limit_c)})` : ""}` : null,
    "load_pct" in told ? `load by others ${number(told.load_pct)} %` : null,
    "steal_pct" in told ? `stolen ${number(told.steal_pct)} %` : null,
    "drive_power_w" in told ? `${few(told.drive_power_w)} W` : null,
  ].filter(Boolean).join(" · ");
  put(card.facts, facts);
  const taints = running ? (drive.taints || []).join("; ") : "";
  put(card.taint, taints && `Disturbed: ${taints}`);
  card.taint.hidden = !taints;
  const failure = [drive.standing === "failed" ? drive.failure : null, drive.trouble].filter(Boolean).join("; ");
  put(card.failure, failure);
  card.failure.hidden = !failure;
  if (!card.root.isConnected) $("drives").append(card.root);
}

function showDrives() {
  const found = [...drives.values()], active = found.filter(isShown), rest = found.filter((one) => !isShown(one));
  gaugeTop = end(highest(active, METRICS.iops[1]));
  active.forEach(showCard);
  $("top").classList.toggle("one", active.length === 1);
  $("nothing").hidden = active.length > 0;
  $("others-section").hidden = rest.length === 0;
  const rows = rest.map((one) => make("tr", {}, make("th", {scope: "row"}, name(one)), make("td", {}, STANDINGS[one.standing]), make("td", {}, `${one.done} of ${one.recordings}`)));
  if ($("others").textContent !== rows.map((one) => one.textContent).join("")) $("others").replaceChildren(...rows);
}

// Steady state

function showSteady() {
  const found = [...drives.values()].filter((one) => one.progress && one.standing !== "waiting");
  $("steady-section").hidden = found.length === 0;
  const key = JSON.stringify(found.map((one) => [one.key, one.progress]));
  if ($("steady").dataset.key === key) return;
  $("steady").dataset.key = key;
  $("steady").replaceChildren(...found.map((drive) => {
    const {progress} = drive;
    const round = `${progress.cold ? "cold round" : "round"} ${progress.round} of ${progress.fixed || progress.cold ? "" : "at most "}${progress.rounds}, cell ${progress.cell} of ${progress.cells}: ${progress.workload}`;
    return paint(make("div", {class: "loop"},
      make("div", {class: "where"}, make("h3", {}, `${name(drive)}, ${drive.measurement}`), make("p", {}, progress.ended ? `${progress.ended}, ${round}` : round)),
      make("div", {class: "variables"}, ...progress.variables.map(variable))), colour(drive));
  }));
}

function variable(one) {
  const width = 320, height = 120, left = 8, right = 312, top = 10, bottom = 100;
  const last = one.first_round + one.values.length - 1;
  const lastRound = Math.max(last, one.first_round + one.window - 1);
  const all = [...one.values, ...(one.band || []), ...(one.line || [])];
  const span = Math.max(...all) - Math.min(...all) || Math.max(...all) || 1;
  const [low, high] = [Math.min(...all) - 0.08 * span, Math.max(...all) + 0.08 * span];
  const atX = (round) => left + (lastRound === one.first_round ? 0.5 : (round - one.first_round) / (lastRound - one.first_round)) * (right - left);
  const atY = (value) => bottom - (value - low) / (high - low) * (bottom - top);
  const places = one.values.map((value, index) => [atX(one.first_round + index), atY(value)]);
  const picture = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${one.name}: ${one.values.map((value) => few(value)).join(", ")} ${one.unit}`});
  if (one.band) {
    const [x0, x1] = [atX(one.from_round), atX(last)];
    picture.append(
      make("rect", {class: "band", x: x0 - 4, y: atY(one.band[1]), width: x1 - x0 + 8, height: atY(one.band[0]) - atY(one.band[1])}),
      make("line", {class: "average", x1: x0 - 4, x2: x1 + 4, y1: atY(one.average), y2: atY(one.average)}),
      make("line", {class: "fit", x1: x0, x2: x1, y1: atY(one.line[0]), y2: atY(one.line[1])}));
  }
  picture.append(make("line", {class: "base", x1: left - 4, x2: right + 4, y1: bottom + 4, y2: bottom + 4}),
    make("polyline", {class: "values", points: places.map((place) => place.join(",")).join(" ")}));
  places.forEach(([x, y], index) => {
    const round = one.first_round + index;
    picture.append(make("circle", {class: one.from_round && round >= one.from_round ? "in" : "before", cx: x, cy: y, r: 3.5}, make("title", {}, `round ${round}: ${few(one.values[index])} ${one.unit}`)));
    if (index % Math.ceil(one.values.length / 12) === 0) picture.append(make("text", {x, y: height - 4, "text-anchor": "middle"}, String(round)));
  });
  const words = one.average === undefined
    ? `${one.values.length ? `${few(one.values[one.values.length - 1])} ${one.unit}` : "no round yet"}; a window takes ${one.window} rounds`
    : `average ${few(one.average)} ${one.unit}, range ${one.data_pct.toFixed(1)} % (at most ${one.data_allowed_pct.toFixed(0)} %), slope ${one.slope_pct.toFixed(1)} % (at most ${one.slope_allowed_pct.toFixed(0)} %)`;
  const rounds = one.from_round ? last - one.from_round + 1 : 0;
  const verdict = one.steady ? make("span", {class: "yes"}, "steady. ") : make("span", {class: "no"}, rounds >= one.window ? "not steady. " : `${rounds || one.values.length} of ${one.window} rounds. `);
  return make("div", {class: "variable"}, make("h4", {}, one.name), picture, make("p", {}, verdict, words));
}

// Chart

// With what was done when: [name, from, to, label]. A purge has no values, only a begin and an end, and these by the clock.
function lineOf(drive, now) {
  const own = seriesOfAll(drive), isSince = shown.axis === "since";
  if (hidden.has(drive.key) || !(own.length || (drive.purges?.length && !isSince))) return null;
  const y = METRICS[shown.metric][1];
  if (isSince) {
    const current = seriesOf(drive), found = current ? sinceStart(current, y) : [];
    const earlier = own.filter(([, one]) => one !== current).map(([, one]) => sinceStart(one, y));
    return {drive, points: found, earlier, stages: stagesOf(found)};
  }
  const found = [], stages = [];
  for (const [key, series] of own) {
    const one = series.map((point) => [point[0], point[y], point[5], point[6]]);
    if (found.length) found.push([one[0][0] - 0.001, null]); // no line from one measurement to the next
    found.push(...one);
    stages.push(...stagesOf(one, key.split("/")[2]));
  }
  (drive.purges || []).forEach(([from, to], index, all) => {
    const goesOn = index === all.length - 1 && drive.stage === "purge" && drive.standing === "running";
    stages.push(["purge", from, goesOn ? now : to]);
  });
  return {drive, points: found, earlier: [], stages};
}
// Zero is the begin of the measurement: preconditioning ends there.
function sinceStart(series, y) {
  const conditioned = series.reduce((last, one) => (one[6] ? Math.max(last, one[1]) : last), 0);
  return series.map((one) => [one[6] ? one[1] - conditioned : one[1], one[y], one[5], one[6]]);
}
function stagesOf(found, measurement = null) {
  const stages = [];
  for (const [x, , , conditioning] of found) {
    const stage = conditioning ? "preconditioning" : "measurement", last = stages[stages.length - 1];
    if (last && last[0] === stage && x - last[2] <= GAP_S) last[2] = x;
    else stages.push([stage, last ? Math.max(x - 1, Math.min(last[2], x)) : x - 1, x, conditioning ? null : measurement]);
  }
  return stages;
}

// From when to when, as chosen; all there is, up to an hour, is fitted.
function extent(lines, isSince, isBusy, now) {
  const series = lines.flatMap((line) => [line.points, ...line.earlier]).filter((one) => one.length);
  const begins = [...series.map((one) => one[0][0]), ...lines.flatMap(({stages}) => stages.map((one) => one[1]))];
  const ends = series.map((one) => one[one.length - 1][0]);
  if (isSince) {
    const first = Math.min(0, ...begins), last = Math.max(0, ...ends);
    if (shown.span === "all") return [Math.max(first, last - 3600), Math.max(last, Math.max(first, last - 3600) + 10)];
    const from = Math.max(first, last - Number(shown.span));
    return [from, from + Number(shown.span)];
  }
  const to = Math.max(isBusy || !ends.length ? now : 0, ...ends); // clocks of hosts differ
  const first = Math.min(to - 30, ...begins);
  return [shown.span === "all" ? Math.max(first, to - 3600) : to - Number(shown.span), to];
}

function showChart() {
  const now = Date.now() / 1000 + offset, found = [...drives.values()].filter(isShown);
  if (!axisChosen && found.some((one) => one.simulated)) choose("axis", "since");
  lines = found.map((drive) => lineOf(drive, now)).filter(Boolean).map((line) => ({...line, colour: colour(line.drive), dash: dash(line.drive)}));
  const isSince = shown.axis === "since";
  const [from, to] = extent(lines, isSince, found.some((one) => one.standing === "running"), now);
  const unit = shown.metric === "latency" ? "mean latency" : METRICS[shown.metric][0];
  const empty = lines.length ? `no ${unit} in this stretch of time` : hidden.size && found.length ? "all drives are hidden" : "no values yet";
  let hasValues;
  [timeAt, hasValues] = draw($("chart"), {
    lines, from, to, cursor, empty, title: unit, most: highest(lines.map((line) => line.drive), METRICS[shown.metric][1]),
    xText: isSince ? since : clock,
    yText: shown.metric === "latency" ? (v) => (v ? latency(v) : "0") : short,
  });
  const text = METRIC_TEXT[shown.metric];
  const at = cursor === null ? null : lines.map((line) => [line, nearest(line.points, cursor)]).filter(([, point]) => point && point[1] !== null);
  put($("readout"), at === null ? "" : `${isSince ? since(cursor) : clock(cursor)}: ${at.map(([line, point]) => `${name(line.drive)} ${text(point[1])}${point[3] ? " (preconditioning)" : ""}`).join(", ") || "no value"}`);
  $("chart").setAttribute("aria-label", `Strip chart of ${unit}: ${lines.map((line) => name(line.drive)).join(", ") || "no drive yet"}${hasValues ? "" : `; ${empty}`}. The cards above have the present values; arrow keys move through time.`);
  const simulated = found.some((one) => one.simulated), measured = found.some((one) => !one.simulated);
  put($("source"), [
    "Below the chart: what was done when. Preconditioning is the thin line; a purge has none, as nothing of it is sampled.",
    isSince ? "Zero is the begin of each measurement; preconditioning lies before it. Faint lines are earlier measurements of the drive." : "",
    measured ? "Requests as the kernel counts them at the drive, each second, as telemetry samples it; latency is the mean time in the block layer and the drive, without what the program adds. Amber at the bottom: a disturbed second (load by others, stolen time, heat)." : "",
    simulated ? "Virtual clock: simulated seconds with I/O, shown when a run of them is finished." : "",
  ].filter(Boolean).join(" "));
  showLegend(found.filter((one) => seriesOfAll(one).length || one.purges?.length));
}

function showLegend(found) {
  const key = found.map((one) => one.key).join();
  if ($("legend").dataset.key === key) return;
  $("legend").dataset.key = key;
  $("legend").replaceChildren(...found.map((drive) => {
    const stroke = make("line", {x1: 0, x2: 27, y1: 5, y2: 5, stroke: colour(drive), "stroke-width": 3, "stroke-dasharray": dash(drive).join(" ")});
    const button = make("button", {type: "button", "aria-pressed": String(!hidden.has(drive.key))}, make("svg", {viewBox: "0 0 27 10", "aria-hidden": "true"}, stroke), name(drive));
    button.addEventListener("click", () => {
      if (!hidden.delete(drive.key)) hidden.add(drive.key);
      button.setAttribute("aria-pressed", String(!hidden.has(drive.key)));
      showChart();
    });
    return button;
  }));
}

function choose(field, value) {
  shown = {...shown, [field]: value};
  const input = document.querySelector(`#${field} input[value="${value}"]`);
  if (input) input.checked = true;
  cursor = null;
}
for (const [field, options] of [["metric", Object.entries(METRICS).map(([key, [label]]) => [key, label])], ["axis", Object.entries(AXES)], ["span", Object.entries(SPANS)]]) {
  for (const [value, label] of options) {
    const input = make("input", {type: "radio", name: field, value});
    input.checked = shown[field] === value;
    input.addEventListener("change", () => { axisChosen ||= field === "axis"; choose(field, value); showChart(); });
    $(field).append(make("label", {}, input, make("span", {}, label)));
  }
}
$("chart").addEventListener("pointermove", (event) => { cursor = timeAt(event.offsetX); showChart(); });
$("chart").addEventListener("pointerleave", () => { cursor = null; showChart(); });
$("chart").addEventListener("keydown", (event) => {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
  if (event.key === "Escape") cursor = null;
  else if (step) cursor = (cursor ?? Math.max(0, ...lines.map(({points: all}) => (all.length ? all[all.length - 1][0] : 0)))) + step;
  else return;
  event.preventDefault();
  showChart();
});
addEventListener("resize", () => requestAnimationFrame(showChart));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(showChart));

// Log

function log(found) {
  const list = $("log"), atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 8;
  for (const [at, study, drive, text] of found) {
    const known = drives.get(`${study}/${drive}`);
    const time = make("time", {datetime: new Date(at * 1000).toISOString()}, clock(at));
    const row = make("li", text.startsWith("failed") || text.startsWith("drivelab:") ? {class: "failed"} : {}, time, make("b", {}, drive), make("span", {}, text));
    list.append(known ? paint(row, colour(known)) : row);
  }
  while (list.childElementCount > MOST_LOG) list.firstElementChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

// Connection

function show() { showStudies(); showDrives(); showSteady(); showChart(); }

function connect() {
  const source = new EventSource("/events");
  const news = (isSnapshot) => (event) => {
    lastNews = Date.now();
    lostSince = null;
    $("link").dataset.state = "live";
    put($("link"), "live");
    const body = JSON.parse(event.data);
    offset = body.now_s - Date.now() / 1000;
    take(body, isSnapshot);
    show();
  };
  source.addEventListener("snapshot", news(true));
  source.addEventListener("news", news(false));
  source.addEventListener("error", () => {
    lostSince ||= Date.now() / 1000;
    $("link").dataset.state = "lost";
    const closed = source.readyState === EventSource.CLOSED; // the browser has given up: the server refused
    put($("link"), `connection lost at ${clock(lostSince)}, trying again${closed && lastNews ? "; or open the address that drivelab printed" : ""}`);
    if (closed) setTimeout(connect, 2000);
  });
}
connect();
