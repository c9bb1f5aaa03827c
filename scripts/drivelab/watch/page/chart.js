// A strip chart on a canvas: several lines over one time axis.

const LEFT = 58, RIGHT = 12, TOP = 22, BOTTOM = 24;
const GAP_S = 6; // a longer time without a value is no line

/** The next round number, quarters of which are short. */
export function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value * 0.999999);
}

/** Lines are {colour, dash, points: [x, y or null, tainted]}, in the order of x; returns where a pixel's x is. */
export function draw(canvas, {lines, from, to, xText, yText, title, cursor}) {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(box.width * scale), Math.round(box.height * scale)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name).trim();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = `12px ${style.fontFamily}`;
  const right = box.width - RIGHT, bottom = box.height - BOTTOM;
  let most = 0;
  for (const {points} of lines) for (const [x, y] of points) if (x >= from && y > most) most = y;
  const top = nice(most * 1.04);
  const atX = (x) => LEFT + (x - from) / (to - from) * (right - LEFT);
  const atY = (y) => bottom - y / top * (bottom - TOP);

  pen.fillStyle = colour("--quiet");
  pen.strokeStyle = colour("--line");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (let part = 0; part <= 4; part += 1) {
    const y = Math.round(atY(part * top / 4)) + 0.5;
    pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(right, y); pen.stroke();
    pen.fillText(yText(part * top / 4), LEFT - 7, y);
  }
  pen.textBaseline = "alphabetic";
  pen.textAlign = "left";
  pen.fillText(title, 0, 12);
  pen.textAlign = "center";
  const step = stepOf((to - from) / Math.max(2, (right - LEFT) / 75));
  for (let x = Math.ceil(from / step) * step; x <= to; x += step) {
    const px = atX(x);
    pen.beginPath(); pen.moveTo(px, bottom); pen.lineTo(px, bottom + 4); pen.stroke();
    if (px > LEFT + 20 && px < right - 18) pen.fillText(xText(x), px, bottom + 17);
  }

  pen.save();
  pen.beginPath(); pen.rect(LEFT, TOP - 6, right - LEFT, bottom - TOP + 8); pen.clip();
  pen.lineJoin = "round";
  for (const {points, colour: ink, dash} of lines) {
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 1.8;
    pen.setLineDash(dash);
    pen.beginPath();
    let before = null;
    points.forEach(([x, y], index) => {
      if (x < from - GAP_S || y === null) { if (y === null) before = null; return; }
      const joined = before !== null && x - before <= GAP_S;
      if (joined) pen.lineTo(atX(x), atY(y)); else pen.moveTo(atX(x), atY(y));
      const next = points[index + 1];
      if (!joined && !(next && next[1] !== null && next[0] - x <= GAP_S)) pen.rect(atX(x) - 1, atY(y) - 1, 2, 2);
      before = x;
    });
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colour("--warn-line");
    for (const [x, , tainted] of points) if (tainted && x >= from) pen.fillRect(atX(x) - 2, bottom - 4, 4, 4);
  }
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
  return (px) => from + (px - LEFT) / (right - LEFT) * (to - from);
}

/** The point of a line that is next to a time, if one is near. */
export function nearest(points, x) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1; else high = middle;
  }
  const found = [points[low - 1], points[low]].filter(Boolean).sort((a, b) => Math.abs(a[0] - x) - Math.abs(b[0] - x))[0];
  return found && Math.abs(found[0] - x) <= GAP_S ? found : null;
}

function stepOf(least) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((one) => one >= least) || 86400;
}
