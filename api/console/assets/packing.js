// A folder of a browser as an archive: tar, compressed with gzip, as `servioticy operator push` makes it.

export const MOST = { files: 1000, bytes: 32 * 1024 * 1024, packed: 8 * 1024 * 1024, name: 200, depth: 16 };
export const MANIFEST = "operator.json";
const BLOCK = 512;
const utf8 = new TextEncoder();

/** What is wrong with files, in words for people. */
export class NotAnOperator extends Error {}

/** The files of a chosen folder, by their paths in it; those that are pushed by nobody are left out. */
export function ofFolder(list) {
  const found = new Map();
  let bytes = 0;
  for (const file of list) {
    const parts = file.webkitRelativePath.split("/").slice(1);
    if (parts.some((each) => each.startsWith(".") || each === "__pycache__")) continue;
    const name = parts.join("/");
    if (name.length > MOST.name || parts.length > MOST.depth) {
      throw new NotAnOperator(`${name.slice(0, 60)}…: ${MOST.name} characters and ${MOST.depth} folders at most`);
    }
    bytes += file.size;
    found.set(name, file);
  }
  if (found.size > MOST.files) throw new NotAnOperator(`${found.size} files, ${MOST.files} at most`);
  if (bytes > MOST.bytes) throw new NotAnOperator(`files of ${bytes} bytes in all, ${MOST.bytes} at most`);
  if (!found.has(MANIFEST)) throw new NotAnOperator(`${MANIFEST}: there is none in this folder`);
  return found;
}

function field(block, at, size, text) {
  block.set(utf8.encode(text).subarray(0, size), at);
}

function head(name, size, isProgram, kind = "0") {
  const block = new Uint8Array(BLOCK);
  const number = (count, digits) => `${count.toString(8).padStart(digits, "0")}\0`;
  field(block, 0, 100, name);
  field(block, 100, 8, number(isProgram ? 0o755 : 0o644, 7));
  field(block, 108, 8, number(0, 7));
  field(block, 116, 8, number(0, 7));
  field(block, 124, 12, number(size, 11));
  field(block, 136, 12, number(0, 11));
  field(block, 148, 8, "        ");
  field(block, 156, 1, kind);
  field(block, 257, 8, "ustar\x0000");
  field(block, 148, 8, `${number(block.reduce((sum, each) => sum + each, 0), 6)} `);
  return block;
}

function padded(content) {
  const rest = (BLOCK - content.length % BLOCK) % BLOCK;
  return rest === 0 ? [content] : [content, new Uint8Array(rest)];
}

/** Whether a file is one that is run: a browser does not tell its mode. */
function isRun(name, content, command) {
  const [first, second, third, fourth] = content;
  const isElf = first === 0x7f && second === 0x45 && third === 0x4c && fourth === 0x46;
  return isElf || (first === 0x23 && second === 0x21) || command === name || command === `./${name}`;
}

/** Return files as an archive, the same for the same files. */
export async function packed(files, command) {
  const parts = [];
  for (const [name, file] of [...files].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const content = new Uint8Array(await file.arrayBuffer());
    const long = utf8.encode(name);
    if (long.length > 100) parts.push(head("././@LongLink", long.length + 1, false, "L"), ...padded(Uint8Array.of(...long, 0)));
    parts.push(head(name, content.length, isRun(name, content, command)), ...padded(content));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  const stream = new Blob(parts).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(stream).blob();
}

/** The text of the manifest in an archive; null where there is none to be found. */
export async function manifestIn(archive) {
  const stream = archive.stream().pipeThrough(new DecompressionStream("gzip"));
  const reader = stream.getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    size += value.length;
    if (size > MOST.bytes) throw new NotAnOperator(`files of more than ${MOST.bytes} bytes in all`);
  }
  const content = new Uint8Array(await new Blob(chunks).arrayBuffer());
  const text = (begin, length) => new TextDecoder().decode(content.subarray(begin, begin + length)).replace(/\0.*$/s, "");
  for (let at = 0; at + BLOCK <= content.length;) {
    const name = text(at, 100).replace(/^\.\//, "");
    const length = parseInt(text(at + 124, 12).trim() || "0", 8);
    if (name === "" || !(length >= 0)) break;
    if (name === MANIFEST) return text(at + BLOCK, length);
    at += BLOCK + Math.ceil(length / BLOCK) * BLOCK;
  }
  return null;
}
