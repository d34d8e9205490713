/** A workflow of many steps that call a server outside: with a tool, an action with a part afterwards, and effects. */

const effects = {
  /** The target knows keys. */
  keyed: (url: string, n: number) =>
    `millrace effect run keyed --idempotent -- sh -c 'curl -fsS -H "idempotency-key: $MILLRACE_EFFECT_KEY" ${url}/keyed/${n}'`,
  /** It can be asked. */
  probed: (url: string, n: number) =>
    `millrace effect run probed --probe 'curl -fsS ${url}/was/${n} || exit 1' -- curl -fsS ${url}/plain/${n}`,
  /** It can do neither: a person decides. */
  asked: (url: string, n: number) => `millrace effect run asked -- curl -fsS ${url}/plain/${n}`,
};

const kindOf = (n: number): keyof typeof effects | undefined => (["keyed", "probed", "asked"] as const)[n % 5];

export const effectsOf = (steps: number): Readonly<Record<keyof typeof effects, readonly number[]>> => {
  const of = (kind: keyof typeof effects) =>
    Array.from({ length: steps }, (_, n) => n).filter((n) => n > 0 && kindOf(n) === kind);
  return { keyed: of("keyed"), probed: of("probed"), asked: of("asked") };
};

export function workflowFiles(url: string, steps: number): Readonly<Record<string, string>> {
  const step = (n: number): string => {
    const kind = kindOf(n);
    const effect = kind ? `\n          ${effects[kind](url, n)}` : "";
    return `      - run: |\n          tell ${n}; cat made; echo ${n} >> made; sleep 0.1${effect}\n`;
  };
  const first = `      - run: |
          curl -fsS ${url}/step/0
          bin="$RUNNER_TOOL_CACHE/tell/bin"; mkdir -p "$bin"; echo "$bin" >> "$GITHUB_PATH"
          printf '#!/bin/sh\\nexec curl -fsS ${url}/step/$1\\n' > "$bin/tell"; chmod +x "$bin/tell"; touch made
`;
  const rest = Array.from({ length: steps - 1 }, (_, n) => step(n + 1)).join("");
  return {
    ".github/workflows/kills.yml": `
on: workflow_dispatch
jobs:
  long:
    runs-on: [self-hosted, far]
    x-millrace: { retry: { max: 10 } }
    steps:
      - uses: actions/checkout@v4
      - uses: ./.github/actions/tidy
${first}${rest}`,
    ".github/actions/tidy/action.yml": `
name: tidy
runs: { using: node20, main: main.mjs, post: post.mjs }
`,
    ".github/actions/tidy/main.mjs": `
import { appendFileSync } from "node:fs";
appendFileSync(process.env.GITHUB_STATE, "word=remembered\\n");
`,
    ".github/actions/tidy/post.mjs": `await fetch("${url}/post/" + process.env.STATE_word);`,
  };
}
