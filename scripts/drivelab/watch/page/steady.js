// Steady state: the rounds of each drive, the window and what is said of it.

import {$, make, paint} from "./dom.js";
import {colour, drives, name} from "./state.js";
import {few} from "./words.js";

export function showSteady() {
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
