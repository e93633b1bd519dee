// A click on a column's head sorts by it; rows below a rule (the optimum, random play) stay where they are.
for (const table of document.querySelectorAll("figure.table table")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const fixed = rows.findIndex((row) => row.classList.contains("rule"));
  const free = fixed < 0 ? rows : rows.slice(0, fixed), rest = fixed < 0 ? [] : rows.slice(fixed);
  if (free.length < 2) continue;
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  };
  const compare = (a, b, column) => {
    const x = key(a, column), y = key(b, column);
    if (x !== null && y !== null) return x - y;
    if (x !== null || y !== null) return null;
    return a.cells[column].textContent.localeCompare(b.cells[column].textContent);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numbers = free.some((row) => key(row, column) !== null);
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numbers;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...free].sort((a, b) => {
        const order = compare(a, b, column);
        if (order === null) return key(a, column) === null ? 1 : -1; // what has no number stands last
        return down ? -order : order;
      });
      body.append(...sorted, ...rest);
    });
  });
}
