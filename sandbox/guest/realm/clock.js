// Time and chance are functions of the trigger, so that a replay agrees.
//
// `step` is by how many milliseconds each look at the clock moves it on, from the trigger's time:
// 0, and time stands still; else a loop that waits for the time to pass comes to an end. It
// counts looks, never real time, and each computation begins anew.
(function (step) {
  "use strict";
  const { construct } = Reflect;
  const { imul, trunc } = Math;
  const RealDate = Date;
  const dateText = Function.prototype.call.bind(RealDate.prototype.toString);
  let began = 0;
  let looks = 0;
  let seed = 0;

  // A product and one sum: where timestamps are so large that one more is no other number, time
  // goes on in leaps.
  const now = () => began + step * looks++;

  const FixedDate = function Date(...parts) {
    if (new.target === undefined) return dateText(new RealDate(now()));
    if (parts.length === 0) return construct(RealDate, [now()], new.target);
    return construct(RealDate, parts, new.target);
  };
  FixedDate.prototype = RealDate.prototype;
  FixedDate.prototype.constructor = FixedDate;
  FixedDate.parse = RealDate.parse;
  FixedDate.UTC = RealDate.UTC;
  FixedDate.now = () => now();
  globalThis.Date = FixedDate;

  Math.random = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };

  // Timestamps are seconds or milliseconds, told apart by their size.
  const milliseconds = (timestamp) => (timestamp < 1e11 ? timestamp * 1000 : timestamp);

  function set(program, timestamp) {
    began = milliseconds(timestamp);
    looks = 0;
    seed = program ^ timestamp ^ trunc(timestamp / 4294967296);
  }

  return { set, milliseconds, began: () => began, real: RealDate.now };
})
