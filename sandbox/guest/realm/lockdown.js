// What a script finds: a short list of built-ins, all frozen, so that no program can leave
// anything in them for another, and none that lead to other threads, to "later", to native
// memory, or to new code.
(function (iot) {
  "use strict";
  const { getOwnPropertyDescriptor, getPrototypeOf, defineProperty, freeze } = Object;
  const { ownKeys } = Reflect;
  const global = globalThis;

  const KEPT = `
    Object Array Number String Boolean Math JSON Date RegExp Map Set Infinity NaN undefined
    Error EvalError RangeError ReferenceError SyntaxError TypeError URIError
    parseInt parseFloat isNaN isFinite encodeURI encodeURIComponent decodeURI decodeURIComponent
  `;
  const OBJECT = `length name prototype
    assign create entries freeze fromEntries groupBy hasOwn is isFrozen keys values`;
  const MATH = `abs acos acosh asin asinh atan atan2 atanh cbrt ceil clz32 cos cosh exp expm1
    floor fround hypot imul log log10 log1p log2 max min pow random round sign sin sinh sqrt tan
    tanh trunc E LN10 LN2 LOG10E LOG2E PI SQRT1_2 SQRT2`;

  const words = (text) => {
    const found = { __proto__: null };
    text.split(/\s+/).forEach((word) => (found[word] = true));
    return found;
  };
  function keep(owner, text) {
    const kept = words(text);
    for (const name of ownKeys(owner)) if (typeof name === "string" && !kept[name]) delete owner[name];
  }

  // Objects that have no name, but are found through values.
  const generator = function* () {};
  const later = async function () {};
  const laterGenerator = async function* () {};
  const hidden = [
    generator, later, laterGenerator, generator(), laterGenerator(),
    [].values(), "".matchAll(/a/g), ""[Symbol.iterator](), new Map().keys(), new Set().keys(),
    typeof [].values().map === "function" ? [].values().map((x) => x) : null,
    typeof Iterator === "function" ? Iterator.from({ next() {} }) : null,
    (function () { return arguments; })(), 1n, Symbol.prototype, /a/, new Error(),
    typeof Promise === "function" ? Promise.prototype : null, Function.prototype,
    Uint8Array, ArrayBuffer.prototype, DataView.prototype, WeakMap.prototype, WeakSet.prototype,
  ];

  // ---- No code from text. --------------------------------------------------------------
  const refuse = { Function() { throw new EvalError("code from text is not allowed"); } }.Function;
  for (const made of [() => 1, generator, later, laterGenerator]) {
    defineProperty(getPrototypeOf(made), "constructor", { value: refuse });
  }
  Function.prototype.toString = { toString() { return "function"; } }.toString;

  // ---- Nothing that depends on a language, or remembers. --------------------------------
  const plain = (owner, name, other) => {
    if (owner[name]) owner[name] = owner[other];
  };
  plain(Number.prototype, "toLocaleString", "toString");
  plain(BigInt.prototype, "toLocaleString", "toString");
  plain(Array.prototype, "toLocaleString", "toString");
  plain(Object.prototype, "toLocaleString", "toString");
  plain(Date.prototype, "toLocaleString", "toString");
  plain(Date.prototype, "toLocaleDateString", "toDateString");
  plain(Date.prototype, "toLocaleTimeString", "toTimeString");
  plain(String.prototype, "toLocaleLowerCase", "toLowerCase");
  plain(String.prototype, "toLocaleUpperCase", "toUpperCase");
  String.prototype.localeCompare = {
    localeCompare(other) {
      const [left, right] = [`${this}`, `${other}`];
      return left < right ? -1 : left > right ? 1 : 0;
    },
  }.localeCompare;
  delete Date.prototype.toTemporalInstant;
  delete RegExp.prototype.compile;
  keep(RegExp, "length name prototype escape");
  delete RegExp[Symbol.species];
  keep(String, "length name prototype fromCharCode fromCodePoint");
  keep(JSON, "parse stringify");
  keep(Math, MATH);
  keep(Map, "length name prototype groupBy");
  delete Error.captureStackTrace;
  delete Error.isError;
  Error.stackTraceLimit = 5; // runner.js says where an error was made, and shows scripts none of it
  delete Function.prototype.caller;
  delete Function.prototype.arguments;
  for (const name of ["__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__",
    "__lookupSetter__"]) delete Object.prototype[name];

  // The global object stays open: undeclared variables live there for one step.
  const really = freeze;
  Object.freeze = { freeze(value) { return value === global ? value : really(value); } }.freeze;
  keep(Object, OBJECT);

  // ---- Freeze all that can be reached. --------------------------------------------------
  keep(global, KEPT);
  defineProperty(global, "iot", { value: iot, writable: false, configurable: false });
  const seen = new Set([global]);
  const waiting = [...hidden];
  const globals = ownKeys(global);
  for (const name of globals) waiting.push(global[name]);
  while (waiting.length > 0) {
    const value = waiting.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null) {
      if (typeof value === "bigint") waiting.push(getPrototypeOf(value));
      continue;
    }
    if (seen.has(value)) continue;
    seen.add(value);
    waiting.push(getPrototypeOf(value));
    for (const key of ownKeys(value)) {
      const found = getOwnPropertyDescriptor(value, key);
      waiting.push(found.value, found.get, found.set);
    }
    freeze(value);
  }
  for (const name of globals) {
    const found = getOwnPropertyDescriptor(global, name);
    if (found.configurable) {
      defineProperty(global, name, {
        value: found.value, writable: false, enumerable: false, configurable: false,
      });
    }
  }
  freeze(getPrototypeOf(global));
})
