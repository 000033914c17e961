// Follows how a workflow stands: what waits, who works, and what was done.

const PAUSE = 2000;

const page = document.querySelector("[data-workflow]");
const { workflow, since } = page.dataset;

function write(place, value) {
  const text = typeof value === "number" ? Number(value.toPrecision(3)).toLocaleString("en") : String(value);
  if (place.textContent !== text) place.textContent = text;
}

function show(told) {
  for (const each of page.querySelectorAll("[data-whole]")) write(each, told[each.dataset.whole]);
  for (const each of page.querySelectorAll("[data-cell]")) {
    const step = told.steps[each.dataset.step];
    if (step !== undefined) {
      const { cell } = each.dataset;
      each.textContent = (cell === "done" ? step.done.atoms : step[cell]).toLocaleString("en");
    }
  }
  for (const each of page.querySelectorAll("[data-box]")) {
    each.classList.toggle("wrong", (told.steps[each.dataset.box]?.deadLetters ?? 0) > 0);
  }
}

/** Take what came out, and what has died, from the page as it is now. */
async function renew() {
  const answer = await fetch(location.href).catch(() => null);
  if (answer === null || !answer.ok) return;
  const now = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-part]")) {
    const found = now.querySelector(`[data-part="${part.dataset.part}"]`);
    if (found !== null && !part.contains(document.activeElement)) part.replaceChildren(...found.childNodes);
  }
}

async function follow() {
  let before = "";
  const path = `${document.body.dataset.root}/api/workflows/${encodeURIComponent(workflow)}/status?from=${since}`;
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    if (document.hidden) continue;
    const answer = await fetch(path).catch(() => null);
    if (answer !== null && (answer.status === 401 || answer.status === 404)) break;
    if (answer === null || !answer.ok) continue;
    const told = await answer.json();
    show(told);
    const counts = JSON.stringify([told.waiting, told.deadLetters, told.steps.sink.done.atoms]);
    if (counts !== before) await renew();
    before = counts;
  }
  location.reload();
}

follow();
