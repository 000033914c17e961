// Live rates of the graph's streams, and which of them went wrong last.

import { Live } from "./live.js";

const SECONDS = 10;
const STATUS_PAUSE = 15000;
const AT_ONCE = 4;

const graph = document.querySelector("[data-watched]");
const { harmless, made } = graph === null ? {} : JSON.parse(graph.dataset.verdicts);
const nodes = [...document.querySelectorAll(".node")];
/** What a box counts: a stream, or with "*" what else a device has. */
const counted = ({ object, name }) => `${object}/${name ?? "*"}`;
const counts = new Map(nodes.map((each) => [counted(each.dataset), []]));
const begun = Date.now();

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

async function look(node) {
  const { object, name } = node.dataset;
  const path = `${encodeURIComponent(object)}/streams/${encodeURIComponent(name)}/status`;
  const answer = await fetch(`${document.body.dataset.root}/api/${path}`).catch(() => null);
  if (answer === null || !answer.ok) return;
  const { verdicts } = await answer.json();
  const newest = verdicts.reduce((one, each) => (one === null || each.last.timestamp >= one.last.timestamp ? each : one), null);
  const verdict = newest?.verdict;
  node.classList.toggle("went", verdict === made);
  node.classList.toggle("nothing", verdict !== made && harmless.includes(verdict));
  node.classList.toggle("wrong", verdict !== undefined && verdict !== made && !harmless.includes(verdict));
}

async function lookAtAll() {
  for (;;) {
    const waiting = nodes.filter((each) => "derived" in each.dataset);
    const work = async () => {
      for (let node = waiting.shift(); node !== undefined; node = waiting.shift()) await look(node);
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
