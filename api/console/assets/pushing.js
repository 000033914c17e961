// Pushes a program: a folder is packed here, an archive is sent as it is; the API checks both.

import { MANIFEST, MOST, NotAnOperator, manifestIn, ofFolder, packed } from "./packing.js";

const place = document.getElementById("push");
const folder = document.getElementById("folder");
const archive = document.getElementById("archive");
const button = document.getElementById("send");
const state = document.getElementById("push-state");
const wrong = document.getElementById("push-wrong");
const { root } = document.body.dataset;
const NAMED = /\(line ([0-9]+), column ([0-9]+)\)/;
let chosen = null;

function tell(text) {
  state.textContent = text;
}

/** Say what is wrong; of the manifest with its line, where that is known. */
function refuse(message, manifest = "") {
  tell("");
  const said = document.createElement("p");
  said.textContent = message;
  wrong.replaceChildren(said);
  const named = message.startsWith(MANIFEST) ? NAMED.exec(message) : null;
  const line = named === null ? undefined : manifest.split("\n")[Number(named[1]) - 1];
  if (line !== undefined) {
    const shown = document.createElement("pre");
    shown.tabIndex = 0;
    shown.setAttribute("role", "region");
    shown.setAttribute("aria-label", `Line ${named[1]} of ${MANIFEST}`);
    shown.textContent = `${line}\n${" ".repeat(Number(named[2]) - 1)}^`;
    wrong.append(shown);
  }
  wrong.hidden = false;
}

function size(bytes) {
  return bytes < 1000 ? `${bytes} bytes` : bytes < 1e6 ? `${(bytes / 1e3).toPrecision(3)} kB` : `${(bytes / 1e6).toPrecision(3)} MB`;
}

/** What a manifest says of itself, if it can be read: what is wrong with it the API tells better. */
function said(manifest) {
  try {
    const found = JSON.parse(manifest);
    return { name: String(found.name ?? ""), command: String(found.command?.[0] ?? "") };
  } catch {
    return { name: "", command: "" };
  }
}

async function choose(read) {
  chosen = null;
  button.disabled = true;
  wrong.hidden = true;
  try {
    chosen = await read();
    button.disabled = false;
    tell(`${chosen.name}: ${chosen.about}, ready to be pushed.`);
  } catch (error) {
    refuse(error instanceof NotAnOperator ? error.message : "This file cannot be read: it is no tar that is compressed with gzip.");
  }
}

async function readFolder() {
  const files = ofFolder(folder.files);
  const manifest = await files.get(MANIFEST).text();
  const { name, command } = said(manifest);
  const called = folder.files[0].webkitRelativePath.split("/")[0];
  const bytes = [...files.values()].reduce((sum, each) => sum + each.size, 0);
  const about = `${files.size} ${files.size === 1 ? "file" : "files"}, ${size(bytes)}`;
  return { name: name || called, about, manifest, content: () => packed(files, command) };
}

async function readArchive() {
  const [file] = archive.files;
  if (file.size > MOST.packed) throw new NotAnOperator(`${file.size} bytes compressed, ${MOST.packed} at most`);
  const manifest = await manifestIn(file);
  if (manifest === null) throw new NotAnOperator(`${MANIFEST}: there is none at the top of this archive`);
  const called = file.name.replace(/\.(tar\.gz|tgz)$/, "");
  return { name: said(manifest).name || called, about: size(file.size), manifest, content: async () => file };
}

async function push() {
  const { name, manifest, content } = chosen;
  button.disabled = true;
  wrong.hidden = true;
  tell("It is packed…");
  const body = await content().catch(() => null);
  if (body === null) {
    folder.value = ""; // else to choose the same once more would be no change
    refuse("A file has changed or cannot be read any more. Choose the folder again.");
    return;
  }
  if (body.size > MOST.packed) {
    refuse(`${body.size} bytes compressed, ${MOST.packed} at most`);
    return;
  }
  tell(`${size(body.size)} are on their way…`);
  const headers = { "Content-Type": "application/gzip", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content };
  const path = `${root}/api/operators/${encodeURIComponent(name)}`;
  const answer = await fetch(path, { method: "PUT", body, headers }).catch(() => null);
  button.disabled = false;
  const told = answer === null ? {} : await answer.json().catch(() => ({}));
  if (answer === null) refuse("The platform does not answer just now. Try again in a moment.");
  else if (!answer.ok) refuse(told.detail || told.message || `The API has answered ${answer.status}.`, manifest);
  else location.assign(`${root}/operators/${encodeURIComponent(name)}?done=${answer.status === 201 ? "pushed" : "same"}`);
}

if (place !== null) {
  place.hidden = false;
  folder.addEventListener("change", () => { if (folder.files.length) { archive.value = ""; choose(readFolder); } });
  archive.addEventListener("change", () => { if (archive.files.length) { folder.value = ""; choose(readArchive); } });
  button.addEventListener("click", push);
}
