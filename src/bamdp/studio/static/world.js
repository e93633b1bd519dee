// The world: the server draws it once, this writes into it what is seen at a step.

import { make, makeSvg, short } from "./dom.js";

export const OVERLAYS = {
  visits: { label: "Visits", ramp: "visits", legend: (low, high) => ["never visited", `${high} times`] },
  entropy: { label: "Unknown", ramp: "entropy", legend: (low, high) => ["next state known", `${short(high)} bits unknown`] },
  value: { label: "Value", ramp: "value", legend: (low, high) => [`believed value ${short(low)}`, short(high)] },
  truth: { label: "Truth", ramp: "value", legend: (low, high) => [`true value ${short(low)}`, short(high)] },
};

// What tells most while nobody has chosen: what is unknown at first, values when half of the places have been seen.
export function tellingOverlay(world, frame) {
  const seen = frame.visits.filter((n) => n > 0).length;
  return seen < 0.5 * Math.min(world.n_states, world.scene.centres.length) ? "entropy" : "value";
}

// What a scale must span so that several worlds can have the same.
export const joined = (ranges) => [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];

export function overlayButtons(choose, truth = true) {
  const group = make("div", "segments");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "What the colours of the world show");
  for (const [name, { label }] of Object.entries(OVERLAYS)) {
    if (name === "truth" && !truth) continue;
    const button = make("button", "", label);
    button.type = "button";
    button.dataset.overlay = name;
    button.addEventListener("click", () => choose(name));
    group.append(button);
  }
  return group;
}

export function markOverlay(name) {
  for (const button of document.querySelectorAll("button[data-overlay]")) {
    button.setAttribute("aria-pressed", String(button.dataset.overlay === name));
  }
}

const N_COLOURS = 6;
export const colourOf = (action) => action % N_COLOURS; // of the classes fill0, stroke0 and back0

function stops(ramp) {
  const style = getComputedStyle(document.documentElement);
  return [0, 1, 2, 3, 4].map((i) => {
    const hex = style.getPropertyValue(`--${ramp}-${i}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
}

export function shade(knots, place) {
  const x = Math.min(Math.max(place, 0), 1) * (knots.length - 1);
  const i = Math.min(Math.floor(x), knots.length - 2);
  return knots[i].map((low, c) => Math.round(low + (x - i) * (knots[i + 1][c] - low)));
}

const isDark = ([r, g, b]) => 0.3 * r + 0.59 * g + 0.11 * b < 140;

export class World {
  constructor(holder, world) {
    this.holder = holder;
    this.world = world;
    holder.innerHTML = world.scene.svg;
    this.svg = holder.querySelector("svg");
    this.agent = this.svg.querySelector(".agent");
    this.heading = this.svg.querySelector(".heading");
    this.cells = [...this.svg.querySelectorAll(".cell")];
    this.arrows = [...this.svg.querySelectorAll(".arrow")];
    this.names = [...this.svg.querySelectorAll(".name[data-place]")];
    this.agentName = world.kind === "graph" ? this.svg.querySelector(".agent .name") : null; // of the state that it covers
    const solid = world.marks.filter((mark) => ["goal", "door_closed"].includes(mark.kind));
    const places = world.positions.map(([x, y], s) => [x, y, world.scene.place[s]]);
    this.covered = new Set(places.filter(([x, y]) => solid.some((m) => m.x === x && m.y === y)).map((p) => p[2]));
    this.byLayer = new Map();
    world.layers.forEach((layer, s) => {
      if (!this.byLayer.has(layer)) this.byLayer.set(layer, []);
      this.byLayer.get(layer)[world.scene.place[s]] = s;
    });
    if (world.kind === "arms") this.byLayer.set(0, [...Array(world.n_actions).keys()]); // a bandit's places are its arms
  }

  // The state that a place stands for while the agent is where it is.
  stateAt(place, frame) {
    const states = this.byLayer.get(this.world.layers[frame.state]);
    return states[place];
  }

  // The ends of the ramp: fixed for what is unknown, else by what is to be seen now.
  range(overlay, frame) {
    if (overlay === "entropy") return [0, Math.log2(Math.max(2, this.world.n_states))];
    const table = this.table(overlay, frame);
    const shown = this.byLayer.get(this.world.layers[frame.state]).map((s) => table[s]).filter((x) => x !== undefined && x !== null);
    return overlay === "visits" ? [0, Math.max(1, ...shown)] : [Math.min(...shown), Math.max(...shown)];
  }

  // The numbers of an overlay by state; of a bandit by arm.
  table(overlay, frame) {
    if (this.world.kind !== "arms") return overlay === "truth" ? this.world.truth.value : frame[overlay];
    if (overlay === "truth") return this.world.arms;
    return frame.expects.map((row) => (overlay === "visits" ? row.visits : overlay === "value" ? row.reward : 0));
  }

  places(overlay, frame, [low, high]) {
    const value = this.table(overlay, frame);
    return (s) => {
      if (value[s] === null || high <= low) return 0;
      if (overlay === "visits") return Math.log1p(value[s]) / Math.log1p(high);
      return (value[s] - low) / (high - low);
    };
  }

  paint(frame, overlay, arrows, range = this.range(overlay, frame)) {
    this.frame = frame;
    this.paintPlaces(frame, overlay, arrows, range);
    const arms = this.world.kind === "arms";
    this.agent.setAttribute("visibility", arms && frame.last_action === null ? "hidden" : "visible");
    const [x, y] = this.agentAt(frame);
    this.agent.style.transform = `translate(${x}px, ${y}px)`;
    if (this.agentName) this.agentName.textContent = this.names[this.world.scene.place[frame.state]].textContent;
    const held = this.world.layers[frame.state];
    for (const mark of this.svg.querySelectorAll(".mark[data-bit]")) {
      mark.style.opacity = held & Number(mark.dataset.bit) ? 0.2 : 1;
    }
  }

  agentAt(frame) {
    const { centres, place } = this.world.scene;
    if (this.world.kind === "arms") return centres[frame.last_action ?? 0];
    return centres[place[frame.state]];
  }

  // Where an action aims in a state, or nothing.
  move(s, action) {
    return this.world.moves?.[s]?.[action] ?? null;
  }

  paintPlaces(frame, overlay, arrows, range) {
    const knots = stops(OVERLAYS[overlay].ramp);
    const place = this.places(overlay, frame, range);
    const policy = overlay === "truth" ? this.world.truth.policy : frame.policy;
    const fills = [];
    for (const cell of this.cells) {
      const at = Number(cell.dataset.place), s = this.stateAt(at, frame);
      fills[at] = s === undefined ? knots[0] : shade(knots, place(s));
      cell.style.fill = `rgb(${fills[at].join(",")})`;
      if (s !== undefined && cell.classList.contains("node")) {
        cell.setAttribute("class", `cell node${arrows ? ` stroke${colourOf(policy[s])}` : ""}`);
      }
    }
    for (const name of this.names) {
      name.style.fill = isDark(fills[Number(name.dataset.place)]) ? "#ffffff" : "#252c38";
    }
    for (const arrow of this.arrows) {
      const at = Number(arrow.dataset.place), s = this.stateAt(at, frame);
      const move = s === undefined ? null : this.move(s, policy[s]);
      const shown = arrows && move && !this.world.terminal.includes(s) && !this.covered.has(at);
      arrow.setAttribute("visibility", shown ? "visible" : "hidden");
      if (!shown) continue;
      const [x, y] = this.world.scene.centres[at];
      const angle = (Math.atan2(move[1], move[0]) * 180) / Math.PI;
      arrow.setAttribute("transform", `translate(${x} ${y}) rotate(${angle})`);
      const known = overlay === "truth" || frame.visits[s] > 0;
      arrow.style.fill = isDark(fills[at]) ? "#ffffff" : "#252c38";
      arrow.style.opacity = known ? 0.72 : 0.18; // where it has never been, the arrow is a guess
    }
  }

  // Which way the agent is about to go.
  head(action) {
    const move = action === null ? null : this.move(this.frame.state, action);
    this.heading.setAttribute("visibility", move ? "visible" : "hidden");
    if (!move) return;
    const angle = (Math.atan2(move[1], move[0]) * 180) / Math.PI;
    this.heading.setAttribute("transform", `rotate(${angle}) scale(0.95)`);
  }

  // Rings where an action is expected to lead.
  expect(row) {
    const group = this.svg.querySelector(".expected");
    group.replaceChildren();
    if (!row || this.world.kind === "arms") return;
    for (const [s, p] of row.next) {
      if (p < 0.005) continue;
      const [cx, cy] = this.world.scene.centres[this.world.scene.place[s]];
      const r = 6 + 22 * Math.sqrt(p);
      group.append(makeSvg("circle", { cx, cy, r, class: `stroke${colourOf(row.action)}`, opacity: 0.35 + 0.65 * p }));
    }
  }

  // Paths of states over the world: steps to a neighbour strong, leaps (where anything may follow) faint.
  ways(list, action) {
    const group = this.svg.querySelector(".rollouts");
    group.replaceChildren();
    if (this.world.kind === "arms") return;
    const { centres, place } = this.world.scene;
    list.forEach((states, i) => {
      const turn = 2.4 * i, dx = 6 * Math.cos(turn), dy = 6 * Math.sin(turn);
      const points = states.map((s) => [centres[place[s]][0] + dx, centres[place[s]][1] + dy]);
      let near = "", far = "";
      points.slice(1).forEach(([x, y], k) => {
        const [x0, y0] = points[k];
        const piece = `M${x0.toFixed(1)} ${y0.toFixed(1)}L${x.toFixed(1)} ${y.toFixed(1)}`;
        if (this.world.kind === "grid" && Math.hypot(x - x0, y - y0) > 65) far += piece;
        else near += piece;
      });
      const stroke = `stroke${colourOf(action)}`;
      if (far) group.append(makeSvg("path", { d: far, class: `far ${stroke}` }));
      if (near) group.append(makeSvg("path", { d: near, class: "halo" }), makeSvg("path", { d: near, class: stroke }));
      const [x, y] = points.at(-1);
      group.append(makeSvg("circle", { cx: x, cy: y, r: 4.5, class: `end ${stroke}` }));
    });
  }

  // The text about the cell under the pointer, or nothing.
  under(event) {
    const cell = event.target.closest("[data-place]");
    return cell && this.world.kind !== "arms" ? this.describe(Number(cell.dataset.place)) : null;
  }

  tell(event, tip) {
    const about = this.under(event);
    if (about) tip(event, about.title, about.lines);
    else tip(null);
  }

  describe(place) {
    const s = this.stateAt(place, this.frame);
    if (s === undefined) return null;
    const truth = this.world.truth ? ` (true value ${short(this.world.truth.value[s])})` : "";
    return {
      state: s,
      title: `state ${this.world.state_labels[s]}`,
      lines: [
        `visited ${this.frame.visits[s]} times`,
        `believed value ${short(this.frame.value[s])}${truth}`,
        `${short(this.frame.entropy[s])} bits unknown about the next state`,
      ],
    };
  }
}
