// The points of all drives, and the recordings that they are of.

const MOST_POINTS = 3600;
// What each is called, and its column in a point.
export const METRICS = {iops: ["IOPS", 2], mib: ["MiB/s", 3], latency: ["Latency", 4]};

// Points are by drive, STUDY/DRIVE, and by recording, the one that has news last at the end.
const points = new Map();

export function takePoints({anew, points: news}, isSnapshot) {
  if (isSnapshot) points.clear();
  for (const name of anew || []) pointsBeside(name).delete(name);
  for (const [name, found] of Object.entries(news)) {
    const own = pointsBeside(name), known = own.get(name) || [];
    own.delete(name);
    own.set(name, known.concat(found).slice(-MOST_POINTS));
    forget(own);
  }
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

export function seriesOf(drive) { return points.get(drive.key)?.get(`${drive.study}/${drive.recording}`) || null; }
// With earlier measurements: [name, points], oldest first.
export function seriesOfAll(drive) { return [...(points.get(drive.key) || [])]; }
export function highest(found, column) {
  let most = 0;
  for (const drive of found) for (const [, series] of seriesOfAll(drive)) for (const point of series) if (point[column] > most) most = point[column];
  return most;
}
