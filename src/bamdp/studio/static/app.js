// The page: one session, its lanes, the controls, the keyboard.

import * as api from "./api.js";
import { drawCurve } from "./curve.js";
import { make } from "./dom.js";
import { Lane } from "./lane.js";
import { Setup, fromHash, splitSpec, toHash } from "./setup.js";
import { tip } from "./tip.js";
import { OVERLAYS, joined, markOverlay, overlayButtons, tellingOverlay } from "./world.js";

const $ = (id) => document.getElementById(id);
const SPEEDS = ["1", "2", "4", "10", "30", ""];
const KEPT = "bamdp-studio-session";

const page = {
  session: null, // its id
  turn: 0, // how often something else was chosen
  stop: null, // stops listening
  lanes: [],
  frame: null,
  choice: null,
  overlay: localStorage.getItem("bamdp-overlay"), // that was chosen; else the one that tells most
  arrows: localStorage.getItem("bamdp-arrows") !== "off",
  at: 0, // the step that was seen last
  jumpTo: null, // the step that is to be gone to first
};
if (!OVERLAYS[page.overlay]) page.overlay = null;

// --- sessions ---------------------------------------------------------------------------------------------------

async function begin(choice, t = null) {
  leave();
  const { turn } = page;
  page.jumpTo = t;
  page.choice = choice;
  setup.show(choice);
  notice("Opening …", "busy");
  $("stage").classList.add("opening");
  try {
    const { id } = await api.open(choice);
    if (turn === page.turn) follow(id);
    else api.end(id).catch(() => {}); // something else was chosen meanwhile
  } catch (error) {
    if (turn === page.turn) failed({ error: error.message });
  }
}

function follow(id) {
  page.session = id;
  keep();
  page.stop = api.listen(id, heard, () => {
    page.session = null; // it is no more, or another tab's: not ours to end
    begin(page.choice, page.at); // the same again, at the same step
  });
}

// What a reload of this tab goes on with: the session, its choice and step, and the address that the tab showed.
function keep() {
  if (!page.session) return;
  const kept = { id: page.session, of: toHash(page.choice), t: page.at, address: location.hash };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
}

function leave() {
  page.turn += 1;
  if (page.stop) page.stop();
  if (page.session) api.end(page.session).catch(() => {});
  page.session = page.stop = page.frame = null;
  sessionStorage.removeItem(KEPT);
}

function heard(kind, data) {
  if (kind === "opened") opened(data);
  else if (kind === "frame") framed(data);
  else if (kind === "why") explained(data);
  else if (kind === "status") status(data);
  else if (kind === "closed") {
    page.stop();
    notice("This session ended because no tab was using it.", "failed", [["Start again", () => begin(page.choice)]]);
  }
}

function status(data) {
  if (data.phase === "opening") notice("Opening …", "busy");
  else if (data.phase === "compiling") notice("Compiling this planner for your machine. This is needed once and takes several seconds …", "busy");
  else if (data.phase === "failed") failed(data);
  else notice(null);
}

function failed(problem) {
  const again = [["Change parameters", () => setup.open(problem)]];
  if (page.frame) again.push(["Start again", () => begin(page.choice)]);
  notice(problem.error, "failed", again);
  $("play").disabled = true;
}

function opened({ worlds, choice }) {
  page.choice = choice;
  keep();
  setup.show(choice);
  const hooks = {
    node: (lane, t, node) => api.node(page.session, lane, t, node),
    state: (lane, state) => api.state(page.session, lane, state),
    tip,
  };
  page.lanes = worlds.map((world, i) => new Lane(i, world, choice.planners[i], hooks));
  const lanes = make("div", `lanes n${worlds.length}`);
  lanes.append(...page.lanes.map((lane) => lane.element));
  $("stage").replaceChildren(overlayBar(Boolean(worlds[0].truth)), lanes, curveCard());
  placeCurve();
  $("stage").classList.remove("opening");
  $("timeline").max = worlds[0].end;
  $("of").textContent = `of ${worlds[0].end.toLocaleString("en")}`;
  document.title = `${splitSpec(choice.env)[0]} · ${choice.planners.map((p) => splitSpec(p)[0]).join(" and ")} · bamdp studio`;
  $("play").disabled = false;
  if (page.jumpTo !== null) command("goto", Math.min(page.jumpTo, worlds[0].end));
  page.jumpTo = null;
}

// --- what is seen ------------------------------------------------------------------------------------------------

function framed(data) {
  page.frame = data;
  const { t } = data.frames[0];
  page.at = t;
  repaint();
  document.documentElement.style.setProperty("--glide", data.speed && data.speed <= 10 ? `${Math.min(220, 600 / data.speed)}ms` : "0ms");
  drawCurve($("curve"), page.lanes.map((lane, i) => ({ name: lane.name, curve: data.frames[i].curve })), page.lanes[0].data.optimum, page.lanes.length > 1);
  const moving = data.playing || data.goal !== null;
  $("play").classList.toggle("moving", moving);
  $("play").setAttribute("aria-label", moving ? "Pause" : "Play");
  if (document.activeElement !== $("timeline") || !page.dragging) $("timeline").value = t;
  if (document.activeElement !== $("now")) $("now").value = t;
  $("timeline").style.setProperty("--known", `${(100 * data.frames[0].known) / Math.max(1, $("timeline").max)}%`);
  $("speed").value = data.speed === null ? "" : String(data.speed);
  $("first").disabled = $("back").disabled = t === 0;
  $("step").disabled = data.at_end;
  keep();
  clearTimeout(page.naming);
  page.naming = setTimeout(() => {
    history.replaceState(null, "", toHash(page.choice, t));
    keep();
  }, 150);
  thinking(moving);
}

function explained({ lanes }) {
  lanes.forEach((why, i) => page.lanes[i]?.explain(why));
  thinking(false);
}

// Nothing has come for a while although something is wanted: say so, and since when.
function thinking(expected) {
  clearInterval(page.clock);
  $("stage").classList.remove("thinking");
  if (!expected) return;
  const since = Date.now();
  page.clock = setInterval(() => {
    const seconds = Math.floor((Date.now() - since) / 1000);
    if (seconds < 1) return;
    $("stage").classList.add("thinking");
    notice(`The planner has been thinking for ${seconds} s …`, "busy", [["Stop it", () => { leave(); notice("Stopped.", "failed", [["Change parameters", () => setup.open()], ["Start again", () => begin(page.choice)]]); thinking(false); }]]);
    page.waited = true;
  }, 500);
  if (page.waited) {
    page.waited = false;
    notice(null);
  }
}

function overlayBar(truth) {
  const bar = make("div", "overlays");
  const label = make("label");
  const box = Object.assign(make("input"), { type: "checkbox", checked: page.arrows, id: "arrows" });
  box.addEventListener("change", () => setArrows(box.checked));
  label.append(box, " policy");
  bar.append(overlayButtons(setOverlay, truth), label);
  return bar;
}

function setOverlay(name) {
  page.overlay = name;
  localStorage.setItem("bamdp-overlay", name);
  repaint();
}

function setArrows(on) {
  page.arrows = on;
  localStorage.setItem("bamdp-arrows", on ? "on" : "off");
  if ($("arrows")) $("arrows").checked = on;
  repaint();
}

// Two worlds side by side have one scale, so that equal colours mean equal numbers.
function repaint() {
  if (!page.frame) return;
  const { frames } = page.frame;
  const { data } = page.lanes[0];
  const known = page.overlay !== "truth" || data.truth;
  const overlay = page.overlay && known ? page.overlay : tellingOverlay(data, frames[0]);
  markOverlay(overlay);
  const range = joined(page.lanes.map((lane, i) => lane.world.range(overlay, frames[i])));
  page.lanes.forEach((lane, i) => lane.paint(frames[i], overlay, page.arrows, range));
}

function curveCard() {
  const card = make("section", "card curve-card");
  card.innerHTML = '<header><h2>Reward so far</h2></header><div id="curve"></div>';
  return card;
}

// One agent: the curve stands under its world, and what it expects below. Two: between their worlds and their reasons.
function placeCurve() {
  const card = document.querySelector(".curve-card");
  if (page.lanes.length > 1) {
    document.querySelector(".lanes").append(card);
    return;
  }
  const column = make("div", "column");
  const { element, expected } = page.lanes[0];
  const world = element.querySelector(".world-card");
  world.before(column);
  column.append(world, card, expected);
}

function notice(text, kind = "", actions = []) {
  const box = $("notice");
  box.hidden = !text;
  box.className = `notice ${kind}`;
  box.replaceChildren(document.createTextNode(text ?? ""));
  for (const [label, act] of actions) {
    const button = make("button", "", label);
    button.type = "button";
    button.addEventListener("click", act);
    box.append(" ", button);
  }
}

// --- controls ----------------------------------------------------------------------------------------------------

async function command(what, value) {
  if (!page.session) return;
  try {
    await api.command(page.session, what, value);
  } catch (error) {
    if (error.status !== 404) notice(error.message, "failed");
  }
}

const moving = () => page.frame && (page.frame.playing || page.frame.goal !== null);
const toggle = () => command(moving() ? "pause" : "play");
const setSpeed = (text) => command("speed", text === "" ? null : Number(text));

function jump(text) {
  const t = Number(text);
  const end = Number($("timeline").max);
  if (!/^\d+$/.test(text.trim()) || t > end) {
    notice(`A step is a whole number from 0 to ${end}.`, "failed");
    return;
  }
  if (!$("notice").classList.contains("busy")) notice(null);
  command("goto", t);
}

$("play").addEventListener("click", toggle);
$("step").addEventListener("click", () => command("step"));
$("back").addEventListener("click", () => command("back"));
$("first").addEventListener("click", () => command("goto", 0));
$("speed").addEventListener("change", (event) => setSpeed(event.target.value));
$("timeline").addEventListener("input", () => { page.dragging = true; $("now").value = $("timeline").value; });
$("timeline").addEventListener("change", () => { page.dragging = false; jump($("timeline").value); });
$("jump").addEventListener("submit", (event) => { event.preventDefault(); jump($("now").value); $("now").blur(); });
$("help-open").addEventListener("click", () => $("help").showModal());
$("theme").addEventListener("click", switchTheme);

function switchTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("bamdp-theme", dark ? "light" : "dark");
  repaint();
}
if (localStorage.getItem("bamdp-theme")) document.documentElement.dataset.theme = localStorage.getItem("bamdp-theme");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

function compare() {
  const [first, second] = page.choice.planners;
  begin({ ...page.choice, start: 0, planners: second ? [first] : [first, "thompson"] }, page.at);
}

const KEYS = {
  " ": toggle,
  ArrowRight: () => command("step"),
  ArrowLeft: () => command("back"),
  Home: () => command("goto", 0),
  "[": () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf($("speed").value) - 1)]),
  "]": () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf($("speed").value) + 1)]),
  1: () => setOverlay("visits"),
  2: () => setOverlay("entropy"),
  3: () => setOverlay("value"),
  4: () => setOverlay("truth"),
  a: () => setArrows(!page.arrows),
  g: () => { $("now").focus(); $("now").select(); },
  p: () => setup.open(),
  c: compare,
  d: switchTheme,
  "?": () => $("help").showModal(),
  Escape: () => { page.lanes.forEach((lane) => lane.why.close()); tip(null); },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=range]):not([type=checkbox]), select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  if (event.key === " " && event.target.closest("button")) return;
  event.preventDefault();
  if (event.repeat && !event.key.startsWith("Arrow")) return;
  KEYS[event.key]();
});
addEventListener("hashchange", () => {
  const { choice, t } = fromHash(location.hash, page.choice);
  if (toHash(choice) !== toHash(page.choice)) begin(choice, t);
  else if (page.frame && t !== null && t !== page.frame.frames[0].t) jump(String(t));
});

// --- beginning ---------------------------------------------------------------------------------------------------

function readKept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

let setup;
try {
  const known = await api.catalogue();
  setup = new Setup(known, (choice, sameRun) => begin({ ...choice, start: 0 }, sameRun ? page.at : null));
  const { choice, t } = fromHash(location.hash, known.first);
  page.choice = choice;
  setup.show(choice);
  const kept = readKept();
  if (kept && kept.of === toHash(choice)) {
    page.at = kept.address === location.hash ? kept.t : (t ?? 0); // the address is written a moment after the step
    page.jumpTo = page.at;
    follow(kept.id); // a reload: the session is still there, or listening fails and it begins again
  } else await begin(choice, t); // the address wins
} catch (error) {
  notice(error.message, "failed");
}
document.documentElement.classList.add("ready");
