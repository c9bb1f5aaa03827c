// The strip chart: its controls, legend and readout.

import {draw, nearest} from "./chart.js";
import {$, make, put} from "./dom.js";
import {extent, lineOf} from "./lines.js";
import {METRICS, highest, seriesOfAll} from "./points.js";
import {colour, dash, drives, hidden, isShown, name, serverTime} from "./state.js";
import {clock, few, latency, number, short, since} from "./words.js";

const AXES = {clock: "Clock", since: "Since start"};
const SPANS = {60: "1 min", 300: "5 min", 900: "15 min", 3600: "1 h", all: "All"};
const METRIC_TEXT = {iops: (v) => `${number(v)} IOPS`, mib: (v) => `${few(v)} MiB/s`, latency};
let shown = {metric: "iops", axis: "clock", span: "all"}, axisChosen = false;
let cursor = null, timeAt = () => null, lines = [];

export function showChart() {
  const now = serverTime(), shownDrives = [...drives.values()].filter(isShown);
  if (!axisChosen && shownDrives.some((drive) => drive.simulated)) choose("axis", "since");
  lines = shownDrives.map((drive) => lineOf(drive, shown, now)).filter(Boolean).map((line) => ({...line, colour: colour(line.drive), dash: dash(line.drive)}));
  const isSince = shown.axis === "since";
  const [from, to] = extent(lines, shown, shownDrives.some((drive) => drive.standing === "running"), now);
  const unit = shown.metric === "latency" ? "mean latency" : METRICS[shown.metric][0];
  const empty = lines.length ? `no ${unit} in this time range` : hidden.size && shownDrives.length ? "all drives are hidden" : "no values yet";
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
  const simulated = shownDrives.some((drive) => drive.simulated), measured = shownDrives.some((drive) => !drive.simulated);
  put($("source"), [
    "The rows below the chart show the stages. The thin line is preconditioning; a purge has no line, because it is not sampled.",
    isSince ? "Zero is the start of each measurement; preconditioning lies before it. Faint lines are earlier measurements of the drive." : "",
    measured ? "The kernel counts requests at the drive; telemetry samples the counters each second. Latency is the mean time in the block layer and the drive, without the program's time. Amber at the bottom: a disturbed second (load by others, stolen time, heat)." : "",
    simulated ? "Virtual clock: simulated seconds with I/O, shown when a run of I/O is finished." : "",
  ].filter(Boolean).join(" "));
  showLegend(shownDrives.filter((drive) => seriesOfAll(drive).length || drive.purges?.length));
}

function showLegend(listed) {
  const key = listed.map((drive) => drive.key).join();
  if ($("legend").dataset.key === key) return;
  $("legend").dataset.key = key;
  $("legend").replaceChildren(...listed.map((drive) => {
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
