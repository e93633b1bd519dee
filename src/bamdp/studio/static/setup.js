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
  for (const key of ["prior", "rewards", "discount"]) if (choice[key] !== null && choice[key] !== "") fields.set(key, choice[key]);
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
    prior: fields.get("prior"),
    rewards: fields.get("rewards"),
    discount: number(fields.get("discount") ?? ""),
    objective: fields.get("objective") ?? "episode",
    seed: Number(fields.get("seed") ?? fallback.seed),
  };
  const t = Number(fields.get("t") ?? 0);
  return { choice, t: Number.isInteger(t) && t > 0 ? t : 0 };
}

// Nothing where nothing is written; what is no number is sent as it is, and the server says what should be.
const number = (text) => (text.trim() === "" ? null : Number.isNaN(Number(text)) ? text : Number(text));
const OWN = "planner's own";

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
    option(prior, "", OWN);
    catalogue.priors.forEach((info) => option(prior, info.name));
    option(versus, "", "none");
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
    select(prior, choice.prior?.includes("+") ? choice.prior : splitSpec(choice.prior ?? "")[0]);
    select(versus, choice.planners[1] ? splitSpec(choice.planners[1])[0] : "");
    seed.value = choice.seed;
  }

  // A change in the bar: what was not touched keeps its parameters.
  quickly(name) {
    const fields = this.quick.elements;
    const choice = { ...this.choice, planners: [...this.choice.planners] };
    if (name === "env") {
      choice.env = fields.env.value;
      if (choice.env !== "maze_door" && choice.prior === "models") choice.prior = null;
      choice.rewards = null;
    }
    if (name === "planner") choice.planners[0] = fields.planner.value;
    if (name === "prior") choice.prior = fields.prior.value || null;
    if (name === "versus") choice.planners = [choice.planners[0], ...(fields.versus.value ? [fields.versus.value] : [])];
    if (name === "seed") choice.seed = number(fields.seed.value);
    this.begin(choice, name === "versus"); // whom it is compared with does not change the run
  }

  // The sheet with all parameters.
  open(problem) {
    const columns = this.dialog.querySelector(".columns");
    const { choice } = this;
    this.parts = [
      this.part("World", "env", this.catalogue.envs, choice.env),
      ...choice.planners.map((planner, i) => this.part(i ? "Planner to compare with" : "Planner", `planner ${i}`, this.catalogue.planners, planner)),
      this.part("Prior", "prior", [{ name: "", label: OWN, parameters: [] }, ...this.catalogue.priors], choice.prior ?? ""),
    ];
    columns.replaceChildren(...this.parts.map((part) => part.element), this.common(choice));
    this.error.hidden = !problem;
    if (problem) this.error.textContent = problem.error;
    if (!this.dialog.open) this.dialog.showModal();
  }

  part(title, field, known, spec) {
    const element = make("fieldset");
    element.append(make("legend", "", title));
    const plus = spec.includes("+") || whole(spec);
    const [name, given] = plus ? [spec, {}] : splitSpec(spec);
    const chooser = make("select");
    chooser.setAttribute("aria-label", title);
    known.forEach((info) => option(chooser, info.name, info.label));
    select(chooser, name);
    const help = make("p", "muted help"), list = make("div", "parameters");
    const fill = (values) => {
      const info = known.find((entry) => entry.name === chooser.value);
      help.textContent = info?.help ?? "";
      list.replaceChildren(...(info?.parameters ?? []).map((parameter) => {
        const row = make("div", "parameter"), label = make("label", "", parameter.name);
        label.append(this.control(`${field} ${parameter.name}`, parameter, values[parameter.name] ?? ""));
        row.append(label, make("p", "muted help", parameter.help));
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

  // A field that suggests the words that the parameter may be, if there are any.
  control(id, { name, default: fallback, choices }, value) {
    const input = make("input");
    Object.assign(input, { name, placeholder: fallback, value, spellcheck: false });
    if (!choices.length) return input;
    const list = make("datalist"), both = make("span");
    list.id = `words ${id}`.replaceAll(" ", "-");
    choices.forEach((word) => option(list, word));
    input.setAttribute("list", list.id);
    both.append(input, list);
    return both;
  }

  common(choice) {
    const element = make("fieldset");
    element.append(make("legend", "", "Both"));
    if (choice.planners.length < 2) element.querySelector("legend").textContent = "Run";
    const field = (name, text, value) => {
      const label = make("label", "", text), input = make("input");
      Object.assign(input, { name, value: value ?? "", placeholder: value === null ? OWN : "" });
      label.append(input);
      element.append(label);
    };
    field("discount", "discount", choice.discount);
    field("seed", "seed", choice.seed);
    const chooser = (name, choices, value) => {
      const label = make("label", "", name), made = make("select");
      made.name = name;
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
      prior: this.parts.at(-1).spell() || null,
      rewards: fields.rewards.value || null,
      objective: fields.objective.value,
      discount: number(fields.discount.value),
      seed: number(fields.seed.value),
    };
  }
}
