/** The key of a cell within its stage: its number, behind those of the cells that call it, and its name. Pure. */

export const cellKey = (numbers: readonly number[], name: string): string => `${numbers.join(".")} ${name}`;

export function cellNumbers(key: string): number[] {
  const [numbers = ""] = key.split(" ", 1);
  return numbers.split(".").map(Number);
}

export const cellName = (key: string): string => key.slice(key.indexOf(" ") + 1);
