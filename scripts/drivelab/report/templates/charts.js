
const NARROWEST_PX = 480; // below this a chart is drawn as if it were so wide, and made smaller with its letters
const LEAST_CONTRAST = 4.2; // against a dark ground; so it is 3 or more against a band on it as well
const LEAST_OF_A_CELL = 1.8; // contrast of the cells of a map that are nearest to a dark ground
const BAND_SHARE = 0.05; // of the full colour of a white band, on a dark ground
const BAND_SHARE_OF_DEPTH = 0.22; // and of a deeper one the more, so that two bands are told apart
const colours = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 600px)"); // of the window: there some charts have no room
const LONG_NAME = 16; // letters of a name beside a row
const WIDE_MARGIN_PX = 100; // of what is written at the ends of rows
const near = new Set();
const drawn = new Set();
const wide = new Set(); // what needs more room than a narrow window has, as far as it was read
let busy = false;
let library;

/** Plotly, unpacked once and run as the inline script whose hash the policy names. */
function plotly() {
  library ??= unpacked(document.getElementById("plotly").textContent).then((code) => {
    document.head.append(element("script", {textContent: code}));
    if (!window.Plotly) throw new Error("Plotly did not start");
    return window.Plotly;
  });
  return library;
}

const channels = (colour) => {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  const parts = hex ?? /^rgba?\((\d+), ?(\d+), ?(\d+)(?:, ?1(?:\.0*)?)?\)$/.exec(colour); // what shines through stays
  return parts && parts.slice(1, 4).map((one) => parseInt(one, hex ? 16 : 10));
};

/** Relative luminance after WCAG. */
const luminance = (rgb) => rgb.map((one) => (one / 255 <= 0.04045 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);

/** A colour as the page can show it: black is the ink, white the ground, and what is too dark for a dark ground lighter. */
function shown(colour, ink, ground) {
  const rgb = channels({black: "#000000", white: "#ffffff"}[colour] ?? colour);
  if (!rgb) return colour;
  const [low, high] = [Math.min(...rgb), Math.max(...rgb)];
  if (high - low <= 24) return high < 96 ? ink : low > 250 ? ground : colour;
  const behind = luminance(channels(ground) ?? [255, 255, 255]);
  let light = rgb;
  for (let share = 0.1; behind < 0.2 && (luminance(light) + 0.05) / (behind + 0.05) < LEAST_CONTRAST && share < 1; share += 0.1) {
    light = rgb.map((one) => Math.round(one + (255 - one) * share));
  }
  return light === rgb ? colour : `rgb(${light.join(", ")})`;
}

/**
 * The colour of a band: one that is pale on white is nearly the ground on a dark page, else what is on it is lost.
 * Its hue stays, at its fullest.
 */
function band(colour, ink, ground) {
  const [rgb, behind] = [channels(colour), channels(ground)];
  if (!rgb || !behind || luminance(behind) >= 0.2 || luminance(rgb) < 0.4) return shown(colour, ink, ground);
  const [low, high] = [Math.min(...rgb), Math.max(...rgb)];
  const full = rgb.map((one) => (high - low < 8 ? 255 : 255 * (one - low) / (high - low)));
  const share = BAND_SHARE + BAND_SHARE_OF_DEPTH * (1 - low / 255);
  return `rgb(${behind.map((one, place) => Math.round(one + (full[place] - one) * share)).join(", ")})`;
}

/**
 * Colours of a map by value: the more, the farther from the ground, on a dark page as on paper. Those that would be lost
 * on a dark ground are left out.
 */
function fromGround(scale, ground) {
  const [first, last] = Array.isArray(scale) ? [scale[0][1], scale.at(-1)[1]].map(channels) : [];
  const behind = luminance(channels(ground) ?? [255, 255, 255]);
  if (!first || !last || behind >= 0.2 || luminance(last) >= luminance(first)) return scale;
  const isSeen = (colour) => (luminance(channels(colour)) + 0.05) / (behind + 0.05) >= LEAST_OF_A_CELL;
  const seen = scale.map(([, colour]) => colour).reverse().filter(isSeen);
  return seen.length > 1 ? seen.map((colour, number) => [number / (seen.length - 1), colour]) : scale;
}

function adapted(value, ink, ground) {
  if (typeof value === "string") return shown(value, ink, ground);
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((one) => adapted(one, ink, ground));
  if (value === null || typeof value !== "object") return value;
  const entry = (key, one) => {
    if (/^(colorscale|text|x|y|z)$/.test(key)) return one;
    return key === "fillcolor" && typeof one === "string" ? band(one, ink, ground) : adapted(one, ink, ground);
  };
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, entry(key, one)]));
}

/** What a reader sees of a text for Plotly, which has tags and escaped letters in it. */
const plain = (text) => new DOMParser().parseFromString(text, "text/html").body.textContent.trim();

/** The lines above a chart, as text of the page: it breaks where it must, and is not made smaller. */
function headed(layout) {
  const lines = (layout.title?.text ?? "").split("<br>").map(plain).filter(Boolean);
  delete layout.title;
  layout.margin = {...layout.margin, t: Math.max(12, (layout.margin?.t ?? 80) - 18 * lines.length - 8)};
  return {lines, above: lines.length ? 18 * lines.length + 8 : 0};
}

/** The lines of what stands at the ticks of an axis. */
const names = (axis) => (axis.ticktext ?? []).flatMap((text) => text.split("<br>")).map(plain);

/**
 * Whether a chart needs more room than a phone has: for panels side by side, for axes that are each named between panels,
 * or for what is written beside rows.
 * A picture is made smaller with all that is on it; in a chart letters would lie on each other.
 */
function isWide({layout}) {
  if (layout.margin?.r > WIDE_MARGIN_PX) return true;
  const axes = (letter) => Object.keys(layout).filter((key) => key.startsWith(`${letter}axis`)).map((key) => layout[key]);
  if (axes("x").filter((axis) => axis.title?.text && !axis.overlaying).length > 1) return true;
  const starts = axes("x").map((axis) => axis.domain?.[0] ?? 0);
  return Math.max(...starts) - Math.min(...starts) > 0.1 || axes("y").some((axis) => names(axis).some((name) => name.length > LONG_NAME));
}

/** How large a chart is drawn, and by how much it is then made smaller to fit into its card. */
function measures(card) {
  const style = getComputedStyle(card);
  const room = card.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const width = Math.max(NARROWEST_PX, Math.round(room));
  const image = card.querySelector("img");
  const height = Number(card.querySelector(".chart").dataset.height) || Math.round(width * image.height / image.width);
  return {width, height, scale: room / width};
}

/** Room for the chart before it is there: nothing moves when it comes. None where the picture is known to stay. */
function reserve(card) {
  if (narrow.matches && wide.has(card)) {
    card.style.minHeight = "";
    return;
  }
  const {height, scale} = measures(card);
  card.style.minHeight = `${Math.ceil(height * scale) + 18}px`;
}

/** Draw what is near, one chart after the other; what was scrolled past in the meantime is left alone. */
async function drawNext() {
  if (busy) return;
  busy = true;
  while (near.size) {
    const [card] = near;
    near.delete(card);
    await draw(card);
    await new Promise(requestAnimationFrame);
  }
  busy = false;
}

async function draw(card) {
  if (drawn.has(card)) return;
  drawn.add(card);
  try {
    const [Plotly, text] = await Promise.all([plotly(), unpacked(card.querySelector(".chart").textContent)]);
    if (!drawn.has(card)) return; // it is far away by now
    const chart = JSON.parse(text);
    if (isWide(chart)) wide.add(card);
    if (narrow.matches && wide.has(card)) return reserve(card); // the picture stays
    const style = getComputedStyle(document.documentElement);
    const [ink, quiet, ground, line] = ["--ink", "--quiet", "--surface", "--line"].map((name) => style.getPropertyValue(name).trim());
    const {data, layout} = adapted(chart, ink, ground);
    for (const trace of data) if (trace.colorscale) trace.colorscale = fromGround(trace.colorscale, ground);
    const {width, height, scale} = measures(card);
    const {lines, above} = headed(layout);
    const sheet = element("div"); // what Plotly draws on
    const stage = element("div", {className: "stage"}, sheet);
    const title = lines.map((line, place) => element(place ? "span" : "b", {className: line.startsWith("[") ? "mark" : ""}, line));
    const plot = element("div", {className: "plot", ariaHidden: "true"}, ...title, stage);
    sheet.style.transform = `scale(${scale})`;
    stage.style.height = `${Math.ceil((height - above) * scale)}px`;
    Object.assign(layout, {width, height: height - above, autosize: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)"});
    layout.font = {...layout.font, color: ink};
    layout.hoverlabel = {...layout.hoverlabel, bgcolor: ground, bordercolor: quiet, font: {...layout.hoverlabel?.font, color: ink}, align: "left"};
    for (const [name, axis] of Object.entries(layout)) {
      if (/^[xy]axis\d*$/.test(name)) Object.assign(axis, {gridcolor: line, linecolor: quiet, zerolinecolor: line});
    }
    card.append(plot);
    // Plotly's tools would lie on the values; one zooms by drawing a box, and goes back with two clicks
    await Plotly.newPlot(sheet, data, layout, {displayModeBar: false});
    card.classList.add("drawn");
  } catch (error) {
    undraw(card); // the picture that is there already says the same
  }
}

function undraw(card) {
  near.delete(card);
  drawn.delete(card);
  card.classList.remove("drawn");
  const sheet = card.querySelector(".stage > div");
  if (sheet && window.Plotly) window.Plotly.purge(sheet);
  card.querySelector(".plot")?.remove();
}

if (document.getElementById("plotly") && "DecompressionStream" in window) {
  const watch = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) isIntersecting ? near.add(target) : undraw(target);
    drawNext();
  }, {rootMargin: "600px"});
  const cards = [...document.querySelectorAll(".chart")].map((one) => one.closest(".card"));
  cards.forEach(reserve);
  cards.forEach((card) => watch.observe(card));
  const anew = () => {
    cards.forEach(reserve);
    const again = [...drawn];
    again.forEach(undraw);
    again.forEach((card) => near.add(card));
    drawNext();
  };
  colours.addEventListener("change", anew);
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(anew, 300); });
}
