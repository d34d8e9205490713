/** The answer to PROPFIND (RFC 4918, section 13): a few properties of files and folders as XML. */
export type Resource = {
  readonly href: string;
  /** Left out for a folder. */
  readonly file?: { readonly sizeBytes: number; readonly atMs: number; readonly etag: string };
};

export function multistatus(resources: readonly Resource[]): Response {
  const body = `<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">${resources
    .map(described)
    .join("")}</D:multistatus>\n`;
  return new Response(body, { status: 207, headers: { "content-type": 'application/xml; charset="utf-8"' } });
}

function described({ href, file }: Resource): string {
  const properties = file
    ? `<D:resourcetype/><D:getcontentlength>${file.sizeBytes}</D:getcontentlength>` +
      `<D:getlastmodified>${new Date(file.atMs).toUTCString()}</D:getlastmodified><D:getetag>${text(file.etag)}</D:getetag>`
    : `<D:resourcetype><D:collection/></D:resourcetype><D:getlastmodified>${epoch}</D:getlastmodified>`;
  return (
    `<D:response><D:href>${text(href)}</D:href><D:propstat><D:prop>${properties}</D:prop>` +
    `<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`
  );
}

// Folders are not stored, so they have no time of their own; some clients require one.
const epoch = new Date(0).toUTCString();

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const text = (value: string): string => value.replace(/[&<>"]/g, (character) => escapes[character] ?? "");
