// What a drive did as a line over time, and the stretch of time that is chosen.

import {GAP_S} from "./chart.js";
import {METRICS, seriesOf, seriesOfAll} from "./points.js";
import {hidden} from "./state.js";

// With what was done when: [name, from, to, measurement]. A purge has no values, only a begin and an end, and these by the clock.
export function lineOf(drive, shown, now) {
  const own = seriesOfAll(drive), isSince = shown.axis === "since";
  if (hidden.has(drive.key) || !(own.length || (drive.purges?.length && !isSince))) return null;
  const y = METRICS[shown.metric][1];
  if (isSince) {
    const current = seriesOf(drive), found = current ? sinceStart(current, y) : [];
    const earlier = own.filter(([, one]) => one !== current).map(([, one]) => sinceStart(one, y));
    return {drive, points: found, earlier, stages: stagesOf(found, drive.measurement)};
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
export function extent(lines, shown, isBusy, now) {
  const series = lines.flatMap((line) => [line.points, ...line.earlier]).filter((one) => one.length);
  const begins = [...series.map((one) => one[0][0]), ...lines.flatMap(({stages}) => stages.map((one) => one[1]))];
  const ends = series.map((one) => one[one.length - 1][0]);
  if (shown.axis === "since") {
    const first = Math.min(0, ...begins), last = Math.max(0, ...ends);
    if (shown.span === "all") return [Math.max(first, last - 3600), Math.max(last, Math.max(first, last - 3600) + 10)];
    const from = Math.max(first, last - Number(shown.span));
    return [from, from + Number(shown.span)];
  }
  const to = Math.max(isBusy || !ends.length ? now : 0, ...ends); // clocks of hosts differ
  const first = Math.min(to - 30, ...begins);
  return [shown.span === "all" ? Math.max(first, to - 3600) : to - Number(shown.span), to];
}
