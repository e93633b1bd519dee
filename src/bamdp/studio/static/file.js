// The page that `bamdp explain` writes: the same world and reasons, with all details included.

const { world: fileWorld, frame: fileFrame, why: fileWhy, details: fileDetails } = JSON.parse(document.getElementById("data").textContent);
const fileView = new World(document.getElementById("world"), fileWorld);
let fileOverlay = tellingOverlay(fileWorld, fileFrame);

function paintFile(overlay = fileOverlay) {
  fileOverlay = overlay;
  fileView.paint(fileFrame, overlay, true);
  markOverlay(overlay);
  const [low, high] = OVERLAYS[overlay].legend(...fileView.range(overlay, fileFrame));
  const parts = [["", low], [`ramp ${OVERLAYS[overlay].ramp}`, ""], ["", high]];
  document.getElementById("legend").replaceChildren(
    ...parts.map(([className, text]) => make("span", className, text)),
  );
}

document.getElementById("overlays").append(overlayButtons(paintFile, Boolean(fileWorld.truth)));
paintFile();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paintFile());

const fileReasons = new Why(document.getElementById("why"), fileWorld, {
  detail: async (node) => fileDetails[node] ?? { error: "this node is not in the file" },
  show: (brief) => fileView.ways(brief?.ways ?? [], brief?.action ?? 0),
  tip,
});
fileReasons.render(fileWhy);
fileView.head(fileWhy.action);
document.getElementById("world").addEventListener("pointermove", (event) => fileView.tell(event, tip));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") fileReasons.close();
});
