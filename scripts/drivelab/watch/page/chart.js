// A strip chart on a canvas: several lines over one time axis.

const LEFT = 58, RIGHT = 12, TOP = 22, BOTTOM = 24;
export const GAP_S = 6; // a longer gap between values interrupts the line
const HIGH_ROW = 14, LOW_ROW = 5, MOST_HIGH = 4; // rows of stages; with many drives there is no room for labels
const SHORT = {preconditioning: "precond."};
const LEAST_LETTERS = 4; // of a shortened measurement name
const FILLS = {purge: [0, 0], preconditioning: [0.16, 0.3], measurement: [0.42, 0.9]}; // opacity in a high and in a low row

// The next round number whose quarters are short.
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((top) => top >= value * 0.999999);
}

/** The upper end of a scale for values up to `most`: a little above. */
export function end(most) { return nice(1.02 * most); }

/** Lines are {colour, dash, points: [x, y or null, tainted, thin], earlier: [points, ...], stages: [name, from, to, measurement]},
    points in the order of x; `earlier` points are drawn faint. The scale covers values up to `most`. Without a visible value the
    text `empty` replaces the scale. Returns a function from a pixel to its x, and whether a value is visible. */
export function draw(canvas, {lines, from, to, most, xText, yText, title, empty, cursor}) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(box.width * scale), Math.round(box.height * scale)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name).trim();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = `12px ${style.fontFamily}`;
  const staged = lines.filter(({stages}) => stages.length), row = staged.length > MOST_HIGH ? LOW_ROW : HIGH_ROW;
  const right = box.width - RIGHT, foot = box.height - BOTTOM, bottom = foot - staged.length * (row + 2) - (staged.length ? 4 : 0);
  const isSeen = ([x, y]) => y !== null && x >= from && x <= to;
  const hasValues = lines.some(({points, earlier}) => [points, ...earlier].some((series) => series.some(isSeen)));
  const top = end(most);
  const atX = (x) => LEFT + (x - from) / (to - from) * (right - LEFT);
  const atY = (y) => bottom - y / top * (bottom - TOP);

  pen.fillStyle = colour("--quiet");
  pen.strokeStyle = colour("--line");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (let part = 0; part <= 4 && hasValues; part += 1) {
    const y = Math.round(atY(part * top / 4)) + 0.5;
    pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(right, y); pen.stroke();
    pen.fillText(yText(part * top / 4), LEFT - 7, y);
  }
  pen.textBaseline = "alphabetic";
  pen.textAlign = "left";
  if (hasValues) pen.fillText(title, 0, 12);
  pen.textAlign = "center";
  if (!hasValues) pen.fillText(empty, box.width / 2, (TOP + bottom) / 2);
  if (!hasValues && !staged.length) return [() => null, false];
  const step = stepOf((to - from) / Math.max(2, (right - LEFT) / 75));
  for (let x = Math.ceil(from / step) * step; x <= to; x += step) {
    const px = atX(x);
    pen.beginPath(); pen.moveTo(px, foot); pen.lineTo(px, foot + 4); pen.stroke();
    const half = pen.measureText(xText(x)).width / 2;
    if (px + half <= box.width) pen.fillText(xText(x), px, foot + 17);
  }
  staged.forEach((line, index) => drawStages(pen, line, bottom + 5 + index * (row + 2), row, atX, [LEFT, right], colour("--ink")));

  pen.save();
  pen.beginPath(); pen.rect(LEFT, TOP - 6, right - LEFT, bottom - TOP + 8); pen.clip();
  pen.lineJoin = "round";
  for (const {earlier, ...line} of lines) {
    pen.globalAlpha = 0.35;
    for (const points of earlier) drawLine(pen, {...line, points}, from, atX, atY);
    pen.globalAlpha = 1;
  }
  for (const line of lines) drawLine(pen, line, from, atX, atY);
  pen.fillStyle = colour("--warn-line");
  for (const {points} of lines) for (const [x, , tainted] of points) if (tainted && x >= from) pen.fillRect(atX(x) - 2, bottom - 4, 4, 4);
  if (cursor !== null && cursor >= from && cursor <= to) {
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(atX(cursor), TOP); pen.lineTo(atX(cursor), bottom); pen.stroke();
    for (const {points, colour: ink} of lines) {
      const near = nearest(points, cursor);
      if (!near || near[1] === null) continue;
      pen.fillStyle = ink;
      pen.beginPath(); pen.arc(atX(near[0]), atY(near[1]), 4, 0, 7); pen.fill();
    }
  }
  pen.restore();
  return [(px) => from + (px - LEFT) / (right - LEFT) * (to - from), hasValues];
}

function drawLine(pen, {points, colour, dash}, from, atX, atY) {
  pen.strokeStyle = colour;
  pen.setLineDash(dash);
  for (const thin of [0, 1]) {
    pen.lineWidth = thin ? 0.9 : 1.8;
    pen.beginPath();
    let before = null;
    points.forEach(([x, y, , isThin], index) => {
      if (Boolean(isThin) !== Boolean(thin)) { before = null; return; }
      if (x < from - GAP_S || y === null) { if (y === null) before = null; return; }
      const joined = before !== null && x - before <= GAP_S;
      if (joined) pen.lineTo(atX(x), atY(y)); else pen.moveTo(atX(x), atY(y));
      const next = points[index + 1];
      if (!joined && !(next && next[1] !== null && Boolean(next[3]) === Boolean(thin) && next[0] - x <= GAP_S)) pen.rect(atX(x) - 1, atY(y) - 1, 2, 2);
      before = x;
    });
    pen.stroke();
  }
  pen.setLineDash([]);
}

/** Draws the stages of a drive over time as a row, with labels where they fit. */
function drawStages(pen, {stages, colour}, y, height, atX, [left, right], ink) {
  const isHigh = height === HIGH_ROW;
  pen.save();
  pen.beginPath(); pen.rect(left, y - 1, right - left, height + 2); pen.clip();
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.font = pen.font.replace("12px", "11px");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const [name, from, to, measurement] of stages) {
    const [x0, x1] = [Math.max(atX(from), left), Math.min(atX(to), right)];
    if (x1 <= left || x0 >= right) continue;
    pen.globalAlpha = FILLS[name][isHigh ? 0 : 1];
    pen.fillRect(x0, y, Math.max(x1 - x0, 1), height);
    pen.globalAlpha = 1;
    if (name !== "measurement") pen.strokeRect(x0 + 0.5, y + 0.5, Math.max(x1 - x0 - 1, 0.5), height - 1);
    const label = isHigh && labelOf(name, measurement || "", (text) => pen.measureText(text).width <= x1 - x0 - 8);
    if (!label) continue;
    pen.fillStyle = ink;
    pen.fillText(label, (x0 + x1) / 2, y + height / 2 + 0.5);
    pen.fillStyle = colour;
  }
  pen.restore();
}

// The label of a stage is its name or a short form; of a measurement, its name, shortened to fit.
function labelOf(name, measurement, fits) {
  if (name !== "measurement") return [name, SHORT[name]].find((label) => label && fits(label));
  if (fits(measurement)) return measurement;
  for (let letters = measurement.length - 1; letters >= LEAST_LETTERS; letters -= 1) {
    const label = `${measurement.slice(0, letters)}…`;
    if (fits(label)) return label;
  }
  return null;
}

/** The point of a line nearest to a time, if it is close. */
export function nearest(points, x) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1; else high = middle;
  }
  const closest = [points[low - 1], points[low]].filter(Boolean).sort((a, b) => Math.abs(a[0] - x) - Math.abs(b[0] - x))[0];
  return closest && Math.abs(closest[0] - x) <= GAP_S ? closest : null;
}

function stepOf(least) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((step) => step >= least) || 86400;
}
