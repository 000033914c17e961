// The editor: names are put in where the cursor is, and faults lead to their place in the text.

const text = document.getElementById("text");
const name = document.getElementById("name");
const insert = document.getElementById("insert");

/** Put the name into the text, in the place of what is selected there, and go on writing. */
function putIn() {
  if (!name.value) return;
  text.setRangeText(name.value, text.selectionStart, text.selectionEnd, "end");
  name.value = "";
  text.focus();
}

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

if (insert !== null) {
  insert.hidden = false;
  insert.addEventListener("click", putIn);
  name.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // else it would save
    putIn();
  });
}
for (const button of document.querySelectorAll("button[data-goes]")) {
  button.hidden = false;
  button.addEventListener("click", () => goTo(Number(button.dataset.goes)));
}
const told = document.querySelector("#trial, #wrong");
if (told) told.scrollIntoView({ block: "nearest" });
