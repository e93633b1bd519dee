// The learning curve: total reward against time, of one or two agents, with the optimum where it is known.

import { makeSvg } from "./dom.js";

const HEIGHT = 150, LEFT = 44, RIGHT = 12, TOP = 14, BOTTOM = 26;

export function roundTicks(low, high, about) {
  const rough = (high - low) / about;
  if (!(rough > 0)) return [];
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((m) => m * size >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i += 1) ticks.push(i * step);
  return ticks;
}

// lanes: [{ name, curve: [[t, total], ...] }]; wide: across the page
export function drawCurve(holder, lanes, optimum, wide) {
  const WIDTH = wide && innerWidth > 720 ? 1240 : 560;
  const last = Math.max(20, ...lanes.map((lane) => lane.curve.at(-1)[0]));
  const totals = lanes.flatMap((lane) => lane.curve.map((point) => point[1]));
  const best = optimum === null ? 0 : optimum * last;
  const low = Math.min(0, best, ...totals), top = Math.max(best, ...totals);
  const high = top > low ? top : low + 1; // nothing was paid yet
  const x = (t) => LEFT + (t / last) * (WIDTH - LEFT - RIGHT);
  const y = (v) => HEIGHT - BOTTOM - ((v - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "scene curve", role: "img" });
  const now = lanes.map((lane) => `${lane.name} ${Number(lane.curve.at(-1)[1].toPrecision(4))}`).join(", ");
  svg.setAttribute("aria-label", `Total reward: ${now}${optimum === null ? "" : `; optimum ${Number(best.toPrecision(4))}`}`);
  for (const v of roundTicks(low, high, 4)) {
    svg.append(makeSvg("path", { class: "grid", d: `M${LEFT} ${y(v)}H${WIDTH - RIGHT}` }));
    svg.append(makeSvg("text", { class: "tick y", x: LEFT - 6, y: y(v) + 4 }, Number(v.toPrecision(6))));
  }
  for (const t of roundTicks(0, last, 5)) svg.append(makeSvg("text", { class: "tick", x: x(t), y: HEIGHT - 8 }, t));
  if (optimum !== null) {
    svg.append(makeSvg("path", { class: "optimum", d: `M${x(0)} ${y(0)}L${x(last)} ${y(best)}` }));
    svg.append(makeSvg("text", { class: "tick optimum-name", x: x(last * 0.6), y: y(best * 0.6) - 8 }, "optimum, model known"));
  }
  lanes.forEach((lane, i) => {
    const d = lane.curve.map(([t, v], k) => `${k ? "L" : "M"}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join("");
    svg.append(makeSvg("path", { class: `line lane${i}`, d }));
    const [t, v] = lane.curve.at(-1);
    svg.append(makeSvg("circle", { class: `end lane${i}`, cx: x(t), cy: y(v), r: 4 }));
  });
  holder.replaceChildren(svg);
}
