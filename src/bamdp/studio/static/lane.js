// One agent on the stage: its world, what it expects, and why it does what it does.

import { make, short } from "./dom.js";
import { OVERLAYS, World, colourOf } from "./world.js";
import { Why } from "./why.js";
import { splitSpec } from "./setup.js";

export class Lane {
  // hooks: node(lane, t, node), state(lane, state) → promises; tip(event, title, lines) or tip(null)
  constructor(index, world, planner, hooks) {
    this.index = index;
    this.data = world;
    this.hooks = hooks;
    this.name = splitSpec(planner)[0];
    this.pinned = null;
    this.element = make("article", "lane");
    this.element.setAttribute("aria-label", `Agent: ${planner}`);
    this.element.append(this.worldCard(planner), this.expected, this.whyCard());
  }

  worldCard(planner) {
    const card = make("section", "card world-card");
    const head = make("header");
    const title = make("h2");
    const [name, parameters] = splitSpec(planner);
    const written = Object.entries(parameters).map(([key, value]) => `${key}=${value}`).join(", ");
    title.append(make("span", `dot lane${this.index}`), document.createTextNode(name), make("span", "written", written));
    this.score = make("p", "score");
    head.append(title, this.score);
    const holder = make("div", "world-holder");
    this.world = new World(holder, this.data);
    this.own = make("div", "own-picture"); // the picture that the world makes of itself, if it does
    this.legend = make("div", "legend");
    card.append(head, this.own, holder, this.legend);
    this.expected = make("section", "card expects");
    holder.addEventListener("pointermove", (event) => this.world.tell(event, this.hooks.tip));
    holder.addEventListener("pointerleave", () => this.hooks.tip(null));
    holder.addEventListener("click", (event) => this.pick(event));
    return card;
  }

  whyCard() {
    const card = make("section", "card why-card");
    const head = make("header");
    head.append(make("h2", "", "Why this action?"));
    this.fresh = make("span", "muted fresh");
    head.append(this.fresh);
    const body = make("div", "why");
    body.append(make("p", "muted", "Pause, or play slowly, to see what the agent considers."));
    card.append(head, body);
    this.why = new Why(body, this.data, {
      detail: (node) => this.hooks.node(this.index, this.why.why.t, node),
      show: (brief) => this.show(brief),
      tip: this.hooks.tip,
    });
    return card;
  }

  show(brief) {
    this.world.ways(brief?.ways ?? [], brief?.action ?? 0);
  }

  paint(frame, overlay, arrows, range) {
    const moved = !this.frame || this.frame.t !== frame.t;
    this.frame = frame;
    this.world.paint(frame, overlay, arrows, range);
    this.drawLegend(overlay, range);
    if (moved) this.drawOwn(frame.picture);
    const rate = frame.t ? frame.total / frame.t : 0;
    const share = this.data.optimum > 0 && frame.t ? `, ${Math.round((100 * rate) / this.data.optimum)} % of the optimum` : "";
    this.score.textContent = `${short(frame.total)} in ${frame.t} steps${share}`;
    if (moved) {
      this.fresh.textContent = this.why.why && this.why.why.t !== frame.t ? `of step ${this.why.why.t}` : "";
      if (this.why.why?.t !== frame.t) {
        this.world.ways([], 0);
        this.world.head(null);
      }
      if (this.pinned === null) this.drawExpects(frame.state, frame.expects, frame.weights);
      else this.refreshPinned();
    }
  }

  explain(why) {
    this.why.render(why);
    this.fresh.textContent = why.t === this.frame.t ? "" : `of step ${why.t}`;
    this.world.head(why.t === this.frame.t && !why.over ? why.action : null);
  }

  drawOwn(picture) {
    const image = this.own.querySelector("img") ?? make("img");
    Object.assign(image, { src: picture ?? "", alt: `${this.data.name} as it draws itself` });
    this.own.replaceChildren(...(picture ? [image] : []));
  }

  drawLegend(overlay, range) {
    const { ramp, legend } = OVERLAYS[overlay];
    const [low, high] = legend(...range);
    this.legend.replaceChildren(make("span", "", low), make("span", `ramp ${ramp}`), make("span", "", high));
  }

  async pick(event) {
    const about = this.world.under(event);
    if (!about) return;
    this.pinned = about.state;
    await this.refreshPinned();
  }

  async refreshPinned() {
    const state = this.pinned;
    try {
      const found = await this.hooks.state(this.index, state);
      if (this.pinned === state) this.drawExpects(state, found.expects, this.frame.weights);
    } catch {
      this.unpin(); // the session is busy or gone; the next frame tells
    }
  }

  unpin() {
    this.pinned = null;
    this.drawExpects(this.frame.state, this.frame.expects, this.frame.weights);
  }

  drawExpects(state, rows, weights) {
    const title = make("h3", "", `Expected after each action${this.data.n_states > 1 ? ` in state ${this.data.state_labels[state]}` : ""}`);
    if (this.pinned !== null) {
      const back = make("button", "ghost small", "back to the agent");
      back.addEventListener("click", () => this.unpin());
      title.append(" ", back);
    }
    const table = make("table");
    for (const row of rows) table.append(this.expectRow(row));
    const parts = [title, table];
    if (weights) parts.push(this.drawWeights(weights));
    this.expected.replaceChildren(...parts);
  }

  expectRow(row) {
    const line = make("tr");
    const name = make("td");
    name.append(make("span", `chip back${colourOf(row.action)}`, row.label));
    const bar = make("td", "next");
    const strip = make("div", "strip");
    if (this.data.n_states === 1) {
      bar.textContent = `mean reward ${short(row.reward)}`;
    } else {
      for (const [s, p] of row.next) {
        if (p < 0.02) continue;
        const piece = make("span", `back${colourOf(row.action)}`, p > 0.14 ? this.data.state_labels[s] : "");
        piece.style.width = `${100 * p}%`;
        piece.style.opacity = 0.35 + 0.65 * p;
        piece.title = `${this.data.state_labels[s]}: ${short(100 * p)} %`;
        strip.append(piece);
      }
      bar.append(strip);
    }
    const bits = make("td", "number muted", this.data.n_states === 1 ? "" : `${short(row.entropy)} bits`);
    line.append(name, bar, bits, make("td", "number muted", `${row.visits}×`));
    line.addEventListener("pointerenter", () => this.world.expect(row));
    line.addEventListener("pointerleave", () => this.world.expect(null));
    return line;
  }

  drawWeights(weights) {
    const list = make("ul", "weights");
    for (const { name, weight } of weights) {
      const item = make("li");
      const bar = make("span", "fill");
      bar.style.width = `${100 * weight}%`;
      item.append(bar, make("span", "name", `${name}: ${short(100 * weight)} %`));
      list.append(item);
    }
    return list;
  }
}
