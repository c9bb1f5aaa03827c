// A drive's values as a line over time, and the chosen time range.

import {GAP_S} from "./chart.js";
import {METRICS, seriesOf, seriesOfAll} from "./points.js";
import {hidden} from "./state.js";

// Stages are [name, from, to, measurement]. A purge has no values, only begin and end, in clock time.
export function lineOf(drive, shown, now) {
  const own = seriesOfAll(drive), isSince = shown.axis === "since";
  if (hidden.has(drive.key) || !(own.length || (drive.purges?.length && !isSince))) return null;
  const y = METRICS[shown.metric][1];
  if (isSince) {
    const current = seriesOf(drive), points = current ? sinceStart(current, y) : [];
    const earlier = own.filter(([, series]) => series !== current).map(([, series]) => sinceStart(series, y));
    return {drive, points, earlier, stages: stagesOf(points, drive.measurement)};
  }
  const points = [], stages = [];
  for (const [key, series] of own) {
    const added = series.map((point) => [point[0], point[y], point[5], point[6]]);
    if (points.length) points.push([added[0][0] - 0.001, null]); // no line from one measurement to the next
    points.push(...added);
    stages.push(...stagesOf(added, key.split("/")[2]));
  }
  (drive.purges || []).forEach(([from, to], index, all) => {
    const isRunning = index === all.length - 1 && drive.stage === "purge" && drive.standing === "running";
    stages.push(["purge", from, isRunning ? now : to]);
  });
  return {drive, points, earlier: [], stages};
}
// Zero is the start of the measurement, where preconditioning ends.
function sinceStart(series, y) {
  const conditioned = series.reduce((last, point) => (point[6] ? Math.max(last, point[1]) : last), 0);
  return series.map((point) => [point[6] ? point[1] - conditioned : point[1], point[y], point[5], point[6]]);
}
function stagesOf(points, measurement = null) {
  const stages = [];
  for (const [x, , , conditioning] of points) {
    const stage = conditioning ? "preconditioning" : "measurement", last = stages[stages.length - 1];
    if (last && last[0] === stage && x - last[2] <= GAP_S) last[2] = x;
    else stages.push([stage, last ? Math.max(x - 1, Math.min(last[2], x)) : x - 1, x, conditioning ? null : measurement]);
  }
  return stages;
}

// The chosen time range; "all" shows up to an hour.
export function extent(lines, shown, isBusy, now) {
  const series = lines.flatMap((line) => [line.points, ...line.earlier]).filter((points) => points.length);
  const begins = [...series.map((points) => points[0][0]), ...lines.flatMap(({stages}) => stages.map((stage) => stage[1]))];
  const ends = series.map((points) => points[points.length - 1][0]);
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
