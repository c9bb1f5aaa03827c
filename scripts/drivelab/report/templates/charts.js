
// A figure becomes a chart where scripts run: its own SVG, with the values that it carries, answers to pointer and keys.

const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
const NEAR_PX = 28; // of the window: as far from a point a pointer still asks for it
const LEAST_DRAG_PX = 6;
const FACTOR = 3; // of a double click
const ELEMENTS = new Set(["svg", "g", "path", "use", "text", "tspan", "rect", "defs", "clipPath", "image", "pattern", "title"]);
const ATTRIBUTES = new Set(["id", "class", "d", "x", "y", "width", "height", "viewBox", "transform", "clip-path", "clip-rule",
  "patternUnits", "preserveAspectRatio", "fill", "stroke", "data-p", "data-m", "data-k", "data-n", "data-c", "data-t"]);
const SHEET = new CSSStyleSheet();
SHEET.replaceSync(`
  :host { display: block; position: relative; max-width: 48rem; margin: 0 auto; }
  svg { display: block; width: 100%; height: auto; touch-action: pan-y pinch-zoom; user-select: none; }
  [data-k] { cursor: pointer; }
  .off { opacity: .35; }
  .tip { position: absolute; z-index: 2; top: 0; left: 0; max-width: 20rem; padding: .3rem .5rem; white-space: pre-line; pointer-events: none;
    font: .8rem/1.35 system-ui, sans-serif; color: var(--ink); background: var(--surface); border: 1px solid var(--quiet); border-radius: .25rem; }
  .tip:empty, button[hidden] { display: none; }
  .tip::first-line { font-weight: 700; }
  button { position: absolute; z-index: 1; bottom: 0; right: 0; min-width: 2rem; min-height: 1.75rem; font: .8rem system-ui, sans-serif; color: var(--link);
    background: var(--surface); border: 1px solid var(--quiet); border-radius: .25rem; cursor: pointer; }
  .now { stroke: #b00020; stroke-dasharray: 3 3; pointer-events: none; }
  .aim { fill: none; stroke: #b00020; stroke-width: 1.5; pointer-events: none; }
  .box { fill: #0072b2; fill-opacity: .15; stroke: #0072b2; pointer-events: none; }
  @media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; } }
`);
const charts = new Map(); // of each card that is a chart
const spans = new Map(); // seconds in view, of each recording

/** A copy of a picture with nothing but what draws: it may come from a stranger's archive. */
function clean(node) {
  if (!ELEMENTS.has(node.localName) || node.namespaceURI !== SVG) return null;
  const made = document.createElementNS(SVG, node.localName);
  for (const {localName, name, value} of node.attributes) {
    const local = /^#[\w.-]+$/.test(value), picture = node.localName === "image" && /^data:image\/png;base64,[\w+/=\s]+$/.test(value);
    if (localName === "href" && (local || picture)) made.setAttribute("href", value);
    else if (ATTRIBUTES.has(name) && isInner(value)) made.setAttribute(name, value);
    else if (name === "style" && isInner(value)) made.style.cssText = value;
  }
  for (const child of node.childNodes) {
    const copy = child.nodeType === Node.TEXT_NODE ? child.data : child.nodeType === Node.ELEMENT_NODE ? clean(child) : null;
    if (copy !== null) made.append(copy);
  }
  return made;
}

/** Whether a value leads nowhere but into its own picture. */
const isInner = (value) => !/url\(\s*(?!["']?#)|[@]import|\\|javascript:/i.test(value);

/** Rules of the picture, for itself alone. */
function rules(picture) {
  const text = [...picture.querySelectorAll("style")].map((one) => one.textContent).join("\n");
  const sheet = new CSSStyleSheet();
  if (isInner(text)) sheet.replaceSync(text);
  return sheet;
}

const number = (value) => value.toLocaleString("en", {maximumSignificantDigits: Number.isInteger(value) ? 17 : 7});
const forward = (axis, value) => (axis.scale === "log" ? Math.log10(value) : value);

/** A path with its coordinates moved; its straight lines may be relative. */
function pathed(d, x, y) {
  const at = [0, 0];
  return d.replace(/([A-Za-z])([^A-Za-z]*)/g, (_, given, numbers) => {
    const command = given.toUpperCase();
    const moved = (numbers.match(/-?(?:\d+\.?\d*|\.\d+)/g) ?? []).map((number, place) => {
      const up = command === "V" || (command !== "H" && place % 2) ? 1 : 0;
      at[up] = Number(number) + (command === given ? 0 : at[up]);
      return (up ? y : x)(at[up]).toFixed(2);
    });
    return command + moved.join(" ");
  });
}

/** One figure: its marks with their points in pixels of the picture, what is seen of its panels, which series are off. */
class Chart {
  constructor(card, svg, sheet, values) {
    Object.assign(this, {card, svg, values, off: new Set(), at: null});
    this.aim = document.createElementNS(SVG, "circle");
    this.box = document.createElementNS(SVG, "rect");
    this.now = document.createElementNS(SVG, "path");
    this.now.classList.add("now");
    this.aim.classList.add("aim");
    this.box.classList.add("box");
    this.tip = element("div", {className: "tip"});
    this.tip.setAttribute("role", "status");
    this.reset = element("button", {type: "button", hidden: true}, "Whole chart");
    this.reset.addEventListener("click", () => this.zoom(this.panels.map(() => [null, null]), true));
    svg.setAttribute("aria-hidden", "true");
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    this.host = element("div", {className: "plot", tabIndex: 0});
    this.host.setAttribute("role", "group");
    this.host.setAttribute("aria-label", `Values of ${card.closest("figure")?.querySelector("figcaption b")?.textContent ?? "the figure"} `
      + "Arrow keys: next point, next series. Space: series off or on. Plus, minus: zoom. Escape: whole chart.");
    const root = this.host.attachShadow({mode: "open"});
    root.adoptedStyleSheets = [sheet, SHEET];
    root.append(svg, this.tip, this.reset);
    this.panels = values.panels.map((panel, place) => this.panel(panel, svg.querySelector(`[data-p="${place}"]`)));
    svg.append(this.box, this.now, this.aim);
    this.aim.setAttribute("r", 0);
    this.listen();
  }

  panel(panel, group) {
    const of = (selector) => [...(group?.querySelectorAll(selector) ?? [])];
    const movable = (nodes, moves) => nodes.map((node) => ({node, moves, ...Object.fromEntries(["d", "x", "y", "transform", "width", "height"]
      .map((name) => [name, node.getAttribute(name)]))}));
    const marks = panel.marks.map((mark) => {
      const nodes = of(`[data-m="${mark.m}"]`);
      const parts = nodes.flatMap((node) => [...node.querySelectorAll("path, use")].filter((one) => !one.closest("defs")));
      return {...mark, nodes, series: mark.name ?? "", parts: movable(parts, mark.moves ?? "xy")};
    });
    const ticks = (which) => of(`[data-t="${which}"]`).filter((one) => !one.closest("[data-c]"));
    const notes = (panel.notes ?? []).map(([id, x, y, moves]) => ({node: of(`[data-n="${id}"]`)[0], x, y, moves}));
    return {...panel, marks, notes, second: of("[data-c] [data-t]"), images: movable(of("image"), "xy"), seen: [null, null], labels: {x: ticks("x"), y: ticks("y")}, made: []};
  }

  /** Where a value of an axis is drawn, in pixels of the picture, as zoomed. */
  place(panel, which, value) {
    const axis = panel[which], [low, high] = axis.ends.map((one) => forward(axis, one));
    const share = (forward(axis, value) - low) / (high - low), [x0, y0, x1, y1] = panel.box;
    return this.moved(panel, which, which === "x" ? x0 + share * (x1 - x0) : y1 - share * (y1 - y0));
  }

  moved(panel, which, px) {
    const along = which === "x", seen = panel.seen[along ? 0 : 1];
    if (!seen) return px;
    const [start, end] = along ? [panel.box[0], panel.box[2]] : [panel.box[1], panel.box[3]];
    return start + (px - seen[0]) / (seen[1] - seen[0]) * (end - start);
  }

  value(panel, which, px) {
    const axis = panel[which], [low, high] = axis.ends.map((one) => forward(axis, one)), [x0, y0, x1, y1] = panel.box;
    const found = low + (which === "x" ? (px - x0) / (x1 - x0) : (y1 - px) / (y1 - y0)) * (high - low);
    return axis.scale === "log" ? 10 ** found : found;
  }

  /** Points that are seen: their place in the picture, and what they tell. */
  points(panel) {
    const inside = ({px, py}) => (px >= panel.box[0] - 3 && px <= panel.box[2] + 3 && py >= panel.box[1] - 3 && py <= panel.box[3] + 3);
    return panel.marks.filter((mark) => !this.off.has(mark.key ?? -1)).flatMap((mark) => {
      if (!mark.x || mark.z) return [];
      return mark.x.map((x, point) => (x === null || mark.y[point] === null ? null
        : {mark, point, px: this.place(panel, "x", x), py: this.place(panel, "y", mark.y[point])})).filter((one) => one && inside(one));
    });
  }

  /** The lines that a point tells. */
  lines(panel, {mark, point, cell}) {
    const also = Array.isArray(mark.also) ? mark.also[point] : mark.also;
    const line = (which, place) => {
      const words = mark[`${which}w`], axis = panel[which];
      if (words === null) return null;
      const told = words ? words[place] : `${number(mark[which][place])}${axis.unit ? ` ${axis.unit}` : ""}`;
      return axis.name ? `${axis.name}: ${told}` : told;
    };
    const found = [mark.name, line("x", cell ? cell[0] : point), line("y", cell ? cell[1] : point)];
    if (cell) found.push(`${mark.z_name}: ${number(mark.z[point])}${mark.z_unit ? ` ${mark.z_unit}` : ""}`);
    return [...found, also].filter(Boolean);
  }

  /** The point that a place of the window asks for: a bar or cell under it, else the nearest point. */
  nearest(event) {
    const scale = this.svg.getScreenCTM(), at = new DOMPoint(event.clientX, event.clientY).matrixTransform(scale.inverse());
    let best = null, least = NEAR_PX / scale.a;
    for (const panel of this.panels) {
      const [x0, y0, x1, y1] = panel.box ?? [-Infinity, -Infinity, Infinity, Infinity];
      if (at.x < x0 - 4 || at.x > x1 + 4 || at.y < y0 - 4 || at.y > y1 + 4) continue;
      for (const mark of panel.marks.filter((one) => one.z)) {
        const cell = ["x", "y"].map((which) => mark[which].findIndex((_, edge) => edge + 1 < mark[which].length
          && (this.place(panel, which, mark[which][edge]) - at[which]) * (this.place(panel, which, mark[which][edge + 1]) - at[which]) <= 0));
        const point = cell[1] * (mark.x.length - 1) + cell[0];
        if (Math.min(...cell) >= 0 && mark.z[point] !== null) best = {panel, mark, point, cell, px: at.x, py: at.y};
      }
      for (const one of this.points(panel)) {
        const under = one.mark.bar && one.mark.nodes[one.point]?.contains(event.target);
        const away = under ? 0 : Math.hypot(one.px - at.x, one.py - at.y);
        if (away < least || (under && away <= least)) [best, least] = [{panel, ...one}, away];
      }
    }
    return best;
  }

  show(found) {
    this.at = found;
    this.aim.setAttribute("r", found && !found.cell ? 6 : 0);
    const time = found?.panel.x?.time, second = time && found.mark.x ? time[1] + time[0] * found.mark.x[found.point] : null;
    for (const chart of charts.values()) if (this.isOf(chart.card.dataset.recording)) chart.markTime(second);
    this.tip.textContent = found ? this.lines(found.panel, found).join("\n") : "";
    if (!found) return;
    this.aim.setAttribute("cx", found.px);
    this.aim.setAttribute("cy", found.py);
    const scale = this.svg.clientWidth / this.svg.viewBox.baseVal.width, [left, top] = [found.px * scale, found.py * scale];
    const room = this.host.clientWidth - this.tip.offsetWidth;
    const beside = left + 12 <= room ? left + 12 : Math.max(0, left - this.tip.offsetWidth - 12);
    this.tip.style.transform = `translate(${Math.min(beside, Math.max(0, room))}px, ${top > this.tip.offsetHeight + 12 ? top - this.tip.offsetHeight - 12 : top + 14}px)`;
  }

  isOf(recording) {
    return recording && recording === this.card.dataset.recording;
  }

  /** Mark a second of the recording on the time axes; null for none. */
  markTime(second) {
    const lines = this.panels.filter((panel) => second !== null && panel.x?.time).map((panel) => {
      const px = this.place(panel, "x", (second - panel.x.time[1]) / panel.x.time[0]);
      return px >= panel.box[0] && px <= panel.box[2] ? `M${px} ${panel.box[1]}V${panel.box[3]}` : "";
    });
    this.now.setAttribute("d", lines.join(""));
  }

  /** To the next or last point of a series by the x axis, or to the next series. */
  step(along, up) {
    const all = this.panels.flatMap((panel) => this.points(panel).map((one) => ({panel, ...one})));
    if (!all.length) return;
    const marks = [...new Set(all.map((one) => one.mark))];
    const now = Math.max(0, marks.indexOf(this.at?.mark)), next = marks[(now + up + marks.length) % marks.length];
    const of = all.filter((one) => one.mark === next).sort((a, b) => a.px - b.px || a.py - b.py);
    const place = up ? of.reduce((best, one, index) => (Math.abs(one.px - this.at?.px) < Math.abs(of[best].px - this.at?.px) ? index : best), 0)
      : of.findIndex((one) => one.point === this.at?.point);
    this.show(of[Math.min(of.length - 1, Math.max(0, this.at ? place + along : 0))]);
  }

  toggle(key) {
    if (!this.panels.some((panel) => panel.marks.some((mark) => mark.key === key))) return; // it explains a look alone
    this.off.has(key) ? this.off.delete(key) : this.off.add(key);
    for (const one of this.svg.querySelectorAll(`[data-k="${key}"]`)) one.classList.toggle("off", this.off.has(key));
    for (const mark of this.panels.flatMap((panel) => panel.marks)) {
      if (mark.key === key) for (const node of mark.nodes) node.style.display = this.off.has(key) ? "none" : "";
    }
    this.show(null);
  }

  /** Show spans of the panels, [from, to] in pixels of the whole picture along and up, null for all of it. */
  zoom(seen, linked) {
    this.panels.forEach((panel, place) => {
      if (!panel.box) return;
      panel.seen = seen[place];
      this.redraw(panel);
    });
    this.reset.hidden = this.panels.every((panel) => !panel.seen[0] && !panel.seen[1]);
    this.show(null);
    const timed = this.panels.find((panel) => panel.x?.time);
    if (linked && timed && this.card.dataset.recording) {
      const [unit, start] = timed.x.time;
      const span = timed.seen[0]?.map((px) => start + unit * this.value(timed, "x", px)) ?? null;
      spans.set(this.card.dataset.recording, span);
      for (const other of charts.values()) if (other !== this && this.isOf(other.card.dataset.recording)) other.follow(span);
    }
  }

  /** Show a span of seconds of the recording on the time axes, as far as they reach. */
  follow(span) {
    if (!this.panels.some((panel) => panel.x?.time)) return;
    this.zoom(this.panels.map((panel) => {
      if (!panel.x?.time) return panel.seen;
      const before = panel.seen;
      panel.seen = [null, before[1]];
      const [from, to] = (span ?? []).map((second) => this.place(panel, "x", (second - panel.x.time[1]) / panel.x.time[0]));
      const ends = [Math.max(panel.box[0], from), Math.min(panel.box[2], to)];
      return [span && ends[1] - ends[0] > 1 ? ends : null, before[1]];
    }), false);
  }

  /** Zoom a box of the picture as it is seen, in pixels. */
  zoomBox(panel, [x0, y0, x1, y1]) {
    const back = (which, px) => {
      const [start, end] = which ? [panel.box[1], panel.box[3]] : [panel.box[0], panel.box[2]];
      const [from, to] = panel.seen[which] ?? [start, end];
      return from + (Math.min(end, Math.max(start, px)) - start) / (end - start) * (to - from);
    };
    const spansOf = [[back(0, x0), back(0, x1)], [back(1, y0), back(1, y1)]].map(([from, to]) => (to - from > 0.01 ? [from, to] : null));
    this.zoom(this.panels.map((other) => {
      if (!other.box) return other.seen;
      const scaled = (which, axis) => (other === panel ? spansOf[which] : other[axis].with === panel[axis].with && spansOf[which]
        ? spansOf[which].map((px) => other.box[which] + (px - panel.box[which]) / (panel.box[which + 2] - panel.box[which]) * (other.box[which + 2] - other.box[which]))
        : other.seen[which]);
      return [scaled(0, "x"), scaled(1, "y")];
    }), true);
  }

  redraw(panel) {
    const x = (px, moves = "xy") => (moves.includes("x") ? this.moved(panel, "x", px) : px);
    const y = (px, moves = "xy") => (moves.includes("y") ? this.moved(panel, "y", px) : px);
    const outside = (px, py) => px < panel.box[0] - 1 || px > panel.box[2] + 1 || py < panel.box[1] - 1 || py > panel.box[3] + 1;
    const whole = !panel.seen[0] && !panel.seen[1];
    for (const {node, d, x: left, y: top, moves} of panel.marks.flatMap((mark) => mark.parts)) {
      if (node.localName === "use") {
        const at = [x(Number(left), moves), y(Number(top), moves)];
        node.setAttribute("x", at[0]);
        node.setAttribute("y", at[1]);
        node.style.display = !whole && outside(...at) ? "none" : "";
      } else if (d) {
        node.setAttribute("d", pathed(d, (px) => x(px, moves), (py) => y(py, moves)));
      }
    }
    for (const {node, transform} of panel.images) {
      const [sx, sy] = [x(1) - x(0), y(1) - y(0)], matrix = `matrix(${sx} 0 0 ${sy} ${x(0)} ${y(0)})`;
      node.setAttribute("transform", whole ? transform ?? "" : `${matrix} ${transform ?? ""}`);
      node.style.clipPath = "none";
    }
    for (const {node, x: px, y: py, moves} of panel.notes) {
      if (!node) continue;
      const [to, at] = [x(px, moves), y(py, moves)];
      node.setAttribute("transform", `translate(${to - px} ${at - py})`);
      node.style.display = !whole && outside(moves.includes("x") ? to : panel.box[0], moves.includes("y") ? at : panel.box[1]) ? "none" : "";
    }
    for (const one of panel.second) one.style.display = whole ? "" : "none"; // the scale beside is of the whole panel
    panel.made.forEach((one) => one.remove());
    panel.made = [...this.ticks(panel, "x"), ...this.ticks(panel, "y")];
  }

  /** Ticks move with their values; where few are left of a scale of numbers, there are new ones. */
  ticks(panel, which) {
    const axis = panel[which], labels = panel.labels[which], along = which === "x", seen = panel.seen[along ? 0 : 1];
    const [start, end] = along ? [panel.box[0], panel.box[2]] : [panel.box[1], panel.box[3]];
    const shift = (node, from, to) => node.setAttribute("transform", along ? `translate(${to - from} 0)` : `translate(0 ${to - from})`);
    const wanted = seen && axis.plain && labels.length ? this.steps(panel, which, seen) : [];
    labels.forEach((node, place) => {
      const to = this.moved(panel, which, axis.ticks[place]);
      shift(node, axis.ticks[place], to);
      node.style.display = wanted.length || to < start - 1 || to > end + 1 ? "none" : "";
    });
    return wanted.map(([value, text]) => {
      const made = labels[0].cloneNode(true);
      made.style.display = "";
      shift(made, axis.ticks[0], this.place(panel, which, value));
      for (const one of made.querySelectorAll("text")) one.textContent = text;
      labels[0].after(made);
      return made;
    });
  }

  /** Round values over a span, with their labels. */
  steps(panel, which, seen) {
    const ends = seen.map((px) => this.value(panel, which, px)), [low, high] = [Math.min(...ends), Math.max(...ends)];
    if (panel[which].scale === "log" && high / low > 8) return [];
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const first = Math.ceil(low / step), count = Math.floor(high / step) - first + 1;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return Array.from({length: count}, (_, place) => (first + place) * step)
      .map((value) => [value, value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits})]);
  }

  listen() {
    let drag = null;
    const inPicture = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const panelAt = ({x, y}) => this.panels.find(({box}) => box && x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3]);
    this.svg.addEventListener("pointerdown", (event) => {
      const at = inPicture(event), panel = panelAt(at);
      if (panel && event.button === 0) drag = {panel, at, client: [event.clientX, event.clientY]};
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!drag || !event.buttons) return this.show(this.nearest(event));
      const at = inPicture(event), [x, y] = [Math.min(at.x, drag.at.x), Math.min(at.y, drag.at.y)];
      const shape = {x, y, width: Math.abs(at.x - drag.at.x), height: Math.abs(at.y - drag.at.y)};
      for (const [name, value] of Object.entries(shape)) this.box.setAttribute(name, value);
      return this.show(null);
    });
    const end = (event) => {
      const {panel, at, client} = drag ?? {};
      drag = null;
      this.box.setAttribute("width", 0);
      if (!panel || event.type !== "pointerup" || Math.hypot(event.clientX - client[0], event.clientY - client[1]) < LEAST_DRAG_PX) return;
      const to = inPicture(event), flat = ([one, other], whole) => (Math.abs(one - other) * this.svg.getScreenCTM().a < LEAST_DRAG_PX ? whole : [Math.min(one, other), Math.max(one, other)]);
      const [x0, x1] = flat([at.x, to.x], [panel.box[0], panel.box[2]]), [y0, y1] = flat([at.y, to.y], [panel.box[1], panel.box[3]]);
      this.zoomBox(panel, [x0, y0, x1, y1]);
    };
    for (const name of ["pointerup", "pointercancel"]) this.svg.addEventListener(name, end);
    this.svg.addEventListener("pointerleave", () => this.show(null));
    this.svg.addEventListener("click", (event) => {
      const entry = event.target.closest("[data-k]");
      entry ? this.toggle(Number(entry.dataset.k)) : this.show(this.nearest(event));
    });
    const closer = (panel, x, y, factor) => {
      const [x0, y0, x1, y1] = panel.box, [wide, high] = [(x1 - x0) / factor / 2, (y1 - y0) / factor / 2];
      this.zoomBox(panel, [x - wide, y - high, x + wide, y + high]);
    };
    this.svg.addEventListener("dblclick", (event) => {
      const at = inPicture(event), panel = panelAt(at);
      if (panel) closer(panel, at.x, at.y, FACTOR);
    });
    this.host.addEventListener("keydown", (event) => {
      const point = this.at ?? {};
      const keys = {ArrowRight: () => this.step(1, 0), ArrowLeft: () => this.step(-1, 0), ArrowUp: () => this.step(0, -1), ArrowDown: () => this.step(0, 1),
        " ": () => point.mark?.key !== undefined && this.toggle(point.mark.key), "+": () => point.panel?.box && closer(point.panel, point.px, point.py, FACTOR),
        "-": () => this.zoom(this.panels.map(() => [null, null]), true), Escape: () => this.zoom(this.panels.map(() => [null, null]), true)};
      if (!keys[event.key] || event.composedPath()[0] === this.reset) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.host.addEventListener("blur", () => this.show(null));
  }
}

async function chart(card) {
  const values = JSON.parse(await unpacked(card.querySelector(".values").textContent));
  const text = decodeURIComponent(card.querySelector("img").src.replace(/^[^,]*,/, ""));
  const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const svg = clean(picture);
  if (!svg || charts.has(card)) return;
  const made = new Chart(card, svg, rules(picture), values);
  charts.set(card, made);
  card.append(made.host);
  card.classList.add("drawn");
  const span = spans.get(card.dataset.recording);
  if (span) made.follow(span);
}

const watch = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    chart(target).catch(() => target.querySelector(".plot")?.remove()); // the picture stays, and says the same
  }
}, {rootMargin: "600px"});

function drawCharts(root) {
  if (!("DecompressionStream" in window)) return;
  for (const values of root.querySelectorAll(".card > .values")) watch.observe(values.closest(".card"));
}
