// The drives: a card with a gauge for each active drive, a table of the others.

import {end} from "./chart.js";
import {$, make, paint, put} from "./dom.js";
import {METRICS, highest, seriesOf} from "./points.js";
import {colour, drives, isShown, name} from "./state.js";
import {STANDINGS, clock, duration, few, latency, number, short} from "./words.js";

const START = -120, SWEEP = 240;
const cards = new Map();
let gaugeTop = 0;

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
  const telemetry = (running && drive.telemetry) || {};
  const facts = [
    `${drive.done} of ${drive.recordings} measured`,
    running && drive.left_s ? `${drive.progress && !drive.progress.fixed ? "at most " : ""}about ${duration(drive.left_s)} left of this stage` : null,
    "temperature_c" in telemetry ? `${number(telemetry.temperature_c)} °C${telemetry.temperature_limit_c ? ` (warns from ${number(telemetry.temperature_limit_c)})` : ""}` : null,
    "load_pct" in telemetry ? `load by others ${number(telemetry.load_pct)} %` : null,
    "steal_pct" in telemetry ? `stolen ${number(telemetry.steal_pct)} %` : null,
    "drive_power_w" in telemetry ? `${few(telemetry.drive_power_w)} W` : null,
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

export function showDrives() {
  const all = [...drives.values()], active = all.filter(isShown), rest = all.filter((drive) => !isShown(drive));
  gaugeTop = end(highest(active, METRICS.iops[1]));
  active.forEach(showCard);
  $("top").classList.toggle("one", active.length === 1);
  $("nothing").hidden = active.length > 0;
  $("others-section").hidden = rest.length === 0;
  const rows = rest.map((drive) => make("tr", {}, make("th", {scope: "row"}, name(drive)), make("td", {}, STANDINGS[drive.standing]), make("td", {}, `${drive.done} of ${drive.recordings}`)));
  if ($("others").textContent !== rows.map((row) => row.textContent).join("")) $("others").replaceChildren(...rows);
}
