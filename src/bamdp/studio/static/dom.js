// Elements of the page, and of drawings in it.

export function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function makeSvg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A number as it is shown everywhere: an integer, or three significant digits.
export const short = (x) => (x === null || x === undefined ? "–" : Number.isInteger(x) ? String(x) : Math.abs(x) >= 0.001 ? x.toPrecision(3) : String(Number(x.toPrecision(3))));
