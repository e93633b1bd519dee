// The page that `bamdp explain` writes: the same world and the same reasons, with all details at hand.

const { world: fileWorld, frame: fileFrame, why: fileWhy, details: fileDetails } = JSON.parse(document.getElementById("data").textContent);
const fileView = new World(document.getElementById("world"), fileWorld);
const fileTip = document.getElementById("tip");

function showTip(event, title, lines) {
  fileTip.hidden = !event;
  if (!event) return;
  const head = Object.assign(document.createElement("strong"), { textContent: title });
  fileTip.replaceChildren(head, ...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  const from = event.target.getBoundingClientRect();
  const x = event.clientX || from.right, y = event.clientY || from.top;
  fileTip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - fileTip.offsetWidth - 8))}px`;
  fileTip.style.top = `${Math.max(8, Math.min(y + 16, innerHeight - fileTip.offsetHeight - 8))}px`;
}

function paintFile(overlay) {
  fileView.paint(fileFrame, overlay, true);
  for (const button of document.querySelectorAll("#overlays button")) {
    button.setAttribute("aria-checked", String(button.dataset.overlay === overlay));
  }
  const [low, high] = OVERLAYS[overlay].legend(...fileView.range(overlay, fileFrame));
  const ramp = OVERLAYS[overlay].ramp;
  document.getElementById("legend").replaceChildren(
    ...[["", low], [`ramp ${ramp}`, ""], ["", high]].map(([className, textContent]) => Object.assign(document.createElement("span"), { className, textContent })),
  );
}

const fileBar = Object.assign(document.createElement("div"), { className: "segments" });
fileBar.setAttribute("role", "radiogroup");
for (const [name, { label }] of Object.entries(OVERLAYS)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: label });
  button.dataset.overlay = name;
  button.setAttribute("role", "radio");
  button.addEventListener("click", () => paintFile(name));
  fileBar.append(button);
}
document.getElementById("overlays").append(fileBar);
paintFile("value");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paintFile("value"));

const fileReasons = new Why(document.getElementById("why"), fileWorld, {
  detail: async (node) => fileDetails[node] ?? { error: "this node is not in the file" },
  show: (brief) => fileView.ways(brief?.ways ?? [], brief?.action ?? 0),
  tip: showTip,
});
fileReasons.render(fileWhy);
fileView.head(fileWhy.action);
document.getElementById("world").addEventListener("pointermove", (event) => {
  const cell = event.target.closest("[data-place]");
  const about = cell && fileWorld.kind !== "arms" ? fileView.describe(Number(cell.dataset.place)) : null;
  if (about) showTip(event, about.title, about.lines);
  else showTip(null);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") fileReasons.close();
});
