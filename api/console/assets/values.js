// Values of a page that follow what comes: data-object, data-stream and data-channel name them.

import { Live } from "./live.js";

/** A value for people, as the server writes it, too. */
export function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return String(Number.isInteger(value) ? value : Number(value.toPrecision(6)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

const page = document.querySelector("[data-watch]");
const has = new Set();
let isAway = false;

function tell() {
  const all = page.querySelectorAll("[data-channel]").length;
  const state = isAway ? "away" : has.size < all ? "waiting" : "done";
  for (const each of page.querySelectorAll("[data-while]")) each.hidden = each.dataset.while !== state;
}

if (page !== null) {
  const live = new Live((state) => { isAway = state === "away"; tell(); });
  for (const each of page.querySelectorAll("[data-channel]")) {
    const { object, stream, channel } = each.dataset;
    live.watch(object, stream, 0, (update) => {
      const found = update.channels[channel];
      if (found === undefined) return;
      each.textContent = shown(found["current-value"]);
      has.add(each);
      tell();
    });
  }
}
