// How far what was asked of a device has come, until it has ended.

const MEANS = {
  queued: "It waits until the device connects.",
  sent: "It is on its way, and comes again unless it is taken.",
  delivered: "The device has taken it.",
  done: "The device has done it.",
  failed: "The device could not do it.",
  expired: "Its time was over before it was done.",
};
const LOOKS = { queued: "wait", sent: "wait", delivered: "", done: "good", failed: "bad", expired: "bad" };
const FINAL = new Set(["done", "failed", "expired"]);
const PAUSE = 1500;

function show(place, state) {
  const badge = place.querySelector("[data-state]");
  badge.textContent = state;
  badge.className = `badge ${LOOKS[state] ?? ""}`;
  place.querySelector("[data-means]").textContent = MEANS[state] ?? "";
}

async function follow(place) {
  const { actuation, object } = place.dataset;
  let state = place.querySelector("[data-state]").textContent;
  show(place, state);
  while (!FINAL.has(state)) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    if (document.hidden) continue;
    const answer = await fetch(`${document.body.dataset.root}/api/${object}/actuations/${actuation}`).catch(() => null);
    if (answer !== null && answer.status === 401) return;
    if (answer === null || !answer.ok) continue;
    const found = (await answer.json()).state;
    if (found !== state) show(place, found);
    state = found;
  }
}

for (const each of document.querySelectorAll("[data-actuation]")) follow(each);
