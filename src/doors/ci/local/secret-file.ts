/** A file of secrets: `NAME=value`, in quotes when it has blanks at its ends; or `NAME<<END`, lines, `END`. */
import { Fault } from "#base/fault.ts";

export function secretsIn(text: string, path: string): ReadonlyMap<string, string> {
  const secrets = new Map<string, string>();
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
    const heredoc = /^\s*([A-Za-z_]\w*)<<(\S+)$/.exec(line);
    const plain = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)$/s.exec(line);
    if (heredoc) {
      const end = lines.indexOf(heredoc[2] ?? "", at + 1);
      if (end < 0) throw wrong(path, at, `${heredoc[2] ?? ""} is missing at the end of the value`);
      secrets.set(heredoc[1] ?? "", lines.slice(at + 1, end).join("\n"));
      at = end;
    } else if (plain) secrets.set(plain[1] ?? "", unquoted((plain[2] ?? "").trim()));
    else throw wrong(path, at, "write NAME=value");
  }
  return secrets;
}

function unquoted(value: string): string {
  const double = /^"(.*)"$/s.exec(value)?.[1];
  if (double !== undefined)
    return double.replaceAll(/\\([nrt"\\])/g, (_all, letter: string) => escapes[letter] ?? letter);
  return /^'(.*)'$/s.exec(value)?.[1] ?? value;
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

const wrong = (path: string, index: number, why: string): Fault =>
  new Fault("invalid", "read secrets", { file: path, line: index + 1, why });
