/** As much XML as S3's answers need: the text of simple elements, by name. */
const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const plain = (text: string): string =>
  text.replaceAll(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal: string, hex: string, name: string) => {
    if (name) return entities[name] ?? whole;
    return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16));
  });

export const tagsOf = (xml: string, name: string): readonly string[] =>
  Array.from(xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g")), ([, text = ""]) => plain(text));

export const tagOf = (xml: string, name: string): string | undefined => tagsOf(xml, name)[0];
