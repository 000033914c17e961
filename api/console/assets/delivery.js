// Follows a test of a receiver until it is answered, or lost.

const PAUSE = 700;
const OVER = new Set(["answered", "lost"]);

const page = document.querySelector("[data-test]");
const root = document.body.dataset.root;

async function follow() {
  const path = `${root}/api/subscriptions/${encodeURIComponent(page.dataset.test)}/test`;
  let { state } = page.dataset;
  while (!OVER.has(state)) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    const answer = await fetch(path).catch(() => null);
    if (answer === null || !answer.ok) continue;
    const told = await answer.json();
    state = told.state;
    const badge = page.querySelector("[data-badge]");
    badge.textContent = state;
    if (!OVER.has(state)) continue;
    const isGood = told.status >= 200 && told.status < 300;
    badge.className = `badge ${isGood ? "good" : "bad"}`;
    if (told.status !== undefined) {
      page.querySelector("[data-answer]").textContent =
        `${told.status} ${told.reason}, ${told.milliseconds} ms`;
    }
  }
}

follow();
