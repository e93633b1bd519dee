// The small dark box beside the pointer.

import { make } from "./dom.js";

export function tip(event, title, lines) {
  const box = document.getElementById("tip");
  box.hidden = !event;
  if (!event) return;
  box.replaceChildren(make("strong", "", title), ...lines.map((line) => make("div", "", line)));
  const from = event.target.getBoundingClientRect();
  const x = event.clientX || from.right, y = event.clientY || from.top;
  const width = box.offsetWidth, height = box.offsetHeight;
  box.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${y + 16 + height > innerHeight - 8 ? Math.max(8, y - height - 12) : y + 16}px`;
}
