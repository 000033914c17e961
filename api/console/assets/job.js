// Follows a job until it ends; the page is loaded anew then, as it says more.

const PAUSE = 1000;
const OPEN = new Set(["waiting", "running", "swapping"]);

const page = document.querySelector("[data-job]");
const bar = page.querySelector("progress");

function tell(name, value) {
  const place = page.querySelector(`[data-${name}]`);
  if (place !== null && value !== null && value !== undefined) {
    place.textContent = value.toLocaleString("en");
  }
}

function show(told) {
  for (const name of ["state", "done", "total", "rate", "rest", "failed"]) tell(name, told[name]);
  if (told.total) bar.value = Math.min(1, (told.done + told.failed) / told.total);
}

async function follow() {
  const path = `${document.body.dataset.root}/api/jobs/${encodeURIComponent(page.dataset.job)}`;
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    const answer = await fetch(path).catch(() => null);
    if (answer !== null && (answer.status === 404 || answer.status === 401)) break;
    if (answer === null || !answer.ok) continue;
    const told = await answer.json();
    if (!OPEN.has(told.state)) break;
    show(told);
  }
  window.location.reload();
}

follow();
