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
    const on = true; // all of it: otherwise the engine makes a slow kind of array
    defineProperty(list, list.length, {
      __proto__: null, value, writable: on, enumerable: on, configurable: on,
    });
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

  function pickMembers(value, members, found) {
    for (let i = 1; i < members.length; i++) {
      const at = members[i] < 0 ? members[i] + value.length : members[i];
      if (hasOwn(value, at)) append(found, value[at]);
    }
  }

  function pickAll(value, path, found, root) {
    const all = select(value, path, root);
    for (let i = 0; i < all.length; i++) append(found, all[i]);
  }

  // What one selector of a path finds in one value. See PathStep in program.py.
  function pick(value, selector, found, root) {
    const kind = selector[0];
    if (kind === "this") append(found, value);
    else if (kind === "root") append(found, root);
    else if (kind === "either" || kind === "below") {
      for (let i = 1; i < selector.length; i++) pickAll(value, selector[i], found, root);
    }
    if (!isObject(value)) return;
    if (kind === "names") {
      if (!isArray(value)) pickMembers(value, selector, found);
    } else if (kind === "items") {
      if (isArray(value)) pickMembers(value, selector, found);
    } else if (kind === "slice") {
      if (isArray(value)) pickSlice(value, selector[1], selector[2], selector[3], found);
    } else if (kind === "below" || kind === "children" || kind === "where") {
      const names = keys(value);
      for (let i = 0; i < names.length; i++) {
        const child = value[names[i]];
        if (kind === "below") pick(child, selector, found, root);
        else if (kind === "children" || passesAll(child, selector, root)) append(found, child);
      }
    }
  }

  function select(value, path, root) {
    let values = empty();
    append(values, value);
    for (let i = 0; i < path.length; i++) {
      const found = empty();
      for (let j = 0; j < values.length; j++) pick(values[j], path[i], found, root);
      values = found;
    }
    return values;
  }

  // ---- Filters, as RFC 9535, 2.3.5 compares. -------------------------------------------
  function equal(left, right) {
    if (!isObject(left) || !isObject(right)) return left === right;
    if (isArray(left) !== isArray(right)) return false;
    const names = keys(left);
    if (names.length !== keys(right).length) return false;
    for (let i = 0; i < names.length; i++) {
      if (!hasOwn(right, names[i]) || !equal(left[names[i]], right[names[i]])) return false;
    }
    return true;
  }

  // Only two numbers or two texts have an order.
  function compare(operator, left, right) {
    const type = typeof left;
    if (type === typeof right && (type === "number" || type === "string")) {
      if (operator === "<") return left < right;
      if (operator === "<=") return left <= right;
      if (operator === ">") return left > right;
      if (operator === ">=") return left >= right;
    }
    return fits(operator, equal(left, right));
  }

  const fits = (operator, same) =>
    operator === "!=" ? !same : same && operator !== "<" && operator !== ">";

  function passesAll(value, tests, root) {
    for (let i = 1; i < tests.length; i++) if (!passes(value, tests[i], root)) return false;
    return true;
  }

  function passes(value, test, root) {
    const kind = test[0];
    if (kind === "and") return passesAll(value, test, root);
    if (kind === "not") return !passes(value, test[1], root);
    if (kind === "or") {
      for (let i = 1; i < test.length; i++) if (passes(value, test[i], root)) return true;
      return false;
    }
    if (kind === "found") return select(value, test[1], root).length > 0;
    const found = select(value, test[2], root);
    let others = empty();
    if (kind === "value") append(others, test[3]);
    else others = select(value, test[3], root);
    // Nothing equals nothing, and nothing else.
    if (found.length === 0 || others.length === 0) {
      return fits(test[1], found.length === others.length);
    }
    for (let i = 0; i < found.length; i++) {
      for (let j = 0; j < others.length; j++) {
        if (compare(test[1], found[i], others[j])) return true;
      }
    }
    return false;
  }

  function findAll(value, path) {
    if (value === null) return null;
    const found = select(value, path, value);
    return found.length === 0 ? null : frozen(found);
  }

  return { follow, findAll, frozen };
})
