// Format numbers, times and standings.

export const STANDINGS = {
  running: "running", measured: "measured", between: "between two stages", failed: "failed", interrupted: "interrupted",
  silent: "no sign of life", waiting: "to do", finished: "finished", stopped: "not running",
};

export function number(value, digits = 0) {
  return value.toLocaleString("en", {maximumFractionDigits: digits, minimumFractionDigits: digits});
}
export function few(value) { return number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2); }
export function short(value) {
  const [factor, letter] = value >= 1e6 ? [1e6, "M"] : value >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${(value / factor).toLocaleString("en", {maximumFractionDigits: 2})}${letter}`;
}
export function latency(us) {
  if (us === null) return "–";
  return us < 1000 ? `${few(us)} µs` : us < 1e6 ? `${few(us / 1000)} ms` : `${few(us / 1e6)} s`;
}
export function duration(s) {
  const whole = Math.round(s), minutes = Math.floor(whole / 60);
  if (whole < 60) return `${whole} s`;
  return minutes < 60 ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}
export function clock(s) { return new Date(s * 1000).toLocaleTimeString("en-GB"); }
export function since(s) {
  const whole = Math.abs(Math.round(s)), sign = Math.round(s) < 0 ? "−" : "";
  const [h, m, r] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return sign + (h ? `${h}:${String(m).padStart(2, "0")}:${String(r).padStart(2, "0")}` : `${m}:${String(r).padStart(2, "0")}`);
}
