// The points of a plot in order of time, with those that came late marked.

const MOST = 20000;

/** Four columns for uPlot: times in seconds, values, and the least and most of each bucket. */
export class Points {
  constructor() {
    this.clear();
  }

  clear() {
    this.times = [];
    this.values = [];
    this.least = [];
    this.most = [];
    this.late = [];
    this.hasBuckets = false;
  }

  /** Add one at its place; what has its time already is replaced. True: it came late. */
  add(time, value, least = null, most = null) {
    const { times } = this;
    let at = times.length;
    if (at === 0 || time > times[at - 1]) {
      this.#put(at, 0, time, value, least, most, null);
      if (times.length > MOST) this.before(times[Math.floor(MOST / 10)]);
      return false;
    }
    let low = 0;
    while (low < at) {
      const middle = (low + at) >> 1;
      if (times[middle] < time) low = middle + 1;
      else at = middle;
    }
    this.#put(at, times[at] === time ? 1 : 0, time, value, least, most, value);
    return true;
  }

  /** Forget what is before this time. */
  before(time) {
    const count = this.times.findIndex((each) => each >= time);
    if (count <= 0) return;
    for (const column of [this.times, this.values, this.least, this.most, this.late]) column.splice(0, count);
  }

  /** As uPlot takes them. */
  get columns() {
    return [this.times, this.values, this.least, this.most, this.late];
  }

  #put(at, over, time, value, least, most, late) {
    this.times.splice(at, over, time);
    this.values.splice(at, over, value);
    this.least.splice(at, over, least);
    this.most.splice(at, over, most);
    this.late.splice(at, over, late);
  }
}
