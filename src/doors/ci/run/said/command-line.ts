/** Commands that a step prints: `::name key=value::data`, and the older `##[name key=value]data` (CI-45 to CI-47). */

export type CommandLine = {
  readonly name: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly data: string;
};

export const commandNames: ReadonlySet<string> = new Set([
  "debug",
  "notice",
  "warning",
  "error",
  "group",
  "endgroup",
  "add-mask",
  "add-matcher",
  "remove-matcher",
  "stop-commands",
  "echo",
  "set-output",
  "save-state",
  "set-env",
  "add-path",
]);

/** Undefined when the line is no command. */
export function commandIn(line: string): CommandLine | undefined {
  return modern(line) ?? legacy(line);
}

function modern(line: string): CommandLine | undefined {
  const match = /^\s*::([^\s:]+)(?:\s+(.*?))?::(.*)$/s.exec(line);
  if (!match) return undefined;
  const [, name = "", properties = "", data = ""] = match;
  if (!commandNames.has(name.toLowerCase())) return undefined;
  return {
    name: name.toLowerCase(),
    properties: propertiesIn(properties, ",", unescapeProperty),
    data: unescapeData(data),
  };
}

function legacy(line: string): CommandLine | undefined {
  const match = /##\[([^\s\]]+)(?:\s+([^\]]*))?\](.*)$/s.exec(line);
  if (!match) return undefined;
  const [, name = "", properties = "", data = ""] = match;
  if (!commandNames.has(name.toLowerCase())) return undefined;
  return {
    name: name.toLowerCase(),
    properties: propertiesIn(properties, ";", unescapeLegacy),
    data: unescapeLegacy(data),
  };
}

/** `::TOKEN::` or `##[TOKEN]` ends what `stop-commands` began. */
export function endsPause(line: string, token: string): boolean {
  const said = /^\s*::([^:\s]+)(?:\s.*?)?::/.exec(line)?.[1] ?? /##\[([^\]\s]+)(?:\s[^\]]*)?\]/.exec(line)?.[1];
  return said?.toLowerCase() === token.toLowerCase();
}

/** A token that would end the pause at once, or that is easy to guess. */
export function isTokenRefused(token: string): boolean {
  return token === "" || commandNames.has(token.toLowerCase()) || token.toLowerCase() === "pause-logging";
}

function propertiesIn(text: string, separator: string, unescape: (text: string) => string): Record<string, string> {
  const properties: Record<string, string> = {};
  for (const part of text.split(separator)) {
    const equals = part.indexOf("=");
    if (equals <= 0) continue;
    const value = part.slice(equals + 1).trim();
    if (value !== "") properties[part.slice(0, equals).trim().toLowerCase()] = unescape(value);
  }
  return properties;
}

const unescapeData = (text: string): string =>
  text.replaceAll("%0D", "\r").replaceAll("%0A", "\n").replaceAll("%25", "%");

const unescapeProperty = (text: string): string =>
  text
    .replaceAll("%0D", "\r")
    .replaceAll("%0A", "\n")
    .replaceAll("%3A", ":")
    .replaceAll("%2C", ",")
    .replaceAll("%25", "%");

const unescapeLegacy = (text: string): string =>
  text
    .replaceAll("%3B", ";")
    .replaceAll("%0D", "\r")
    .replaceAll("%0A", "\n")
    .replaceAll("%5D", "]")
    .replaceAll("%25", "%");
