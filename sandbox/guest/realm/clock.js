// Time and chance are functions of the trigger, so that a replay agrees.
(function () {
  "use strict";
  const { construct } = Reflect;
  const { imul, trunc } = Math;
  const RealDate = Date;
  const dateText = Function.prototype.call.bind(RealDate.prototype.toString);
  let now = 0;
  let seed = 0;

  const FixedDate = function Date(...parts) {
    if (new.target === undefined) return dateText(new RealDate(now));
    if (parts.length === 0) return construct(RealDate, [now], new.target);
    return construct(RealDate, parts, new.target);
  };
  FixedDate.prototype = RealDate.prototype;
  FixedDate.prototype.constructor = FixedDate;
  FixedDate.parse = RealDate.parse;
  FixedDate.UTC = RealDate.UTC;
  FixedDate.now = () => now;
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
    now = milliseconds(timestamp);
    seed = program ^ timestamp ^ trunc(timestamp / 4294967296);
  }

  return { set, milliseconds, now: () => now, real: RealDate.now };
})
