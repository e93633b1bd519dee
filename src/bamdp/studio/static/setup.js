// What to watch: the quick choices in the bar, and the sheet with every parameter.

import { make } from "./dom.js";

// Worlds whose text is not "name:key=value": files, and Gymnasium's.
const whole = (spec) => /^(file|gym):/.test(spec);

// "name:key=value,key=value" into [name, { key: value }], and back; commas inside brackets belong to the value.
export function splitSpec(spec) {
  const at = spec.indexOf(":");
  if (at < 0 || whole(spec)) return [spec, {}];
  const parts = spec.slice(at + 1).split(/,(?![^([]*[)\]])/);
  const pairs = parts.map((part) => part.split("=").map((piece) => piece.trim()));
  return [spec.slice(0, at), Object.fromEntries(pairs.filter((pair) => pair.length === 2))];
}

export function joinSpec(name, parameters) {
  const written = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
  return written.length ? `${name}:${written.join(",")}` : name;
}

// The address carries the choice, so that it can be kept and passed on.
export function toHash(choice, t) {
  const fields = new URLSearchParams();
  fields.set("env", choice.env);
  choice.planners.forEach((planner) => fields.append("planner", planner));
  fields.set("prior", choice.prior);
  if (choice.rewards) fields.set("rewards", choice.rewards);
  fields.set("discount", choice.discount);
  if (choice.objective && choice.objective !== "episode") fields.set("objective", choice.objective);
  fields.set("seed", choice.seed);
  if (t) fields.set("t", t);
  return `#${fields}`;
}

export function fromHash(hash, fallback) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  if (!fields.has("env")) return { choice: { ...fallback }, t: null };
  const planners = fields.getAll("planner");
  const choice = {
    env: fields.get("env"),
    planners: planners.length ? planners : fallback.planners,
    prior: fields.get("prior") ?? fallback.prior,
    rewards: fields.get("rewards"),
    discount: Number(fields.get("discount") ?? fallback.discount),
    objective: fields.get("objective") ?? "episode",
    seed: Number(fields.get("seed") ?? fallback.seed),
  };
  const t = Number(fields.get("t") ?? 0);
  return { choice, t: Number.isInteger(t) && t > 0 ? t : 0 };
}

// The first sentence, without choices that a list shows, and cut where it is long; all of it is in the row's title.
function inShort(about) {
  const head = about.split('"')[0].replace(/[\s,:;(]+$/, "");
  const sentence = (head.length > 12 ? head : about).split(/\. /)[0].replace(/\.$/, "");
  return sentence.length <= 100 ? sentence : `${sentence.slice(0, 96).replace(/[\s,:;(]+\S*$/, "")} …`;
}

// Nothing where nothing is written: the server then says what should be.
const number = (text) => (text.trim() === "" ? null : Number(text));

function option(select, value, text) {
  const made = make("option", "", text ?? value);
  made.value = value;
  select.append(made);
}

function select(element, value) {
  if (![...element.options].some((known) => known.value === value)) option(element, value);
  element.value = value;
}

export class Setup {
  constructor(catalogue, begin) {
    this.catalogue = catalogue;
    this.begin = begin;
    this.quick = document.getElementById("quick");
    this.dialog = document.getElementById("setup");
    this.error = document.getElementById("setup-error");
    const { env, planner, prior, versus } = this.quick.elements;
    catalogue.envs.forEach((info) => option(env, info.name));
    catalogue.planners.forEach((info) => option(planner, info.name));
    catalogue.priors.forEach((info) => option(prior, info.name));
    option(versus, "", "nobody");
    catalogue.planners.forEach((info) => option(versus, info.name));
    this.quick.addEventListener("change", (event) => this.quickly(event.target.name));
    this.quick.addEventListener("submit", (event) => {
      event.preventDefault();
      this.quickly("seed");
    });
    document.getElementById("setup-open").addEventListener("click", () => this.open());
    document.getElementById("setup-cancel").addEventListener("click", () => this.dialog.close());
    document.getElementById("setup-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.begin(this.written());
      this.dialog.close();
    });
  }

  // Put a choice into the bar.
  show(choice) {
    this.choice = choice;
    const { env, planner, prior, versus, seed } = this.quick.elements;
    select(env, whole(choice.env) ? choice.env : splitSpec(choice.env)[0]);
    select(planner, splitSpec(choice.planners[0])[0]);
    select(prior, choice.prior.includes("+") ? choice.prior : splitSpec(choice.prior)[0]);
    select(versus, choice.planners[1] ? splitSpec(choice.planners[1])[0] : "");
    seed.value = choice.seed;
  }

  // A change in the bar: what was not touched keeps its parameters.
  quickly(name) {
    const fields = this.quick.elements;
    const choice = { ...this.choice, planners: [...this.choice.planners] };
    if (name === "env") {
      choice.env = fields.env.value;
      if (choice.env !== "maze_door" && choice.prior === "models") choice.prior = this.catalogue.default_prior;
      choice.rewards = null;
    }
    if (name === "planner") choice.planners[0] = fields.planner.value;
    if (name === "prior") choice.prior = this.priorSpec(fields.prior.value);
    if (name === "versus") choice.planners = [choice.planners[0], ...(fields.versus.value ? [fields.versus.value] : [])];
    if (name === "seed") choice.seed = number(fields.seed.value);
    this.begin(choice, name === "versus"); // whom it is compared with does not change the run
  }

  priorSpec(name) {
    return name === splitSpec(this.catalogue.default_prior)[0] ? this.catalogue.default_prior : name;
  }

  // The sheet with all parameters.
  open(problem) {
    const columns = this.dialog.querySelector(".columns");
    const { choice } = this;
    this.parts = [
      this.part("World", "env", this.catalogue.envs, choice.env),
      ...choice.planners.map((planner, i) => this.part(i ? "Planner to compare with" : "Planner", `planner ${i}`, this.catalogue.planners, planner)),
      this.part("Prior", "prior", this.catalogue.priors, choice.prior),
    ];
    columns.replaceChildren(...this.parts.map((part) => part.element), this.common(choice));
    this.error.hidden = !problem;
    if (problem) {
      this.error.textContent = problem.error;
      const at = problem.field && this.dialog.querySelector(`[data-field="${CSS.escape(problem.field)}"]`);
      if (at) at.classList.add("bad");
    }
    if (!this.dialog.open) this.dialog.showModal();
  }

  part(title, field, known, spec) {
    const element = make("fieldset");
    element.dataset.field = field;
    element.append(make("legend", "", title));
    const plus = spec.includes("+") || whole(spec);
    const [name, given] = plus ? [spec, {}] : splitSpec(spec);
    const chooser = make("select");
    chooser.setAttribute("aria-label", title);
    known.forEach((info) => option(chooser, info.name));
    select(chooser, name);
    const help = make("p", "muted help"), list = make("div", "parameters");
    const fill = (values) => {
      const info = known.find((entry) => entry.name === chooser.value);
      help.textContent = info ? info.help : "";
      list.replaceChildren(...Object.entries(info?.parameters ?? {}).map(([key, fallback]) => {
        const label = make("label", "", key);
        label.append(this.control(`${field} ${key}`, key, fallback, info.choices[key] ?? [], values[key] ?? ""));
        const row = make("div", "parameter"), about = info.about[key];
        row.append(label);
        if (about) {
          row.append(make("p", "muted help", inShort(about)));
          row.title = about;
        }
        return row;
      }));
    };
    fill(given);
    chooser.addEventListener("change", () => fill({}));
    element.append(chooser, help, list);
    const spell = () => {
      const inputs = [...list.querySelectorAll("input, select")].filter((input) => input.value.trim());
      return joinSpec(chooser.value, Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()])));
    };
    return { element, field, spell };
  }

  // A list where the words are all there is, else a field that suggests them.
  control(id, name, fallback, choices, value) {
    if (choices.length && choices.includes(fallback) && (!value || choices.includes(value)) && !choices.includes("…")) {
      const made = make("select");
      made.name = name;
      option(made, "", fallback);
      choices.filter((word) => word !== fallback).forEach((word) => option(made, word));
      made.value = value === fallback ? "" : value;
      return made;
    }
    const input = make("input");
    Object.assign(input, { name, placeholder: fallback, value, spellcheck: false });
    const words = choices.filter((word) => word !== "…");
    if (!words.length) return input;
    const list = make("datalist");
    list.id = `words ${id}`.replaceAll(" ", "-");
    words.forEach((word) => option(list, word));
    input.setAttribute("list", list.id);
    const both = make("span");
    both.append(input, list);
    return both;
  }

  common(choice) {
    const element = make("fieldset");
    element.append(make("legend", "", "Both"));
    if (choice.planners.length < 2) element.querySelector("legend").textContent = "Run";
    const field = (name, text, value) => {
      const label = make("label", "", text), input = make("input");
      Object.assign(input, { name, value, inputMode: "decimal" });
      label.dataset.field = name;
      label.append(input);
      element.append(label);
    };
    field("discount", "discount", choice.discount);
    field("seed", "seed", choice.seed);
    const chooser = (name, choices, value) => {
      const label = make("label", "", name), made = make("select");
      made.name = name;
      label.dataset.field = name;
      choices.forEach(([word, text]) => option(made, word, text));
      select(made, value);
      label.append(made);
      element.append(label);
    };
    const learned = this.catalogue.rewards.map((kind) => [kind, kind === "beta" ? "learned (beta)" : kind]);
    chooser("rewards", [["", "as the world calls for"], ...learned], choice.rewards ?? "");
    chooser("objective", [["episode", "this episode"], ["lifetime", "all episodes to come"]], choice.objective ?? "episode");
    return element;
  }

  written() {
    const fields = document.getElementById("setup-form").elements;
    return {
      env: this.parts[0].spell(),
      planners: this.parts.filter((part) => part.field.startsWith("planner")).map((part) => part.spell()),
      prior: this.parts.at(-1).spell(),
      rewards: fields.rewards.value || null,
      objective: fields.objective.value,
      discount: number(fields.discount.value),
      seed: number(fields.seed.value),
    };
  }
}
