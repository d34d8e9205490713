/** How a script is run: the shells, their flags, and what the script file is called (CI-39, CI-40). */

export type ShellCommand = {
  readonly program: string;
  readonly args: readonly string[];
  readonly extension: string;
  /** What goes around the author's text. */
  readonly prepare: (script: string) => string;
};

export class ShellFault extends Error {}

const asIs = (script: string): string => script;

const powerShellScript = (script: string): string =>
  `$ErrorActionPreference = 'stop'\n${script}\nif ((Test-Path -LiteralPath variable:\\LASTEXITCODE)) { exit $LASTEXITCODE }`;

/** `{0}` stands for the script file. */
const known: Readonly<
  Record<string, { readonly args: string; readonly extension: string; readonly prepare: (script: string) => string }>
> = {
  bash: { args: "--noprofile --norc -e -o pipefail {0}", extension: ".sh", prepare: asIs },
  sh: { args: "-e {0}", extension: ".sh", prepare: asIs },
  python: { args: "{0}", extension: ".py", prepare: asIs },
  pwsh: { args: "-command \". '{0}'\"", extension: ".ps1", prepare: powerShellScript },
  powershell: { args: "-command \". '{0}'\"", extension: ".ps1", prepare: powerShellScript },
  cmd: { args: '/D /E:ON /V:OFF /S /C "CALL "{0}""', extension: ".cmd", prepare: (script) => `@echo off\n${script}` },
};

/** No shell was named: bash if there is one, without the strictness of `shell: bash`. */
export function defaultShell(script: string, hasBash: boolean): ShellCommand {
  return { program: hasBash ? "bash" : "sh", args: ["-e", script], extension: ".sh", prepare: asIs };
}

export function shellCommand(shell: string, script: string): ShellCommand {
  const [program = "", ...rest] = words(shell);
  const shape = known[program.toLowerCase()];
  if (rest.length === 0) {
    if (!shape)
      throw new ShellFault(
        `The shell '${shell}' is not known. Name one of ${Object.keys(known).join(", ")}, or a command with {0} for the script`,
      );
    return { program, args: filled(words(shape.args), script), extension: shape.extension, prepare: shape.prepare };
  }
  if (!shell.includes("{0}"))
    throw new ShellFault(`The shell '${shell}' has no {0}, which stands for the script: add it where the file belongs`);
  return { program, args: filled(rest, script), extension: shape?.extension ?? "", prepare: shape?.prepare ?? asIs };
}

const filled = (args: readonly string[], script: string): readonly string[] =>
  args.map((arg) => arg.replaceAll("{0}", script));

/** Words as a command line has them, double quotes around what has blanks. */
function words(line: string): readonly string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map((match) => match[1] ?? match[2] ?? "");
}
