/** Findings as SARIF 2.1.0, which code hosts show beside the lines. */
import { type Finding, type Rule, rules } from "./finding.ts";

export function sarifOf(findings: readonly Finding[], version: string): unknown {
  const names = Object.keys(rules) as Rule[];
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "millrace ci lint",
            version,
            rules: names.map((id) => ({ id, shortDescription: { text: rules[id] } })),
          },
        },
        results: findings.map(({ rule, level, path, at, message }) => ({
          ruleId: rule,
          ruleIndex: names.indexOf(rule),
          level,
          message: { text: message },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: path },
                ...(at && { region: { startLine: at.line, startColumn: at.column } }),
              },
            },
          ],
        })),
      },
    ],
  };
}
