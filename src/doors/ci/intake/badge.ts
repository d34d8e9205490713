/** A picture of how the last run of a workflow ended. Pure. */

const colours: Readonly<Record<string, string>> = {
  passing: "#2da44e",
  failing: "#cf222e",
  cancelled: "#6e7781",
  running: "#bf8700",
};

const words: Readonly<Record<string, string>> = { success: "passing", failure: "failing", cancelled: "cancelled" };

/** `state` is a conclusion or a status; undefined: there was no run. */
export function badge(workflow: string, state: string | undefined): string {
  const word = state === undefined ? "no status" : (words[state] ?? "running");
  const [left, right] = [widthOf(workflow), widthOf(word)];
  const text = (x: number, label: string): string =>
    `<text x="${x}" y="14" fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" ` +
    `text-anchor="middle">${escaped(label)}</text>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" ` +
    `aria-label="${escaped(`${workflow}: ${word}`)}"><title>${escaped(`${workflow}: ${word}`)}</title>` +
    `<rect width="${left}" height="20" rx="3" fill="#24292f"/>` +
    `<rect x="${left}" width="${right}" height="20" rx="3" fill="${colours[word] ?? "#6e7781"}"/>` +
    `${text(left / 2, workflow)}${text(left + right / 2, word)}</svg>`
  );
}

const widthOf = (label: string): number => label.length * 7 + 12;

const escaped = (text: string): string =>
  text
    .slice(0, 100)
    .replaceAll(/[\p{Cc}]/gu, " ")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
