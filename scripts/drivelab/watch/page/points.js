// The points of all drives, by recording.

const MOST_POINTS = 3600;
// The name of each metric, and its column in a point.
export const METRICS = {iops: ["IOPS", 2], mib: ["MiB/s", 3], latency: ["Latency", 4]};

// Points by drive, STUDY/DRIVE, and by recording; the recording with the latest news is the last.
const points = new Map();

export function takePoints({restarted, points: news}, isSnapshot) {
  if (isSnapshot) points.clear();
  for (const name of restarted || []) pointsOfDrive(name).delete(name);
  for (const [name, added] of Object.entries(news)) {
    const own = pointsOfDrive(name), known = own.get(name) || [];
    own.delete(name);
    own.set(name, known.concat(added).slice(-MOST_POINTS));
    forget(own);
  }
}
// All points of the drive of a recording.
function pointsOfDrive(name) {
  const key = name.split("/", 2).join("/");
  if (!points.has(key)) points.set(key, new Map());
  return points.get(key);
}
// Drop the oldest recordings while the later ones fill the limit of points.
function forget(own) {
  let left = [...own.values()].reduce((sum, series) => sum + series.length, 0);
  for (const name of [...own.keys()].slice(0, -1)) {
    left -= own.get(name).length;
    if (left < MOST_POINTS) return;
    own.delete(name);
  }
}

export function seriesOf(drive) { return points.get(drive.key)?.get(`${drive.study}/${drive.recording}`) || null; }
// All measurements of a drive as [name, points], oldest first.
export function seriesOfAll(drive) { return [...(points.get(drive.key) || [])]; }
export function highest(drives, column) {
  let most = 0;
  for (const drive of drives) for (const [, series] of seriesOfAll(drive)) for (const point of series) if (point[column] > most) most = point[column];
  return most;
}
