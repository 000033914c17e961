// Live rates of the graph's streams, and which of them went wrong last.

import { Live } from "./live.js";

const SECONDS = 10;
const STATUS_PAUSE = 15000;
const AT_ONCE = 4;
/** Streams inside of boxes that are looked at together. */
const A_ROUND = 200;
/** How a computation ends, the worst last: as classes of boxes, and in words. */
const KINDS = ["went", "nothing", "wrong"];
const WORDS = ["ended in an update", "in nothing", "went wrong"];
/** Pixels between the edge of a box and its bar. */
const INSET = 12;

const graph = document.querySelector("[data-watched]");
const { harmless, made } = graph === null ? {} : JSON.parse(graph.dataset.verdicts);
const nodes = [...document.querySelectorAll(".node")];
/** What a box counts: a stream, or with "*" what else a device has. */
const counted = ({ object, name }) => `${object}/${name ?? "*"}`;
const counts = new Map(nodes.map((each) => [counted(each.dataset), []]));
const begun = Date.now();
const boxes = nodes.filter((each) => "inside" in each.dataset).map((node) => ({
  node,
  label: node.getAttribute("aria-label"),
  streams: Object.entries(JSON.parse(node.dataset.inside)).flatMap(([object, names]) => names.map((name) => ({ object, name, kind: null }))),
}));
const inside = boxes.flatMap((box) => box.streams.map((stream) => ({ box, stream })));

/** Write how many updates a second came lately. */
function tell() {
  const now = Date.now();
  const seconds = Math.min(SECONDS, Math.max(1, (now - begun) / 1000));
  for (const node of nodes) {
    const times = counts.get(counted(node.dataset));
    while (times.length > 0 && times[0] < now - SECONDS * 1000) times.shift();
    const rate = times.length / seconds;
    node.querySelector(".rate").textContent = times.length === 0 ? "" : `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`;
    node.classList.toggle("busy", times.length > 0);
  }
}

/** Return how the last computation of a stream ended: a class of its box; null where nobody knows. */
async function ending({ object, name }) {
  const path = `${encodeURIComponent(object)}/streams/${encodeURIComponent(name)}/status`;
  const answer = await fetch(`${document.body.dataset.root}/api/${path}`).catch(() => null);
  if (answer === null || !answer.ok) return null;
  const { verdicts } = await answer.json();
  const newest = verdicts.reduce((one, each) => (one === null || each.last.timestamp >= one.last.timestamp ? each : one), null);
  if (newest === null) return null;
  if (newest.verdict === made) return "went";
  return harmless.includes(newest.verdict) ? "nothing" : "wrong";
}

function show(node, kind) {
  for (const each of KINDS) node.classList.toggle(each, each === kind);
}

/** Give a box the colours of what is inside: a bar of all of them, and for its edge the worst. */
function showInside({ node, label, streams }) {
  const known = streams.filter(({ kind }) => kind !== null);
  const counts = KINDS.map((kind) => known.filter((each) => each.kind === kind).length);
  const bar = [...node.querySelectorAll(".inside")];
  const width = node.querySelector("rect").width.baseVal.value - 2 * INSET;
  let x = node.querySelectorAll("rect")[1].x.baseVal.value + INSET;
  bar.forEach((part, n) => {
    const share = known.length === 0 ? 0 : (width * counts[n]) / known.length;
    part.setAttribute("x", x);
    part.setAttribute("width", share);
    x += share;
  });
  show(node, KINDS.findLast((_, n) => counts[n] > 0));
  const said = WORDS.map((words, n) => `${counts[n]} ${words}`).filter((_, n) => counts[n] > 0);
  if (said.length > 0) node.setAttribute("aria-label", `${label}; ${said.join(", ")}`);
}

async function lookAtAll() {
  for (;;) {
    const alone = nodes.filter((each) => "derived" in each.dataset);
    const waiting = alone.map((node) => async () => show(node, await ending(node.dataset)));
    // In turn, as there may be thousands: so a round asks no more than of a page without boxes.
    for (const each of inside.splice(0, A_ROUND)) {
      inside.push(each);
      waiting.push(async () => {
        each.stream.kind = (await ending(each.stream)) ?? each.stream.kind;
        showInside(each.box);
      });
    }
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
    };
    if (!document.hidden) await Promise.all(Array.from({ length: AT_ONCE }, work));
    await new Promise((resolve) => { setTimeout(resolve, STATUS_PAUSE); });
  }
}

if (graph !== null) {
  const state = document.getElementById("state");
  const live = new Live((now) => {
    state.textContent = now === "open" ? "live" : "not connected";
    state.className = now === "open" ? "badge good" : "badge bad";
  });
  for (const object of JSON.parse(graph.dataset.watched)) {
    live.watch(object, null, null, (_update, said) => {
      const times = counts.get(`${said.serviceObject}/${said.stream}`) ?? counts.get(`${said.serviceObject}/*`);
      times?.push(Date.now());
    });
  }
  setInterval(tell, 1000);
  lookAtAll();
} else {
  document.getElementById("state").hidden = true;
}
