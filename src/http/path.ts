/** Paths with holes in them: "/v1/jobs/{job}". Pure. */

export type PathPattern = {
  readonly segments: readonly Segment[];
  /** The names of its holes, in order. */
  readonly names: readonly string[];
};

export type Segment =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "hole"; readonly name: string }
  /** Takes everything that is left, slashes included; the last segment only. */
  | { readonly kind: "rest"; readonly name: string };

const hole = /^\{([a-z][A-Za-z0-9]*)(\+?)\}$/;

export function parsePath(path: string): PathPattern {
  if (!path.startsWith("/")) throw new Error(`${path}: a path starts with a slash`);
  const parts = path.slice(1).split("/");
  const segments = parts.map((part, at): Segment => {
    const match = hole.exec(part);
    if (!match) {
      if (!/^[A-Za-z0-9._:-]*$/.test(part)) throw new Error(`${path}: cannot read the part ${part}`);
      return { kind: "text", text: part };
    }
    const [, name = "", plus] = match;
    if (plus === "+" && at < parts.length - 1) throw new Error(`${path}: only the last part can take the rest`);
    return plus === "+" ? { kind: "rest", name } : { kind: "hole", name };
  });
  const names = segments.flatMap((segment) => (segment.kind === "text" ? [] : [segment.name]));
  if (new Set(names).size < names.length) throw new Error(`${path}: a name occurs twice`);
  return { segments, names };
}

/** The parts of a request's path, decoded; undefined when an escape in it is malformed. */
export function splitPath(pathname: string): readonly string[] | undefined {
  try {
    return pathname.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** The path with its holes filled in. The client's counterpart of matching. */
export function fillPath({ segments }: PathPattern, values: Readonly<Record<string, unknown>>): string {
  const parts = segments.map((segment) => {
    if (segment.kind === "text") return segment.text;
    const value = values[segment.name];
    if (typeof value !== "string" && typeof value !== "number") throw new Error(`no value for {${segment.name}}`);
    const text = String(value);
    if (segment.kind === "rest") return text.split("/").map(encodeURIComponent).join("/");
    if (text === "" || text === "." || text === "..") throw new Error(`{${segment.name}} cannot be "${text}"`);
    return encodeURIComponent(text);
  });
  return `/${parts.join("/")}`;
}
