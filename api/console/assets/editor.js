// The editor: names are completed and put in, and what is wrong is shown at its place in the text.

import { Checking } from "./checking.js";
import { Completing, namesOf, putIn } from "./completing.js";
import { Margin } from "./marking.js";

const text = document.getElementById("text");
const form = document.getElementById("editor");
const name = document.getElementById("name");
const insert = document.getElementById("insert");
const names = document.getElementById("names");
const checked = document.getElementById("checked");
const tree = document.getElementById("tree");
let margin = null;
let completing = null;

/** Select what stands at a character of the text, and show it. Places count characters, not UTF-16. */
function goTo(place) {
  const before = Array.from(text.value).slice(0, place).join("");
  const line = text.value.indexOf("\n", before.length);
  const lines = before.split("\n").length;
  text.focus();
  text.setSelectionRange(before.length, line < 0 ? text.value.length : line);
  const height = parseFloat(getComputedStyle(text).lineHeight) || 20;
  text.scrollTop = Math.max(0, (lines - 4) * height);
}

function leads(within) {
  for (const button of within.querySelectorAll("button[data-goes]")) {
    button.hidden = false;
    button.addEventListener("click", () => goTo(Number(button.dataset.goes)));
  }
}

/** Put the name of the field into the text, in the place of what is selected there, and go on writing. */
function insertName() {
  if (!name.value) return;
  putIn(text, 0, name.value);
  completing?.close();
  name.value = "";
}

/** Show what the server says of the text as it is now. */
function show(said) {
  const faults = Array.from(said.querySelectorAll("[data-line]"), ({ dataset }) => (
    { line: Number(dataset.line), column: Number(dataset.column) }
  ));
  margin.mark(faults);
  text.setAttribute("aria-invalid", String(faults.length > 0));
  const list = said.querySelector("datalist");
  if (list !== null) {
    completing?.know(namesOf(list));
    names.replaceChildren(...list.childNodes);
    list.remove();
  }
  const drawn = said.querySelector("[data-tree]");
  if (drawn !== null) {
    tree.lastElementChild.replaceChildren(...drawn.childNodes);
    tree.hidden = false;
    drawn.remove();
  }
  const before = document.getElementById("wrong");
  if (before !== null && text.value === text.defaultValue) return; // it stands there already
  before?.closest("section").remove();
  text.setAttribute("aria-describedby", "checked");
  leads(said);
  checked.replaceChildren(...said.childNodes);
  checked.hidden = false;
}

if (insert !== null) {
  insert.hidden = false;
  insert.addEventListener("click", insertName);
  name.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // else it would save
    insertName();
  });
}
leads(document);
if (text !== null) {
  margin = new Margin(text);
  text.addEventListener("input", () => margin.number());
  if (names !== null) completing = new Completing(text, namesOf(names));
  if (form.dataset.check) {
    const checking = new Checking(form, show);
    text.addEventListener("input", () => checking.changed());
  }
}
const told = document.querySelector("#trial, #wrong");
if (told) told.scrollIntoView({ block: "nearest" });
