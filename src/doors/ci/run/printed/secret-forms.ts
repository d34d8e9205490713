/** The forms in which a secret may turn up in a log (CI-50, CI-51). */

/** Shorter texts stand in every log: masking them would hide the log and tell the secret. */
export const maskLengthMin = 3;

/** All texts to look for when this value is secret. */
export function formsOf(secret: string): readonly string[] {
  const values = [secret, ...linesOf(secret), ...leavesOf(secret)];
  const forms = new Set(values.flatMap((value) => encodingsOf(value)));
  return [...forms].filter((form) => form.length >= maskLengthMin && !form.includes("\n"));
}

function linesOf(secret: string): readonly string[] {
  if (!/[\r\n]/.test(secret)) return [];
  return secret
    .split(/\r\n|\r|\n/)
    .map((line) => line.trim())
    .filter((line) => line.length >= maskLengthMin);
}

/** The leaves of a JSON secret, so that `{` is no secret and a password inside is. */
function leavesOf(secret: string): readonly string[] {
  if (!/^\s*[[{]/.test(secret)) return [];
  try {
    const leaves: string[] = [];
    JSON.parse(secret, (_key, value: unknown) => {
      if (typeof value === "string" || typeof value === "number") leaves.push(String(value));
      return value;
    });
    return leaves;
  } catch {
    return [];
  }
}

function encodingsOf(value: string): readonly string[] {
  const trimmed = value.trim();
  return [
    value,
    trimmed,
    value.replaceAll('"', '\\"'),
    value.replaceAll("'", "''"),
    JSON.stringify(value).slice(1, -1),
    encoded(value),
    xml(value),
    withoutQuotes(trimmed),
    ...powerShell(value),
    ...base64(value),
  ];
}

function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value; // half of a surrogate pair
  }
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

const xml = (value: string): string => value.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);

/** A value in quotes is a secret without them as well, when enough is left. */
function withoutQuotes(value: string): string {
  const inner = /^(["'])(.*)\1$/s.exec(value)?.[2];
  return inner !== undefined && value.length > 8 ? inner : value;
}

/** PowerShell marks an error at an `&`, and cuts the text there. */
function powerShell(value: string): readonly string[] {
  if (!value.includes("&")) return [];
  const at = value.indexOf("&");
  return [value.slice(0, at), value.slice(at + 1)].filter((part) => part.length >= 6);
}

/**
 * Inside a longer text that was encoded, a value starts at one of three places of a group of four. The groups that hold
 * nothing else are looked for; with the ends when the value stands alone.
 */
function base64(value: string): readonly string[] {
  const bytes = Buffer.from(value, "utf8");
  const forms = [0, 1, 2].flatMap((shift) => {
    const part = bytes.subarray(shift);
    const whole = part.subarray(0, part.length - (part.length % 3)).toString("base64");
    return [
      part.toString("base64"),
      part.toString("base64").replaceAll("=", ""),
      ...(whole.length >= 8 ? [whole] : []),
    ];
  });
  return [...forms, ...forms.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))];
}
