// Why this action: the sentence, the tree, the candidates, and the node that is looked at.

import { make, short } from "./dom.js";
import { colourOf } from "./world.js";

// hooks: detail(node) → promise, show(node's brief or null), tip(event, title, lines) or tip(null)
export class Why {
  constructor(holder, world, hooks) {
    this.holder = holder;
    this.world = world;
    this.hooks = hooks;
    this.selected = null;
  }

  render(why) {
    this.why = why;
    this.selected = null;
    if (why.over) {
      this.holder.replaceChildren(make("p", "muted", "The run is over."));
      return;
    }
    const parts = [make("p", "sentence", why.sentence)];
    if (why.tree) parts.push(this.tree());
    else parts.push(make("p", "muted", "This planner builds no tree; it compares the candidates below."));
    this.inspector = make("section", "inspector");
    this.inspector.hidden = true;
    this.inspector.setAttribute("aria-live", "polite");
    parts.push(this.inspector);
    const lower = make("div", "lower");
    lower.append(this.candidates());
    parts.push(lower);
    this.holder.replaceChildren(...parts);
    this.restShow();
  }

  // With nothing under the pointer, the chosen policy's rollouts are shown.
  restShow() {
    const nodes = this.why.tree?.nodes ?? {};
    const chosen = this.why.candidates.find((c) => c.chosen);
    const node = this.selected ?? (this.why.policies ? chosen?.node : null);
    this.hooks.show(node === null || node === undefined ? null : nodes[node] ?? null);
  }

  tree() {
    const figure = make("figure", "tree-holder");
    figure.innerHTML = this.why.tree.svg;
    figure.append(make("figcaption", "muted", this.why.tree.caption));
    const on = (kind, act) => figure.addEventListener(kind, (event) => {
      const node = event.target.closest("[data-node]")?.dataset.node;
      if (node !== undefined) act(node, event);
    });
    on("pointerover", (node, event) => this.hover(event, node));
    on("pointerout", () => this.leave());
    on("focusin", (node, event) => this.hover(event, node));
    on("focusout", () => this.leave());
    on("click", (node) => this.open(Number(node)));
    on("keydown", (node, event) => event.key === "Enter" && this.open(Number(node)));
    for (const group of figure.querySelectorAll(".node")) {
      const brief = this.why.tree.nodes[group.dataset.node];
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `${brief.title}, value ${short(brief.value)}`);
    }
    this.figure = figure;
    return figure;
  }

  hover(event, node) {
    const brief = this.why.tree.nodes[node];
    if (!brief) return;
    this.light(node);
    this.hooks.show(brief);
    this.hooks.tip(event, brief.title, this.lines(brief));
  }

  leave() {
    this.light(this.selected);
    this.hooks.tip(null);
    this.restShow();
  }

  light(node) {
    for (const hot of this.holder.querySelectorAll(".hot")) hot.classList.remove("hot");
    if (node === null) return;
    for (const part of this.holder.querySelectorAll(`[data-node="${node}"]`)) part.classList.add("hot");
  }

  lines(brief) {
    const lines = [];
    const spread = brief.spread === undefined ? "" : ` ± ${short(brief.spread)}`;
    if (brief.lower !== undefined) lines.push(`between ${short(brief.lower)} and ${short(brief.value)}`);
    else lines.push(`${brief.kind === "choice" ? "Q" : "V"} = ${short(brief.value)}${spread}`);
    if (brief.reward !== undefined) lines.push(`collected ${short(brief.reward)} on the way`);
    if (brief.share !== undefined) lines.push(`${short(100 * brief.share)} % of what comes of the choice`);
    if (brief.count > 1) lines.push(`${brief.count.toLocaleString("en")} samples`);
    return lines;
  }

  async open(node) {
    this.selected = node;
    this.light(node);
    this.hooks.tip(null);
    this.restShow();
    let detail;
    try {
      detail = await this.hooks.detail(node);
    } catch (error) {
      detail = { error: error.message };
    }
    if (this.selected === node) this.inspect(detail);
  }

  close() {
    this.selected = null;
    this.light(null);
    if (this.inspector) this.inspector.hidden = true;
    if (this.why && !this.why.over) this.restShow();
  }

  inspect(detail) {
    const close = make("button", "ghost close", "×");
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => this.close());
    const parts = [close];
    if (detail.error) parts.push(make("p", "error", detail.error));
    else parts.push(...this.facts(detail));
    this.inspector.replaceChildren(...parts);
    this.inspector.hidden = false;
  }

  facts(detail) {
    const title = make("h3", "", detail.title);
    const list = make("ul", "facts");
    for (const line of this.lines(detail)) list.append(make("li", "", line));
    if (detail.steps) {
      list.append(make("li", "", `${detail.steps} simulated steps from now, return ${short(detail.gained)}`));
    }
    const parts = [title, list];
    if (detail.choices.length && detail.kind !== "choice") parts.push(this.choicesHere(detail.choices));
    if (detail.changes.length) parts.push(...this.changes(detail));
    return parts;
  }

  choicesHere(choices) {
    const list = make("ul", "chips");
    for (const choice of choices) {
      const item = make("li", `chip back${colourOf(choice.action)}${choice.chosen ? " chosen" : ""}`);
      item.textContent = `${choice.label} ${short(choice.value)}`;
      list.append(item);
    }
    return list;
  }

  changes(detail) {
    const table = make("table", "changes");
    const head = table.createTHead().insertRow();
    for (const name of ["after", "seen", "next state: now → then"]) head.append(make("th", "", name));
    const body = table.createTBody();
    for (const change of detail.changes) {
      const row = body.insertRow();
      row.append(make("td", "", `${change.label}, ${change.action_label}`));
      row.append(make("td", "number", `${change.times}×`));
      const next = change.next.map(([s, before, after]) => `${this.world.state_labels[s]}: ${short(before)} → ${short(after)}`);
      row.append(make("td", "", next.join("   ")));
    }
    const more = detail.more_changes ? `, and ${detail.more_changes} rows more` : "";
    return [make("h4", "", `What the agent would have learned on the way${more}`), table];
  }

  candidates() {
    const card = make("div", "candidates");
    card.append(make("h3", "", this.why.policies ? "Candidate policies" : "Candidates"));
    const table = make("table");
    const head = table.createTHead().insertRow();
    const bounds = this.why.candidates.some((c) => c.lower !== null);
    const names = [this.why.policies ? "begins with" : "action", bounds ? "at most" : "value", bounds ? "at least" : "spread", "count", ""];
    for (const name of names) head.append(make("th", "", name));
    const body = table.createTBody();
    const finite = this.why.candidates.map((c) => c.value).filter((x) => x !== null);
    const low = Math.min(0, ...finite), high = Math.max(...finite, low + 1e-9);
    for (const candidate of this.why.candidates) body.append(this.candidate(candidate, bounds, low, high));
    card.append(table);
    return card;
  }

  spread(second, bounds, exact) {
    if (second === null) return "–";
    if (bounds) return short(second);
    return exact ? "exact" : `± ${short(second)}`;
  }

  candidate(candidate, bounds, low, high) {
    const row = make("tr", candidate.chosen ? "chosen" : "");
    const name = make("td");
    name.append(make("span", `chip back${colourOf(candidate.action)}`, candidate.label));
    const second = bounds ? candidate.lower : candidate.spread;
    const bar = make("td", "meter");
    const fill = make("span", `back${colourOf(candidate.action)}`);
    fill.style.width = candidate.value === null ? "0" : `${(100 * (candidate.value - low)) / (high - low)}%`;
    bar.append(fill);
    row.append(
      name,
      make("td", "number", short(candidate.value)),
      make("td", "number", this.spread(second, bounds, candidate.exact)),
      make("td", "number", candidate.count ? candidate.count.toLocaleString("en") : "–"),
      bar,
    );
    if (candidate.node !== null && this.why.tree) {
      row.dataset.node = candidate.node;
      row.tabIndex = 0;
      row.addEventListener("pointerenter", () => {
        this.light(candidate.node);
        this.hooks.show(this.why.tree.nodes[candidate.node] ?? null);
      });
      row.addEventListener("pointerleave", () => this.leave());
      row.addEventListener("click", () => this.open(candidate.node));
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.open(candidate.node);
      });
    }
    return row;
  }
}
