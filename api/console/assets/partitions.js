// Follows how far each partition is behind, and how much of it is put off.

const PAUSE = 3000;
const KINDS = ["behind", "putOff"];

function show(partitions) {
  for (const kind of KINDS) {
    const whole = partitions.reduce((sum, each) => sum + each[kind], 0);
    document.querySelector(`[data-all="${kind}"]`).textContent = whole.toLocaleString("en");
  }
  const most = Math.max(1, ...partitions.map((each) => each.behind));
  for (const each of partitions) {
    for (const kind of KINDS) {
      const place = document.querySelector(`[data-of="${each.partition}"][data-cell="${kind}"]`);
      if (place === null) continue;
      place.textContent = each[kind].toLocaleString("en");
      if (kind === "behind") {
        place.parentElement.querySelector("rect").setAttribute("width", (100 * each.behind) / most);
      }
    }
  }
}

async function follow() {
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
    if (document.hidden) continue;
    const answer = await fetch(`${document.body.dataset.root}/api/platform`).catch(() => null);
    if (answer !== null && (answer.status === 401 || answer.status === 403)) break;
    if (answer !== null && answer.ok) show((await answer.json()).partitions);
  }
  location.reload();
}

follow();
