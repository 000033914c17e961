// Built-ins that can be told to do gigabytes or hours of work in one call, where V8 does not
// look up, are asked first how much it is. An error of the script is cheaper than a process.
(function () {
  "use strict";
  const { apply, construct, ownKeys } = Reflect;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const RealArray = Array;
  const { isArray } = Array;
  const TooMuch = RangeError;
  const MAX_CHARACTERS = 1048576;
  const MAX_ELEMENTS = 100000;

  function characters(count) {
    if (count > MAX_CHARACTERS) throw new TooMuch("a string of more than 1048576 characters");
  }

  function elements(count) {
    if (count > MAX_ELEMENTS) throw new TooMuch("an array of more than 100000 elements");
  }

  const lengthOf = (value) => (value === null || value === undefined ? 0 : +value.length || 0);

  function replace(owner, name, make) {
    const found = getOwnPropertyDescriptor(owner, name);
    if (found === undefined) return;
    found.value = make(found.value);
    defineProperty(owner, name, found);
  }

  // `check` sees this and the arguments before the original does.
  const guarded = (check) => (original) =>
    ({
      method(...given) {
        check(this, given);
        return apply(original, this, given);
      },
    }).method;

  // ---- Arrays. -------------------------------------------------------------------------
  const bounded = guarded((array) => elements(lengthOf(array)));
  const special = { constructor: true, concat: true, join: true, push: true, pop: true, at: true,
    keys: true, values: true, entries: true };
  const names = ownKeys(RealArray.prototype);
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (typeof name !== "string" || special[name]) continue;
    if (typeof RealArray.prototype[name] === "function") {
      replace(RealArray.prototype, name, bounded);
    }
  }
  replace(RealArray.prototype, "concat", guarded((array, given) => {
    let count = lengthOf(array);
    for (let i = 0; i < given.length; i++) count += isArray(given[i]) ? given[i].length : 1;
    elements(count);
  }));
  replace(RealArray.prototype, "join", guarded((array, given) => {
    const count = lengthOf(array);
    elements(count);
    characters(count * (given[0] === undefined ? 1 : lengthOf(given[0])));
  }));

  const FewerElements = function Array(...given) {
    if (given.length === 1 && typeof given[0] === "number") elements(given[0]);
    return construct(RealArray, given);
  };
  FewerElements.prototype = RealArray.prototype;
  FewerElements.isArray = isArray;
  FewerElements.of = RealArray.of;
  FewerElements.from = guarded((_, given) => elements(lengthOf(given[0])))(RealArray.from);
  defineProperty(RealArray.prototype, "constructor", { value: FewerElements });
  globalThis.Array = FewerElements;

  replace(Function.prototype, "apply", guarded((_, given) => elements(lengthOf(given[1]))));

  // ---- Strings. ------------------------------------------------------------------------
  const text = String.prototype;
  replace(text, "repeat", guarded((string, given) => characters(lengthOf(string) * +given[0])));
  const padded = guarded((_, given) => characters(+given[0]));
  replace(text, "padStart", padded);
  replace(text, "padEnd", padded);
  const short = guarded((string) => characters(lengthOf(string)));
  const whole = ["normalize", "match", "matchAll", "search", "toLowerCase", "toUpperCase"];
  for (let i = 0; i < whole.length; i++) replace(text, whole[i], short);
  replace(text, "split", guarded((string, given) => {
    elements(given[1] === undefined ? lengthOf(string) / (lengthOf(given[0]) || 1) : +given[1]);
  }));

  // Each `$` may bring in the whole text once more.
  function growth(string, replacement) {
    if (typeof replacement !== "string") return 0;
    let dollars = 0;
    for (let i = 0; i < replacement.length; i++) if (replacement[i] === "$") dollars++;
    return replacement.length + dollars * lengthOf(string);
  }
  const grown = guarded((string, given) => {
    const once = typeof given[0] === "string" ? 1 : lengthOf(string) + 1;
    characters(lengthOf(string) + once * growth(string, given[1]));
  });
  replace(text, "replace", grown);
  replace(text, "replaceAll", guarded((string, given) => {
    const times = lengthOf(string) / (lengthOf(given[0]) || 1) + 1;
    characters(lengthOf(string) + times * growth(string, given[1]));
  }));
})
