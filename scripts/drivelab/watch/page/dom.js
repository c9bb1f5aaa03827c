// Find, make and change elements of the page.

export const $ = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "rect", "text", "polyline", "polygon", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}
export function put(node, text) { if (node.textContent !== text) node.textContent = text; }
export function paint(node, colour) { node.style.setProperty("--colour", colour); return node; }
