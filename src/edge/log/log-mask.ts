/** The last line of defence: text that looks like a secret does not reach a log, however it got there. */

const secrets: readonly (readonly [looks: RegExp, shown: string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, "*** (a private key)"],
  [/\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g, "*** (a JWT)"],
  [/\bmillrace_[\w-]{20,}/g, "*** (a token)"],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, "$1 ***"],
  [/(:\/\/)[^/\s@:]*:[^/\s@]*@/g, "$1***@"],
  [/\b(password|passwd|secret|token|api[_-]?key)(=|["']\s*:\s*["']?)[^\s"',&;]+/gi, "$1$2***"],
];

export function withoutSecrets(text: string): string {
  let shown = text;
  for (const [looks, instead] of secrets) shown = shown.replace(looks, instead);
  return shown;
}
