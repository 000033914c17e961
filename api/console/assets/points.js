// The points of a plot in order of time, with those marked that came late or were revised.

/** More than a screen has pixels side by side; of more each two that stand together become one. */
const MOST = 4000;
const NONE = Object.freeze({ isEarly: false, isRevised: false });

/** Columns for uPlot, times in seconds, and what has to be known of each point beside. */
export class Points {
  #most;

  constructor(most = MOST) {
    this.#most = most;
    this.clear();
  }

  clear() {
    this.times = [];
    this.values = [];
    /** Of a point that stands for several updates; else null. */
    this.least = [];
    this.most = [];
    /** The value of one that is marked; else null. */
    this.marked = [];
    /** How many updates it stands for; how many of them came late, and were revised. */
    this.counts = [];
    this.late = [];
    this.revised = [];
    this.early = [];
  }

  /** Whether a point stands for several updates. */
  get hasBuckets() {
    return this.counts.some((each) => each > 1);
  }

  /** As uPlot takes them. */
  get columns() {
    return [this.times, this.values, this.least, this.most, this.marked];
  }

  /** Add what stands for several updates, behind all others. */
  addBucket(time, mean, least, most, count) {
    this.#put(this.times.length, 0, [time, mean, least, most, null, count, 0, 0, false]);
  }

  /** Add an update at its place. What has its time already is replaced; an early one is no mark. */
  add(time, value, { isEarly, isRevised } = NONE) {
    const at = this.#placeOf(time);
    const isSame = this.times[at] === time;
    const isLate = at < this.times.length && !isRevised && !isEarly && !(isSame && this.early[at]);
    const mark = isLate || isRevised ? value : null;
    const told = [isLate ? 1 : 0, isRevised ? 1 : 0];
    if (isSame && this.counts[at] > 1) this.#into(at, value, mark, told);
    else this.#put(at, isSame ? 1 : 0, [time, value, null, null, mark, 1, ...told, isEarly]);
    if (this.times.length > this.#most) this.#halve();
  }

  /** Take back the update of this time, if it has a point of its own. */
  remove(time) {
    const at = this.#placeOf(time);
    if (this.times[at] !== time || this.counts[at] > 1) return;
    for (const column of this.#all) column.splice(at, 1);
  }

  /** Forget what is before this time. */
  before(time) {
    const count = this.#placeOf(time);
    if (count === 0) return;
    for (const column of this.#all) column.splice(0, count);
  }

  get #all() {
    return [...this.columns, this.counts, this.late, this.revised, this.early];
  }

  /** The first place whose time is not before this one. */
  #placeOf(time) {
    const { times } = this;
    let at = times.length;
    if (at === 0 || time > times[at - 1]) return at;
    let low = 0;
    while (low < at) {
      const middle = (low + at) >> 1;
      if (times[middle] < time) low = middle + 1;
      else at = middle;
    }
    return at;
  }

  #put(at, over, point) {
    this.#all.forEach((column, number) => column.splice(at, over, point[number]));
  }

  #into(at, value, mark, [late, revised]) {
    const count = this.counts[at];
    this.values[at] = (this.values[at] * count + value) / (count + 1);
    this.least[at] = Math.min(this.least[at], value);
    this.most[at] = Math.max(this.most[at], value);
    this.marked[at] ??= mark;
    this.counts[at] = count + 1;
    this.late[at] += late;
    this.revised[at] += revised;
  }

  /** Make one of each two: there is room for as many again, and none of their time goes missing. */
  #halve() {
    const { times, values, least, most, marked, counts, late, revised, early } = this;
    const sum = (column, at) => column[at] + column[at + 1];
    let put = 0;
    for (let at = 0; at < times.length; at += 2, put += 1) {
      const point = at + 1 === times.length ? this.#all.map((column) => column[at]) : [
        times[at],
        (values[at] * counts[at] + values[at + 1] * counts[at + 1]) / sum(counts, at),
        Math.min(least[at] ?? values[at], least[at + 1] ?? values[at + 1]),
        Math.max(most[at] ?? values[at], most[at + 1] ?? values[at + 1]),
        marked[at] ?? marked[at + 1],
        sum(counts, at),
        sum(late, at),
        sum(revised, at),
        early[at] && early[at + 1],
      ];
      this.#all.forEach((column, number) => { column[put] = point[number]; });
    }
    for (const column of this.#all) column.length = put;
  }
}
