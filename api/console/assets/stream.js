// The page of a stream: a plot that goes on by itself, and the history by zooming.

import { localTimes } from "./console.js";
import { Away, History, unitsPerSecond } from "./history.js";
import { Live } from "./live.js";
import { Points } from "./points.js";
import { shown } from "./values.js";

const HEIGHT = 320;
const ROWS = 10;
const UNSEEN = 200;
const STATUS_PAUSE = 5000;
const TELL_PAUSE = 250;
const AGAIN_PAUSE = 2000;
const LEAST_SPAN = 1;
/** Beyond so many points in sight there is the line alone: to draw each takes too long. */
const DOTS = 200;
/** Milliseconds from one drawing to the next: to draw at each frame leaves no time for anything else. */
const DRAW_PAUSE = 100;

const place = document.getElementById("stream");
const { object, stream } = place.dataset;
const isDerived = document.getElementById("rows").dataset.derived === "true";
const history = new History(object, stream);
let newest = place.dataset.newest === "" ? null : Number(place.dataset.newest);
let units = newest === null ? 1000 : unitsPerSecond(newest);
/** The newest value of each channel that has come. */
const now = { channels: {}, lastUpdate: newest };
const unseen = [];

/** Calls `draw` in a frame as soon as it may be drawn again, however often it is asked to. */
class Drawing {
  #draw;
  #isDue = false;
  #last = -DRAW_PAUSE;

  constructor(draw) {
    this.#draw = draw;
  }

  soon() {
    if (this.#isDue) return;
    this.#isDue = true;
    const pause = this.#last + DRAW_PAUSE - performance.now();
    setTimeout(() => requestAnimationFrame(() => {
      this.#isDue = false;
      this.#last = performance.now();
      this.#draw();
    }), Math.max(0, pause));
  }
}

/** A plot, its span, and what moves it. */
class Plot {
  #box = document.getElementById("plot");
  #about = document.getElementById("about");
  #select = document.getElementById("channel");
  #points = new Points();
  #chart = null;
  #isLive = true;
  /** Whether something has come yet: until then nobody knows at which time its updates stand. */
  #hasNewest = false;
  #span = 3600;
  #from = 0;
  #to = 0;
  #asked = 0;
  #drawing = new Drawing(() => this.#drawLive());
  #isTelling = false;
  #isRefused = false;
  /** What has come while a span is asked for; null where none is. */
  #heard = null;

  constructor() {
    this.#select.addEventListener("change", () => this.load());
    for (const each of document.querySelectorAll("[data-span]")) {
      each.addEventListener("click", () => this.#choose(Number(each.dataset.span)));
    }
    for (const each of document.querySelectorAll("[data-move]")) {
      each.addEventListener("click", () => this.#move(each.dataset.move));
    }
    new ResizeObserver(() => this.#chart?.setSize({ width: this.#box.clientWidth, height: HEIGHT })).observe(this.#box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    this.#goLive();
  }

  get channel() {
    return this.#select.value;
  }

  /** One update more, as it comes. */
  add(update) {
    const value = update.channels[this.channel]?.["current-value"];
    const time = update.lastUpdate / units;
    if (typeof value !== "number" || (!this.#isLive && (time < this.#from || time > this.#to))) return;
    const said = {
      isEarly: isDerived && Boolean(update.early),
      isRevised: isDerived && !update.early && update.revision !== undefined,
      isGone: isDerived && Boolean(update.retracted),
    };
    this.#heard?.push([time, value, said]);
    this.#put(this.#points, time, value, said);
    if (this.#isLive) this.#to = this.#hasNewest ? Math.max(this.#to, time) : time;
    this.#hasNewest = true;
    this.#drawing.soon();
  }

  #put(points, time, value, said) {
    if (said.isGone) points.remove(time);
    else points.add(time, value, said);
  }

  /** Ask for the span that is shown. */
  async load() {
    const asking = ++this.#asked;
    const points = new Points();
    this.#heard = [];
    try {
      await history.fill(points, this.channel, this.#from, this.#to, units, isDerived);
    } catch (error) {
      if (asking === this.#asked) this.#refuse(error, () => { if (asking === this.#asked) this.load(); });
      return;
    }
    if (asking !== this.#asked) return; // another span was asked for meanwhile
    for (const [time, value, said] of this.#heard.splice(0)) {
      if (time > (points.times.at(-1) ?? -Infinity)) this.#put(points, time, value, said);
    }
    this.#heard = null;
    this.#isRefused = false;
    this.#points = points;
    this.#draw();
  }

  /** Say why there is no plot; where nothing answers it is asked again by itself. */
  #refuse(error, again) {
    const isAway = error instanceof Away;
    this.#heard = null;
    this.#isRefused = true;
    this.#about.textContent = `${error.message} ${isAway ? "It is asked again by itself." : "Zoom in, to see less at once."}`;
    if (isAway) setTimeout(again, AGAIN_PAUSE);
  }

  #drawLive() {
    if (this.#isLive) {
      this.#from = this.#to - this.#span;
      this.#points.before(this.#from);
    }
    if (this.#chart === null) this.#draw();
    this.#chart?.setData(this.#points.columns, false);
    this.#chart?.setScale("x", { min: this.#from, max: this.#to });
    this.#tellSoon();
  }

  #goLive() {
    this.#isLive = true;
    this.#hasNewest = newest !== null;
    this.#to = newest === null ? Date.now() / 1000 : newest / units;
    this.#from = this.#to - this.#span;
    this.#pressed();
    this.load();
  }

  async #choose(seconds) {
    if (seconds === 0) {
      const asking = ++this.#asked;
      let ends = null;
      try {
        ends = await history.ends();
      } catch (error) {
        if (asking === this.#asked) this.#refuse(error, () => { if (asking === this.#asked) this.#choose(0); });
        return;
      }
      if (asking !== this.#asked) return;
      if (ends !== null) this.#span = Math.max(LEAST_SPAN, (ends[1] - ends[0]) / units);
    } else {
      this.#span = seconds;
    }
    this.#goLive();
  }

  #move(how) {
    const span = this.#to - this.#from;
    const middle = (this.#from + this.#to) / 2;
    if (how === "live") {
      this.#goLive();
      return;
    }
    if (how === "earlier") this.#show(this.#from - span / 2, this.#to - span / 2);
    if (how === "later") this.#show(this.#from + span / 2, this.#to + span / 2);
    if (how === "in") this.#show(middle - span / 4, middle + span / 4);
    if (how === "out") this.#show(middle - span, middle + span);
  }

  #show(from, to) {
    if (to - from < LEAST_SPAN) return;
    this.#isLive = false;
    this.#from = from;
    this.#to = to;
    this.#span = to - from;
    this.#pressed();
    this.load();
  }

  #pressed() {
    for (const each of document.querySelectorAll("[data-span]")) {
      each.setAttribute("aria-pressed", String(Number(each.dataset.span) === this.#span));
    }
    document.querySelector("[data-move=live]").setAttribute("aria-pressed", String(this.#isLive));
  }

  #draw() {
    this.#chart?.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    this.#chart = new window.uPlot({
      width: this.#box.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: true, range: () => [this.#from, this.#to] } },
      axes: [{ ...axis, space: 70 }, { ...axis, size: 60 }],
      series: [
        {},
        { stroke: colour("--accent"), width: 2, points: { show: (_chart, _series, first, last) => last - first < DOTS, size: 5, fill: colour("--accent") } },
        edge,
        edge,
        { stroke: colour("--second"), width: 0, paths: () => null, points: { show: true, size: 9, stroke: colour("--second"), fill: colour("--second") } },
      ],
      bands: [{ series: [3, 2], fill: `${colour("--accent")}33` }],
      hooks: {
        setSelect: [(chart) => {
          if (chart.select.width < 4) return;
          const at = (pixels) => chart.posToVal(pixels, "x");
          this.#show(at(chart.select.left), at(chart.select.left + chart.select.width));
        }],
      },
    }, this.#points.columns, this.#box);
    this.#tell();
  }

  /** Words need not come as fast as points. */
  #tellSoon() {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setTimeout(() => {
      this.#isTelling = false;
      this.#tell();
    }, TELL_PAUSE);
  }

  /** Say in words what the plot shows. */
  #tell() {
    if (this.#isRefused) return; // what was shown before is not what was asked for
    const { times, values, least, most, counts, late, revised, hasBuckets } = this.#points;
    const time = (seconds) => new Date(seconds * 1000).toLocaleString();
    const unit = this.#select.selectedOptions[0].dataset.unit;
    if (times.length === 0) {
      this.#about.textContent = `No value of ${this.channel} from ${time(this.#from)} to ${time(this.#to)}.`;
      this.#box.setAttribute("aria-label", "An empty plot");
      return;
    }
    let low = Infinity;
    let high = -Infinity;
    for (let each = 0; each < values.length; each += 1) {
      low = Math.min(low, least[each] ?? values[each]);
      high = Math.max(high, most[each] ?? values[each]);
    }
    const said = `${this.channel} from ${time(this.#from)} to ${time(this.#to)}: least ${shown(low)}, most ${shown(high)}${unit && ` ${unit}`}`;
    const sum = (column) => column.reduce((all, each) => all + each, 0);
    const updates = `${sum(counts).toLocaleString()} updates`;
    const what = hasBuckets ? `${updates}, as mean, least and most of ${times.length} spans` : updates;
    const marks = [[sum(late), "came late, or once more"], [sum(revised), sum(revised) === 1 ? "was revised" : "were revised"]];
    const marked = marks.filter(([count]) => count > 0).map(([count, how]) => ` ${count} ${how} (marked).`).join("");
    this.#about.textContent = `${said}. ${what}.${marked}`;
    this.#box.setAttribute("aria-label", `Plot of ${said}`);
  }
}

/** The newest updates, on top. */
class Rows {
  #body = document.getElementById("rows");
  #none = document.getElementById("none");
  #channels = JSON.parse(this.#body.dataset.channels);

  add(update) {
    const at = update.lastUpdate;
    const rows = [...this.#body.rows];
    const place = rows.find((each) => Number(each.dataset.at) <= at) ?? null;
    const same = place !== null && Number(place.dataset.at) === at;
    if (place === null && rows.length >= ROWS) return;
    const row = document.createElement("tr");
    row.dataset.at = String(at);
    const time = document.createElement("time");
    time.dataset.local = "";
    time.dateTime = new Date((at / unitsPerSecond(at)) * 1000).toISOString();
    const cell = row.insertCell();
    const said = isDerived ? update : {};
    if (said.early) { // it is kept nowhere, so nothing leads to it
      cell.append(time, " ", badge(said.retracted ? "retracted" : "early"));
    } else {
      const trace = document.createElement("a");
      trace.href = `${this.#body.dataset.trace}?timestamp=${at}`;
      trace.append(time);
      cell.append(trace);
      if (said.revision !== undefined) cell.append(" ", badge(said.retracted ? "retracted" : "revised"));
    }
    for (const name of this.#channels) {
      const value = row.insertCell();
      value.className = "number";
      value.textContent = shown(update.channels[name]?.["current-value"]);
    }
    localTimes(row);
    this.#body.insertBefore(row, place);
    if (same) place.remove();
    while (this.#body.rows.length > ROWS) this.#body.rows[ROWS].remove();
    this.#none.hidden = true;
  }
}

const showing = new Drawing(() => {
  if (now.lastUpdate !== null) showNow(now);
  for (const each of unseen.splice(0).slice(-ROWS)) rows.add(each);
});

/** Show what has come since it was shown last: of more than a screen can have, the last ones. */
function showSoon(update) {
  unseen.push(update);
  if (unseen.length > UNSEEN) unseen.splice(0, unseen.length - ROWS);
  showing.soon();
}

function badge(word) {
  const found = document.createElement("span");
  found.className = "badge";
  found.textContent = word;
  return found;
}

function showNow(update) {
  for (const each of document.querySelectorAll("[data-now]")) {
    const found = update.channels[each.dataset.now];
    if (found !== undefined) each.textContent = shown(found["current-value"]);
  }
  document.getElementById("last").textContent =
    new Date((update.lastUpdate / units) * 1000).toLocaleString();
}

/** Put how it is computed in the place of what the page says of that, as the server tells it now. */
async function renewComputed() {
  const answer = await fetch(location.href).catch(() => null);
  if (answer === null || !answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("computed");
  if (found === null) return;
  document.getElementById("computed").replaceChildren(...found.childNodes);
  localTimes(document.getElementById("computed"));
}

async function followStatus() {
  let windows = null;
  for (;;) {
    const found = document.hidden ? null : await history.status().catch(() => null);
    if (found !== null) {
      const cells = found.verdicts.map((each) => [document.querySelector(`[data-count="${each.verdict}"]`), each.count]);
      const before = windows;
      windows = JSON.stringify(found.windows);
      if (cells.some(([cell]) => cell === null) || (before !== null && windows !== before)) await renewComputed();
      else for (const [cell, count] of cells) cell.textContent = String(count);
    }
    await new Promise((resolve) => { setTimeout(resolve, STATUS_PAUSE); });
  }
}

const plot = document.getElementById("plot") === null ? null : new Plot();
const rows = new Rows();
const state = document.getElementById("state");
const live = new Live((now) => {
  state.textContent = now === "open" ? "live" : "not connected";
  state.className = now === "open" ? "badge good" : "badge bad";
});
live.watch(object, stream, newest ?? 0, (update) => {
  if (newest === null) units = unitsPerSecond(update.lastUpdate);
  newest = Math.max(newest ?? 0, update.lastUpdate);
  if (update.lastUpdate === newest) Object.assign(now.channels, update.channels);
  now.lastUpdate = newest;
  plot?.add(update);
  showSoon(update);
});
if (document.getElementById("computed") !== null) followStatus();
