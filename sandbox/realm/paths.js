// Where the paths of bindings lead. As in the runner: captured built-ins, no iteration, and
// writes only to what exists or is defined.
(function () {
  "use strict";
  const { parse } = JSON;
  const { defineProperty, freeze, isFrozen, keys, hasOwn } = Object;
  const { isArray } = Array;
  const empty = () => parse("[]");

  function frozen(value) {
    // Only this function freezes inputs, children first: frozen here is frozen throughout.
    if (typeof value !== "object" || value === null || isFrozen(value)) return value;
    const names = keys(value);
    for (let i = 0; i < names.length; i++) frozen(value[names[i]]);
    return freeze(value);
  }

  function follow(value, path) {
    for (let i = 0; i < path.length; i++) {
      if (typeof value !== "object" || value === null || !hasOwn(value, path[i])) return null;
      value = value[path[i]];
    }
    return frozen(value);
  }

  const append = (list, value) => {
    const writable = true;
    defineProperty(list, list.length, { __proto__: null, value, writable, enumerable: true });
  };

  const isObject = (value) => typeof value === "object" && value !== null;

  // Where a slice of so many elements begins or ends, as in Python and RFC 9535.
  function edge(at, length, otherwise, most) {
    if (at === null) return otherwise;
    const from = at < 0 ? at + length : at;
    return from < most - length ? most - length : from > most ? most : from;
  }

  function pickSlice(value, start, end, by, found) {
    const { length } = value;
    const step = by === null ? 1 : by;
    if (step > 0) {
      const last = edge(end, length, length, length);
      for (let i = edge(start, length, 0, length); i < last; i += step) append(found, value[i]);
    } else if (step < 0) {
      const last = edge(end, length, -1, length - 1);
      for (let i = edge(start, length, length - 1, length - 1); i > last; i += step) {
        append(found, value[i]);
      }
    }
  }

  // What one selector of a path finds in one value. See PathStep in program.py.
  function pick(value, selector, found) {
    const kind = selector[0];
    if (kind === "below") {
      const start = empty();
      append(start, value);
      const here = select(start, selector[1]);
      for (let i = 0; i < here.length; i++) append(found, here[i]);
    }
    if (kind === "this") append(found, value);
    else if (!isObject(value)) return;
    else if (kind === "below" || kind === "children") {
      const names = keys(value);
      for (let i = 0; i < names.length; i++) {
        const child = value[names[i]];
        if (kind === "below") pick(child, selector, found);
        else append(found, child);
      }
    } else if (kind === "slice") {
      if (isArray(value)) pickSlice(value, selector[1], selector[2], selector[3], found);
    } else if (isArray(value) === (kind === "items")) {
      for (let i = 1; i < selector.length; i++) {
        const at = kind === "items" && selector[i] < 0 ? selector[i] + value.length : selector[i];
        if (hasOwn(value, at)) append(found, value[at]);
      }
    }
  }

  function select(values, path) {
    for (let i = 0; i < path.length; i++) {
      const found = empty();
      for (let j = 0; j < values.length; j++) pick(values[j], path[i], found);
      values = found;
    }
    return values;
  }

  function findAll(value, path) {
    const start = empty();
    append(start, value);
    const found = value === null ? start : select(start, path);
    return value === null || found.length === 0 ? null : frozen(found);
  }

  return { follow, findAll, frozen };
})
