// Steady state: the rounds of each drive, the window and its verdict.

import {$, make, paint} from "./dom.js";
import {colour, drives, name} from "./state.js";
import {few} from "./words.js";

export function showSteady() {
  const looping = [...drives.values()].filter((drive) => drive.progress && drive.standing !== "waiting");
  $("steady-section").hidden = looping.length === 0;
  const key = JSON.stringify(looping.map((drive) => [drive.key, drive.progress]));
  if ($("steady").dataset.key === key) return;
  $("steady").dataset.key = key;
  $("steady").replaceChildren(...looping.map((drive) => {
    const {progress} = drive;
    const round = `${progress.cold ? "cold round" : "round"} ${progress.round} of ${progress.fixed || progress.cold ? "" : "at most "}${progress.rounds}, cell ${progress.cell} of ${progress.cells}: ${progress.workload}`;
    return paint(make("div", {class: "loop"},
      make("div", {class: "where"}, make("h3", {}, `${name(drive)}, ${drive.measurement}`), make("p", {}, progress.ended ? `${progress.ended}, ${round}` : round)),
      make("div", {class: "variables"}, ...progress.variables.map(variable))), colour(drive));
  }));
}

function variable(tracked) {
  const width = 320, height = 120, left = 8, right = 312, top = 10, bottom = 100;
  const last = tracked.first_round + tracked.values.length - 1;
  const lastRound = Math.max(last, tracked.first_round + tracked.window - 1);
  const all = [...tracked.values, ...(tracked.band || []), ...(tracked.line || [])];
  const span = Math.max(...all) - Math.min(...all) || Math.max(...all) || 1;
  const [low, high] = [Math.min(...all) - 0.08 * span, Math.max(...all) + 0.08 * span];
  const atX = (round) => left + (lastRound === tracked.first_round ? 0.5 : (round - tracked.first_round) / (lastRound - tracked.first_round)) * (right - left);
  const atY = (value) => bottom - (value - low) / (high - low) * (bottom - top);
  const places = tracked.values.map((value, index) => [atX(tracked.first_round + index), atY(value)]);
  const picture = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${tracked.name}: ${tracked.values.map((value) => few(value)).join(", ")} ${tracked.unit}`});
  if (tracked.band) {
    const [x0, x1] = [atX(tracked.from_round), atX(last)];
    picture.append(
      make("rect", {class: "band", x: x0 - 4, y: atY(tracked.band[1]), width: x1 - x0 + 8, height: atY(tracked.band[0]) - atY(tracked.band[1])}),
      make("line", {class: "average", x1: x0 - 4, x2: x1 + 4, y1: atY(tracked.average), y2: atY(tracked.average)}),
      make("line", {class: "fit", x1: x0, x2: x1, y1: atY(tracked.line[0]), y2: atY(tracked.line[1])}));
  }
  picture.append(make("line", {class: "base", x1: left - 4, x2: right + 4, y1: bottom + 4, y2: bottom + 4}),
    make("polyline", {class: "values", points: places.map((place) => place.join(",")).join(" ")}));
  places.forEach(([x, y], index) => {
    const round = tracked.first_round + index;
    picture.append(make("circle", {class: tracked.from_round && round >= tracked.from_round ? "in" : "before", cx: x, cy: y, r: 3.5}, make("title", {}, `round ${round}: ${few(tracked.values[index])} ${tracked.unit}`)));
    if (index % Math.ceil(tracked.values.length / 12) === 0) picture.append(make("text", {x, y: height - 4, "text-anchor": "middle"}, String(round)));
  });
  const details = tracked.average === undefined
    ? `${tracked.values.length ? `${few(tracked.values[tracked.values.length - 1])} ${tracked.unit}` : "no round yet"}; a window needs ${tracked.window} rounds`
    : `average ${few(tracked.average)} ${tracked.unit}, range ${tracked.data_pct.toFixed(1)} % (at most ${tracked.data_allowed_pct.toFixed(0)} %), slope ${tracked.slope_pct.toFixed(1)} % (at most ${tracked.slope_allowed_pct.toFixed(0)} %)`;
  const rounds = tracked.from_round ? last - tracked.from_round + 1 : 0;
  const verdict = tracked.steady ? make("span", {class: "yes"}, "steady. ") : make("span", {class: "no"}, rounds >= tracked.window ? "not steady. " : `${rounds || tracked.values.length} of ${tracked.window} rounds. `);
  return make("div", {class: "variable"}, make("h4", {}, tracked.name), picture, make("p", {}, verdict, details));
}
