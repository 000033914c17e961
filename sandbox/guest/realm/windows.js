// Windows as functions see them: aggregates of updates, under the names of channels.
//
// As in the runner: captured built-ins, no iteration, writes only to what exists or has no
// prototype. What a window knows is in private fields, which no script can reach, and whoever
// calls a method with another `this` gets a TypeError of the engine. Every aggregate comes from
// JSON.parse, so that what it has under a name is its own, whatever the name.
(function (paths) {
  "use strict";
  const { frozen } = paths;
  const { parse } = JSON;
  const { freeze, keys, hasOwn } = Object;
  const { isArray } = Array;
  const { floor } = Math;
  const Range = RangeError;
  const Type = TypeError;

  const EMPTY = freeze(parse("[]"));
  const NOBODY = freeze({ __proto__: null });

  // Under the name of a channel; null where there is none. A window without updates has no maps.
  function under(map, channel, method) {
    if (typeof channel !== "string") throw new Type("." + method + "('channel') takes the name of a channel, a text");
    return map === undefined || !hasOwn(map, channel) ? null : frozen(map[channel]);
  }

  // What is kept only where the text of the code shows that it is asked for.
  const notKept = (what, how) => new Type(what + " are not kept here: code has to ask for them as " + how);

  function total(buckets) {
    let sum = 0;
    for (let i = 0; i < buckets.length; i++) sum += buckets[i][1];
    return sum;
  }

  // The number of this rank in ascending order, the first being of rank 0, as far as buckets
  // tell: servioticy/domain/windows/sketches.py has the same rule.
  function ranked(sketch, rank) {
    const { gamma, zero, positive, negative } = sketch;
    let below = 0;
    for (let i = negative.length - 1; i >= 0; i--) {
      below += negative[i][1];
      if (below > rank) return -middle(gamma, negative[i][0]);
    }
    below += zero;
    if (below > rank) return 0;
    for (let i = 0; i < positive.length; i++) {
      below += positive[i][1];
      if (below > rank) return middle(gamma, positive[i][0]);
    }
    return null;
  }

  const middle = (gamma, index) => (2 * gamma ** index) / (gamma + 1);

  class Window {
    #of;
    #by = null; // what by() has made, linked

    constructor(of) {
      this.#of = of;
      this.count = of.count;
      this.start = of.start;
      this.end = of.end;
      this.early = of.early === true;
      if (of.silent !== undefined) {
        this.silent = of.silent;
        this.stream = of.stream;
      }
      freeze(this);
    }

    sum(channel) {
      return under(this.#of.sum, channel, "sum");
    }

    mean(channel) {
      return under(this.#of.mean, channel, "mean");
    }

    min(channel) {
      return under(this.#of.min, channel, "min");
    }

    max(channel) {
      return under(this.#of.max, channel, "max");
    }

    stdev(channel) {
      return under(this.#of.stdev, channel, "stdev");
    }

    first(channel) {
      return under(this.#of.first, channel, "first");
    }

    last(channel) {
      return under(this.#of.last, channel, "last");
    }

    counts(channel) {
      const found = under(this.#of.counts, channel, "counts");
      return found === null ? 0 : found;
    }

    quantile(channel, q) {
      const of = this.#of;
      const least = under(of.min, channel, "quantile");
      const most = under(of.max, channel, "quantile");
      if (typeof q !== "number" || !(q >= 0 && q <= 1)) throw new Range(".quantile('channel', q) takes a number from 0 to 1");
      if (of.sketches === undefined) {
        if (of.count === 0) return null;
        throw notKept("quantiles", ".quantile('channel', q)");
      }
      if (!hasOwn(of.sketches, channel)) return null;
      const sketch = of.sketches[channel];
      const all = total(sketch.negative) + sketch.zero + total(sketch.positive);
      const found = ranked(sketch, floor(q * (all - 1)));
      if (found === null || least === null || most === null) return null;
      return found < least ? least : found > most ? most : found;
    }

    by(channel) {
      const of = this.#of;
      if (typeof channel !== "string") under(undefined, channel, "by");
      for (let made = this.#by; made !== null; made = made.next) {
        if (made.channel === channel) return made.windows;
      }
      if (of.by === undefined || !hasOwn(of.by, channel)) {
        if (of.count === 0) return NOBODY;
        throw notKept("aggregates by '" + channel + "'", ".by('channel'), of a whole window");
      }
      const windows = windowsOf(of.by[channel]);
      this.#by = { channel, windows, next: this.#by };
      return windows;
    }

    get updates() {
      const { updates, updatesDropped, count } = this.#of;
      if (isArray(updates)) return frozen(updates);
      if (count === 0) return EMPTY;
      if (updates === null) throw new Range("more than " + updatesDropped + " updates are in this window: they are not given one by one");
      throw notKept("updates", ".updates, of a whole window");
    }

    // All that templates read.
    toJSON() {
      return frozen(this.#of);
    }
  }

  // By value of a channel, each with the same methods. Values are anybody's words, so the object
  // has no prototype.
  function windowsOf(all) {
    const windows = { __proto__: null };
    const names = keys(all);
    for (let i = 0; i < names.length; i++) windows[names[i]] = new Window(all[names[i]]);
    return freeze(windows);
  }

  // No script makes a window of its own, or leaves anything in their prototype.
  delete Window.prototype.constructor;
  const names = Reflect.ownKeys(Window.prototype);
  for (let i = 0; i < names.length; i++) {
    const { value, get } = Object.getOwnPropertyDescriptor(Window.prototype, names[i]);
    freeze(value === undefined ? get : value);
  }
  freeze(Window.prototype);

  // The window through an input, of the update that brings all of them; a function gets an
  // object, all others what is in it. What is no window is told as it is, a state or an update; a
  // fold may change the state that it is given.
  return function windowIn(update, input, whole) {
    const { windows } = update;
    if (!isArray(windows) || input >= windows.length || windows[input] === null) return null;
    const of = windows[input];
    if (hasOwn(of, "value")) return hasOwn(of, "own") ? of.value : frozen(of.value);
    return whole ? new Window(of) : of;
  };
})
