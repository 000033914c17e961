// Programs: a composite stream's code made ready, and run for one computation.
//
// Everything here is captured before the built-ins are guarded and frozen, and nothing of
// it has a global name. Should a script change a built-in after all, this file uses only its
// own references, never iterates (Array.prototype[Symbol.iterator] might be the script's)
// and writes only to properties that exist (Array.prototype might have been given setters).
(function (time, paths) {
  "use strict";
  const { set: setClocks } = time;
  const { follow, findAll, frozen } = paths;
  const { parse, stringify } = JSON;
  const { apply, getPrototypeOf } = Reflect;
  const { freeze, keys, getOwnPropertyDescriptor, hasOwn } = Object;
  const { isArray } = Array;
  const { isFinite, isInteger } = Number;
  const toNumber = Number;
  const toText = String;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const sourceOf = uncurry(Function.prototype.toString);
  const slice = uncurry(String.prototype.slice);
  const trim = uncurry(String.prototype.trim);
  const codeAt = uncurry(String.prototype.charCodeAt);
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const exec = uncurry(RegExp.prototype.exec);
  const global = globalThis;

  const INPUT = -1;
  const RESULT = -2;
  const MAX_CHARACTERS = 65536;
  const MAX_ELEMENTS = 4096;
  const MAX_BYTES = 1000000; // of an output; MAX_OUTPUT_BYTES in host/outputs.py
  const PIECE = 4096;
  const MAX_DEPTH = 64; // of a state
  const HALF = /(?:^|[^\\])(?:\\\\)*\\ud/; // of a surrogate pair, in JSON
  const ASCII = /^[\x00-\x7f]*$/;
  const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
  const POINT = /^\s*([^\s,]+)\s*,\s*([^\s,]+)\s*$/;

  // ---- Text. --------------------------------------------------------------------------
  // Half a surrogate pair has no UTF-8: whatever leaves has U+FFFD in its place.
  const quoted = (text) => stringify(wellFormed(text));

  // How many bytes a well-formed text has in UTF-8 beyond one a character.
  function more(text) {
    let bytes = 0;
    for (let i = 0; i < text.length; i++) {
      const code = codeAt(text, i);
      // Each half of a pair is two of its four bytes.
      if (code > 127) bytes += code < 2048 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
    }
    return bytes;
  }

  // Whether a well-formed text is too long in UTF-8. Counted only where it may be.
  function tooLong(text) {
    const { length } = text;
    if (length > MAX_BYTES) return true;
    if (length * 3 <= MAX_BYTES) return false;
    let bytes = length;
    for (let start = 0; start < length && bytes <= MAX_BYTES; start += PIECE) {
      const piece = slice(text, start, start + PIECE);
      if (exec(ASCII, piece) === null) bytes += more(piece);
    }
    return bytes > MAX_BYTES;
  }

  // ---- Binding a value to its channel's declared type: JSON text, or undefined. -------
  // What is longer than any output may be is not written to its end.
  const TOO_LONG = "";

  const number = (value) => {
    const type = typeof value;
    if (type === "string" && exec(NUMBER, (value = trim(value))) !== null) {
      value = toNumber(value);
    } else if (type !== "number") return undefined;
    return isFinite(value) ? stringify(value) : undefined;
  };

  const string = (value) => {
    const type = typeof value;
    if (type === "string") {
      return value.length <= MAX_CHARACTERS ? quoted(value) : undefined;
    }
    if (type === "number") return isFinite(value) ? stringify(toText(value)) : undefined;
    return type === "boolean" ? stringify(toText(value)) : undefined;
  };

  const boolean = (value) => {
    if (value === true || value === "true") return "true";
    if (value === false || value === "false") return "false";
    if (typeof value === "number" && isInteger(value)) return value === 0 ? "false" : "true";
    return undefined;
  };

  const geoPoint = (value) => {
    let latitude;
    let longitude;
    if (typeof value === "string") {
      const parts = exec(POINT, value);
      if (parts === null) return undefined;
      latitude = number(parts[1]);
      longitude = number(parts[2]);
    } else if (isArray(value)) {
      if (value.length !== 2) return undefined;
      longitude = number(value[0]);
      latitude = number(value[1]);
    } else if (typeof value === "object" && value !== null) {
      latitude = number(value.lat);
      longitude = number(value.lon);
    }
    if (latitude === undefined || longitude === undefined) return undefined;
    return '"' + latitude + "," + longitude + '"';
  };

  const arrayOf = (element) => (value) => {
    if (!isArray(value)) return undefined;
    const length = value.length;
    if (!isInteger(length) || length > MAX_ELEMENTS) return undefined;
    let text = "[";
    for (let i = 0; i < length; i++) {
      const bound = element(value[i]);
      if (bound === undefined || bound === TOO_LONG) return bound;
      text += i === 0 ? bound : "," + bound;
      if (text.length > MAX_BYTES) return TOO_LONG;
    }
    return text + "]";
  };

  // Whatever JSON there is of it, if that can be read anywhere: what a fold keeps. No document has
  // a channel of this type.
  const json = (value) => {
    if (typeof value === "number" && !isFinite(value)) return undefined;
    const text = stringify(value);
    if (text === undefined) return undefined;
    if (text.length > MAX_CHARACTERS) return TOO_LONG;
    return exec(HALF, text) !== null || isDeep(text) ? undefined : text;
  };

  // Whether it is true, as filters have it: what a condition is asked for.
  const holds = (value) => (value ? "true" : "false");

  // What a procedure makes of an atom: nothing, one, or a list of several.
  const atoms = (value) => (value === undefined ? "null" : json(value));

  const isAny = (bind) => bind === json || bind === atoms;

  function isDeep(text) {
    if (text.length <= 2 * MAX_DEPTH) return false;
    let depth = 0;
    let quotes = false;
    for (let i = 0; i < text.length; i++) {
      const code = codeAt(text, i);
      if (code === 34) quotes = !quotes;
      else if (quotes) i += code === 92 ? 1 : 0;
      else if (code === 91 || code === 123) depth += 1;
      else if (code === 93 || code === 125) depth -= 1;
      if (depth > MAX_DEPTH) return true;
    }
    return false;
  }

  function binder(type) {
    if (type === "json") return json;
    if (type === "holds") return holds;
    if (type === "atoms") return atoms;
    if (type === "number") return number;
    if (type === "string") return string;
    if (type === "boolean") return boolean;
    if (type === "geo_point") return geoPoint;
    return arrayOf(binder(slice(type, 6, -1)));
  }

  // ---- Words for what went wrong. -----------------------------------------------------
  const clip = (text, most) => (text.length > most ? slice(text, 0, most) + "..." : text);

  function describe(value) {
    const type = typeof value;
    if (type === "string") return clip(quoted(clip(value, 100)), 110);
    if (type === "function" || type === "symbol") return "a " + type;
    if (type === "bigint") return "a bigint";
    if (type !== "object" || value === null) return toText(value);
    try {
      return clip(toText(stringify(value)), 100);
    } catch {
      return isArray(value) ? "an array" : "an object";
    }
  }

  const errors = [
    Error.prototype, "Error", TypeError.prototype, "TypeError",
    ReferenceError.prototype, "ReferenceError", RangeError.prototype, "RangeError",
    SyntaxError.prototype, "SyntaxError", EvalError.prototype, "EvalError",
    URIError.prototype, "URIError",
  ];

  // Where an error was made, in the program's own code. V8 asks for the text of `stack` when that
  // is first read, and scripts that read it find what they would without any frames; in QuickJS it
  // is a text from the beginning. None is told where the stack is full: that depends on what was
  // on it before.
  const NAME = "program"; // PROGRAM in engines.py
  const AT = /\(program:(\d{1,7}):(\d{1,7})\)/;
  const MOST_TEXT = 2000;
  const isFull = (message) => message === "Maximum call stack size exceeded" || message === "stack overflow";
  const header = uncurry(Error.prototype.toString);
  const { get: stackOf } = getOwnPropertyDescriptor(new Error(), "stack") ?? {};
  let asked = false;
  let place = null;

  Error.prepareStackTrace = {
    prepareStackTrace(error, frames) {
      if (!asked) return header(error);
      for (let i = 0; i < frames.length; i++) {
        const frame = frames[i];
        if (frame.getScriptNameOrSourceURL() === NAME) {
          place = [frame.getLineNumber(), frame.getColumnNumber()];
          return "";
        }
      }
      return "";
    },
  }.prepareStackTrace;

  function placeOf(error) {
    const stack = getOwnPropertyDescriptor(error, "stack");
    if (stack === undefined) return null;
    if (stackOf === undefined) {
      if (typeof stack.value !== "string") return null;
      const found = exec(AT, slice(stack.value, 0, MOST_TEXT));
      return found === null ? null : [toNumber(found[1]), toNumber(found[2])];
    }
    if (stack.get !== stackOf) return null; // the script's own would be more of the script
    place = null;
    asked = true;
    try {
      apply(stackOf, error, bare);
    } finally {
      asked = false;
    }
    return place;
  }

  function where(error, program) {
    const found = placeOf(error);
    if (found === null) return "";
    const { places } = program;
    for (let i = 0; i < places.length; i++) {
      const line = found[0] - places[i][0];
      if (line < 0 || line >= places[i][1]) continue;
      return " (" + clip(places[i][2], 100) + ", line " + (line + 1) + ", column " + found[1] + ")";
    }
    return "";
  }

  function thrown(error, program) {
    if (typeof error !== "object" || error === null) return describe(error);
    try {
      // Own data properties only: a getter would be more of the script.
      const own = getOwnPropertyDescriptor(error, "message");
      const message = own !== undefined && typeof own.value === "string" ? own.value : "";
      const prototype = getPrototypeOf(error);
      let name = "thrown";
      for (let i = 0; i < errors.length; i += 2) if (errors[i] === prototype) name = errors[i + 1];
      return name + ": " + clip(message, 300) + (isFull(message) ? "" : where(error, program));
    } catch {
      return "thrown: an object";
    }
  }

  const fault = (kind, message) => ({ kind, message: quoted(message) });

  // ---- Programs. ----------------------------------------------------------------------
  const programs = { __proto__: null };
  const emptySlots = (count) => {
    // Elements that exist, so that filling them never meets a setter.
    let text = "[";
    for (let i = 0; i < count; i++) text += i === 0 ? "null" : ",null";
    return parse(text + "]");
  };

  // `this` is the description as JSON text; `compiled` comes from assemble() in compile.py.
  function define(compiled) {
    const program = parse(this);
    programs[program.slot] = program;
    if (program.problem !== null) return;
    program.inputs = emptySlots(program.arguments);
    program.values = emptySlots(program.variables.length);
    program.set = compiled[0];
    program.pre = compiled[1];
    program.post = compiled[2];
    for (let i = 0; i < program.channels.length; i++) {
      const channel = program.channels[i];
      const code = compiled[3 + i];
      if (program.filters) {
        // A function is an object: frozen, it cannot remember one step in the next.
        if (hasOwn(code, "prototype")) freeze(code.prototype);
        freeze(code);
      }
      channel.code = code;
      channel.bind = binder(channel.type);
      channel.what = isAny(channel.bind) || channel.bind === holds ? channel.name : "channel " + channel.name;
      channel.values = emptySlots(channel.parameters.length);
      channel.before = (i === 0 ? "" : ",") + stringify(channel.name) + ':{"current-value":';
      channel.after = channel.unit === null ? "}" : ',"unit":' + stringify(channel.unit) + "}";
    }
  }

  // The functions' own texts as JSON, for compile.py to see that each is all of the tenant's.
  function source(codes) {
    let text = "[";
    for (let i = 0; i < codes.length; i++) {
      const own = typeof codes[i] === "function" ? sourceOf(codes[i]) : "";
      text += (i === 0 ? "" : ",") + quoted(own);
    }
    return text + "]";
  }

  // ---- Inputs. ------------------------------------------------------------------------
  function input(program, argument, trigger, result) {
    if (argument === INPUT) return program.inputs[trigger];
    if (argument === RESULT) return result;
    return program.inputs[argument];
  }

  function setVariables(program, trigger, result) {
    const { values, variables } = program;
    for (let i = 0; i < values.length; i++) {
      const variable = variables[i];
      const value = input(program, variable[0], trigger, result);
      values[i] = variable[2] ? findAll(value, variable[1]) : follow(value, variable[1]);
    }
    apply(program.set, undefined, values);
  }

  // ---- One step. ----------------------------------------------------------------------
  const bare = emptySlots(0);

  const LONG = fault("error", "the output has more than " + MAX_BYTES + " bytes");

  const LONG_STATE = fault("error", "the state has more than " + MAX_CHARACTERS + " characters");

  const LONG_ATOMS = fault("error", "the atoms have more than " + MAX_CHARACTERS + " characters together");

  const POST_FILTER = fault("filtered", "post-filter");

  // Why there is no document, where there is none.
  let verdict = null;

  // The document's channels as text, or undefined with `verdict` set.

  function channelsOf(program, trigger) {
    let text = '{"channels":{';
    for (let i = 0; i < program.channels.length; i++) {
      const channel = program.channels[i];
      const { parameters, values } = channel;
      if (i > 0) apply(program.set, undefined, program.values);
      for (let j = 0; j < values.length; j++) values[j] = input(program, parameters[j], trigger, null);
      const value = apply(channel.code, undefined, values);
      const missing = !isAny(channel.bind) && channel.bind !== holds && (value === null || (typeof value === "number" && !isFinite(value)));
      if (missing && program.filters) {
        verdict = fault("filtered", "channel " + channel.name + " is " + toText(value));
        return undefined;
      }
      const bound = missing ? undefined : channel.bind(value);
      if (bound === undefined) {
        verdict = fault("error", channel.what + ": " + describe(value) + " is not " + (isAny(channel.bind) ? "JSON of " + MAX_DEPTH + " levels at most" : "a " + channel.type));
        return undefined;
      }
      text += channel.before + bound + channel.after;
      if (bound === TOO_LONG || text.length > MAX_BYTES) {
        verdict = channel.bind === json ? LONG_STATE : channel.bind === atoms ? LONG_ATOMS : LONG;
        return undefined;
      }
    }
    return text;
  }

  function compute(program, trigger, timestamp) {
    setClocks(program.seed, timestamp);
    setVariables(program, trigger, null);
    if (program.never) {
      verdict = fault("filtered", "an empty pre-filter is false");
      return undefined;
    }
    if (program.pre !== null && !apply(program.pre, undefined, bare)) {
      verdict = fault("filtered", "pre-filter");
      return undefined;
    }
    if (program.pre !== null) apply(program.set, undefined, program.values);
    return channelsOf(program, trigger);
  }

  function passes(program, trigger, document) {
    if (program.nothing) return false;
    if (program.post === null) return true;
    setVariables(program, trigger, frozen(parse(document)));
    return !!apply(program.post, undefined, bare);
  }

  function sweep() {
    // Undeclared variables live for one step, as they did when each update had its own engine.
    const left = keys(global);
    for (let i = 0; i < left.length; i++) delete global[left[i]];
  }

  // Of what is large nothing is kept until the program computes again, which may be never.
  function letGo(program) {
    const { inputs, values, channels } = program;
    for (let i = 0; i < inputs.length; i++) inputs[i] = null;
    for (let i = 0; i < values.length; i++) values[i] = null;
    for (let i = 0; i < channels.length; i++) {
      const given = channels[i].values;
      for (let j = 0; j < given.length; j++) given[j] = null;
    }
    apply(program.set, undefined, values);
  }

  return {
    define, source, programs, compute, passes, sweep, tooLong, quoted, parse, stringify, frozen,
    thrown, keys, slice, LONG, POST_FILTER, letGo, fault: () => verdict,
  };
})
