// How far what was asked of a device has come, until all of it has ended.

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
const UNSAID = "Submitted";
const PAUSE = 1500;

const places = new Map(
  Array.from(document.querySelectorAll("[data-actuation]"), (each) => [each.dataset.actuation, each]),
);

function show(place, state, status) {
  const badge = place.querySelector("[data-state]");
  badge.textContent = state;
  badge.className = `badge ${LOOKS[state] ?? ""}`;
  place.querySelector("[data-means]").textContent = MEANS[state] ?? "";
  if (status === undefined) return;
  place.querySelector("[data-said]").textContent = status === UNSAID || status === state ? "" : status;
}

function goesOn() {
  return [...places.values()].some((each) => !FINAL.has(each.querySelector("[data-state]").textContent));
}

async function follow() {
  const [{ dataset }] = places.values();
  const path = `${encodeURIComponent(dataset.object)}/actuations/newest?limit=${places.size}`;
  while (goesOn()) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    if (document.hidden) continue;
    const answer = await fetch(`${document.body.dataset.root}/api/${path}`).catch(() => null);
    if (answer !== null && answer.status === 401) return;
    if (answer === null || !answer.ok) continue;
    for (const { id, state, status } of (await answer.json()).data) {
      const place = places.get(id);
      if (place !== undefined) show(place, state, status);
    }
  }
}

for (const each of places.values()) show(each, each.querySelector("[data-state]").textContent);
follow();
