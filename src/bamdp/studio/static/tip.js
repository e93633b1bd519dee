// The small dark box beside the pointer.

export function tip(event, title, lines) {
  const box = document.getElementById("tip");
  box.hidden = !event;
  if (!event) return;
  const head = Object.assign(document.createElement("strong"), { textContent: title });
  box.replaceChildren(head, ...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  const from = event.target.getBoundingClientRect();
  const x = event.clientX || from.right, y = event.clientY || from.top;
  const width = box.offsetWidth, height = box.offsetHeight;
  box.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${y + 16 + height > innerHeight - 8 ? Math.max(8, y - height - 12) : y + 16}px`;
}
