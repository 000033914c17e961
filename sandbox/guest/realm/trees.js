// Execution trees, grown inside the engine: one update after the other, breadth first.
//
// This is the law itself, not a clever form of it: whom an update wakes computes in order, what
// it makes is its stream's last update at once, and wakes others when its turn comes. As in
// the runner: nothing of this has a global name, no iteration, writes only to what exists.
(function (time, run, windowIn) {
  "use strict";
  const { real } = time;
  const {
    programs, compute, passes, sweep, tooLong, quoted, parse, stringify, frozen, thrown, keys, slice,
    LONG, POST_FILTER, letGo,
  } = run;
  const toBig = BigInt;
  const toNumber = Number;
  const { MAX_SAFE_INTEGER, isSafeInteger } = Number;
  const { hasOwn } = Object;

  const ROOT = parse("[]");
  const SETTLES = 1;
  const BY_INPUT = 2;
  const SKIPS = 4;
  const WINDOWED = 8;
  const FOLLOWS = -3; // the argument of a wake: as in trees.py
  // Characters of an answer: no tree is begun beyond so many, and none grows by more, except
  // that one update is never too many. In UTF-8, with what a last output may add, they fit into
  // a frame (protocol.py).
  const MAX_BEGUN = 1000000;
  const MAX_TREE = 1000000;

  // Characters of how the computations of a call ended; beyond, only how often is told.
  const MAX_SAID = 250000;

  // ---- Timestamps: numbers as far as numbers are exact, beyond that bigints. -------------
  const timeOf = (given) => (typeof given === "string" ? toBig(given) : given);
  const LAST = toBig("9223372036854775807");
  const later = (at) =>
    typeof at === "bigint" ? at + toBig(1) : at === MAX_SAFE_INTEGER ? toBig(at) + toBig(1) : at + 1;
  // In a state, which is read as JSON again, a large one is a text.
  const stateTime = (at) => (typeof at === "bigint" && !isSafeInteger(toNumber(at)) ? '"' + at + '"' : "" + at);

  // ---- Wirings. --------------------------------------------------------------------------
  // A node is [program, inputs, wakes, own, options, name]; a wake is [number, node, argument].
  const wirings = { __proto__: null };
  const slots = (count) => {
    let text = "[";
    for (let i = 0; i < count; i++) text += i === 0 ? "null" : ",null";
    return parse(text + "]");
  };

  // `this` is [slot, how many nodes there are, the number of the first one here, nodes]: a
  // large wiring comes in portions.
  function wire() {
    const portion = parse(this);
    const first = portion[2];
    if (first === 0) wirings[portion[0]] = slots(portion[1]);
    const all = wirings[portion[0]];
    for (let i = 0; i < portion[3].length; i++) {
      const given = portion[3][i];
      all[first + i] = {
        number: first + i, program: given[0], inputs: given[1], wakes: given[2], own: given[3],
        options: given[4], name: given[5], times: slots(given[1].length), endings: null,
        // What holds during one call:
        touched: false, next: null, last: null, state: null, refusal: null, ticks: 0,
        tree: -1, event: -1, wake: -1,
      };
    }
    return "";
  }

  // ---- One call. -------------------------------------------------------------------------
  let nodes = null;
  let touched = null; // the nodes of which something is known, linked
  let hops = 0;
  let most = 0;
  let tree = 0; // the number of the tree
  let text = ""; // what it has made
  let computations = 0;
  let ticked = 0;

  function touch(node) {
    if (!node.touched) {
      node.touched = true;
      node.next = touched;
      touched = node;
    }
  }

  function forget() {
    for (let node = touched; node !== null; node = node.next) {
      node.touched = false;
      node.last = null;
      node.state = null;
      node.refusal = null;
      node.ticks = 0;
      node.tree = -1;
      for (let each = node.endings; each !== null; each = each.next) each.count = 0;
    }
    touched = null;
  }

  // ---- How computations end. -------------------------------------------------------------
  // `times` are the inputs' timestamps that the last one had; the node takes over the array
  // of the one before, so that none is made.
  function end(node, kind, message, update, hasInputs) {
    touch(node);
    let ending = node.endings;
    while (ending !== null && ending.kind !== kind) ending = ending.next;
    if (ending === null) {
      ending = {
        kind, count: 0, tree: 0, parent: 0, message: "", hasInputs: false,
        times: slots(node.inputs.length), next: node.endings,
      };
      node.endings = ending;
    }
    ending.count += 1;
    ending.tree = tree;
    ending.parent = update.number;
    ending.message = message;
    ending.hasInputs = hasInputs;
    if (hasInputs) {
      const { times } = ending;
      ending.times = node.times;
      node.times = times;
    }
  }

  // A fault of the runner: its kind and its message as JSON.
  const fail = (node, fault, update) => end(node, fault.kind, fault.message, update, true);

  function endings() {
    let answer = "";
    for (let node = touched; node !== null; node = node.next) {
      for (let each = node.endings; each !== null; each = each.next) {
        if (each.count === 0) continue;
        if (answer !== "") answer += ",";
        const silent = answer.length > MAX_SAID;
        answer += "[" + node.number + ',"' + each.kind + '",' + each.count + "," + each.tree + "," +
          each.parent + "," + (silent || each.message === "" ? '""' : each.message);
        if (each.hasInputs && !silent) {
          answer += ",[";
          const { times } = each;
          for (let i = 0; i < times.length; i++) answer += (i === 0 ? "" : ",") + times[i];
          answer += "]";
        }
        answer += "]";
      }
    }
    return answer;
  }

  function ticks() {
    let answer = "";
    for (let node = touched; node !== null; node = node.next) {
      if (node.ticks !== 0) answer += (answer === "" ? "[" : ",[") + node.number + "," + node.ticks + "]";
    }
    return answer;
  }

  // ---- Inputs. ---------------------------------------------------------------------------
  function valueOf(update) {
    if (update.text !== null) {
      update.value = parse(update.text);
      update.text = null;
    }
    return update.value;
  }

  // What an input is: the newest of its members, the first of equals; null if there is none.
  function newest(members) {
    let best = members.length === 0 ? null : nodes[members[0]].last;
    for (let i = 1; i < members.length; i++) {
      const each = nodes[members[i]].last;
      if (each !== null && (best === null || each.last > best.last)) best = each;
    }
    return best;
  }

  // Whether all inputs come with what wakes the composite.
  const isBrought = (node, argument) => argument === FOLLOWS || (node.options & WINDOWED) !== 0;

  // Whether an input comes with the update that wakes the composite through `argument`.
  const comes = (node, argument, input) =>
    input === argument || (isBrought(node, argument) && input !== node.own);

  // Behind the timestamp of a result, where it is one of windows that have not ended, that have
  // ended before and are changed, or that are taken back (sandbox/revisions.py); else nothing.
  function revisionOf(node, argument, update) {
    if (!isBrought(node, argument)) return "";
    const value = valueOf(update);
    if (!hasOwn(value, "revision")) return "";
    const early = hasOwn(value, "early") ? EARLY : "";
    return ',"revision":' + value.revision + early + (hasOwn(value, "retracted") ? RETRACTED : "");
  }

  const EARLY = ',"early":true';
  const RETRACTED = ',"retracted":true';
  // Whether it is only sent, and no result that counts.
  const isPassing = (update) => hasOwn(valueOf(update), "early");

  function lacks(node, argument) {
    const { inputs, own } = node;
    for (let i = 0; i < inputs.length; i++) {
      if (i !== own && !comes(node, argument, i) && newest(inputs[i]) === null) return true;
    }
    return false;
  }

  function noteTimes(node, argument, update) {
    const { inputs, times } = node;
    for (let i = 0; i < inputs.length; i++) {
      const from = comes(node, argument, i) ? update : newest(inputs[i]);
      times[i] = from === null ? null : from.last;
    }
  }

  // ---- One computation. ------------------------------------------------------------------
  function isStale(node, update) {
    const { last } = node;
    if ((node.options & BY_INPUT) === 0) {
      if (last === null || update.last > last.last) return false;
      end(node, "stale", '"trigger ' + update.last + " is not newer than output " + last.last + '"', update, false);
      return true;
    }
    const { name } = nodes[update.node];
    const before = node.state === null || !hasOwn(node.state, name) ? null : node.state[name];
    if (before !== null && update.last <= timeOf(before)) {
      end(node, "stale", '"trigger ' + update.last + " is not newer than " + before + ', last used of this input"', update, false);
      return true;
    }
    if (last === null || last.last < LAST) return false;
    end(node, "stale", '"no timestamp is later than that of the last output"', update, false);
    return true;
  }

  // The state of a composite that goes by its inputs: the newest of each source used.
  function used(node, argument, update) {
    const uses = { __proto__: null };
    if (node.state !== null) {
      const names = keys(node.state);
      for (let i = 0; i < names.length; i++) uses[names[i]] = timeOf(node.state[names[i]]);
    }
    const { inputs, own } = node;
    for (let i = 0; i < inputs.length; i++) {
      const from = comes(node, argument, i) ? update : i === own ? null : newest(inputs[i]);
      if (from === null) continue;
      const { name } = nodes[from.node];
      const before = uses[name];
      if (before === undefined || from.last > before) uses[name] = from.last;
    }
    let state = "{";
    const names = keys(uses);
    for (let i = 0; i < names.length; i++) {
      state += (i === 0 ? "" : ",") + quoted(names[i]) + ":" + stateTime(uses[names[i]]);
    }
    return state + "}";
  }

  let stamp = 0; // of the document that `computed` returns

  // The new document as text; undefined where there is none, and that is noted.
  function computed(node, argument, update, revision) {
    const program = programs[node.program];
    if (node.refusal !== null || program.problem !== null) {
      noteTimes(node, argument, update);
      if (node.refusal === null) end(node, "syntax", quoted(program.problem), update, true);
      else fail(node, node.refusal, update);
      return undefined;
    }
    const given = program.inputs;
    const { inputs, times, own, last } = node;
    const windowed = isBrought(node, argument);
    let trigger = update.last;
    if ((node.options & BY_INPUT) !== 0 && revision === "" && last !== null && last.last >= trigger) trigger = later(last.last);
    let floor = trigger;
    for (let i = 0; i < inputs.length; i++) {
      const members = inputs[i];
      const from = comes(node, argument, i) ? update : members.length === 1 ? nodes[members[0]].last : newest(members);
      if (from === null) {
        times[i] = null;
        given[i] = null;
      } else {
        times[i] = from.last;
        if (i !== own && from.last > floor) floor = from.last;
        const value = from.text === null ? from.value : valueOf(from);
        if (windowed && i !== own) given[i] = windowIn(value, i, program.whole);
        else given[i] = program.whole ? frozen(value) : value;
      }
    }
    if (revision === "" && last !== null && last.last > floor) floor = last.last;
    let fault = null;
    try {
      const through = argument === FOLLOWS ? valueOf(update).argument : argument;
      const channels = compute(program, through, toNumber(trigger));
      if (channels === undefined) fault = run.fault();
      else {
        const document = channels + '},"lastUpdate":' + floor + revision + "}";
        if (tooLong(document)) fault = LONG;
        else if (passes(program, through, document)) {
          stamp = floor;
          return document;
        } else fault = POST_FILTER;
      }
    } catch (error) {
      fault = { kind: "script-error", message: quoted(thrown(error, program)) };
    } finally {
      sweep();
      if (windowed) letGo(program);
    }
    fail(node, fault, update);
    return undefined;
  }

  // ---- One tree. -------------------------------------------------------------------------
  // An update is {node, last: its timestamp, value or text, number in the tree, depth, path}.
  // Its path is known only where the tree has several events, which then have to be taken at
  // their places.
  let head = null; // the update that wakes others now
  let tail = null; // the last one that waits

  function admit(event, number, many) {
    const path = event.length > 3 ? event[3] : ROOT;
    const update = {
      node: event[0], last: timeOf(event[1]), value: event[2], text: null, number,
      depth: path.length, path: many ? path : null, only: event.length > 4 ? event[4] : null, next: null,
    };
    const node = nodes[event[0]];
    if (node.last === null || update.last >= node.last.last) {
      touch(node);
      node.last = update;
    }
    if (tail === null) head = update;
    else tail.next = update;
    tail = update;
  }

  // Whether an event comes before what a wake of an update makes.
  function comesFirst(event, update, wake) {
    const path = event.length > 3 ? event[3] : ROOT;
    const depth = update.depth + 1;
    if (path.length !== depth) return path.length < depth;
    for (let i = 0; i < depth - 1; i++) {
      if (path[i] !== update.path[i]) return path[i] < update.path[i];
    }
    return path[depth - 1] < wake;
  }

  function pathOf(update, wake) {
    const given = stringify(update.path);
    return parse(slice(given, 0, -1) + (update.depth === 0 ? "" : ",") + wake + "]");
  }

  // Where composites settle: by which wake of which event each is reached last.
  function findLastArrivals(events) {
    for (let i = 0; i < events.length; i++) {
      const depth = events[i].length > 3 ? events[i][3].length : 0;
      if (depth >= hops || events[i].length > 4) continue;
      const { wakes } = nodes[events[i][0]];
      for (let j = 0; j < wakes.length; j++) {
        const node = nodes[wakes[j][1]];
        if ((node.options & SETTLES) === 0) continue;
        touch(node);
        node.tree = tree;
        node.event = i;
        node.wake = wakes[j][0];
      }
    }
  }

  function isSuperseded(node, update, wake) {
    return (node.options & SETTLES) !== 0 && node.tree === tree &&
      (node.event !== update.number || node.wake !== wake);
  }

  const TOO_FAR = () => '"more than ' + hops + ' hops"';

  // Whether the tree was grown whole; if not, what is known here is of no more use.
  function grow(events) {
    const many = events.length > 1;
    let next = 0;
    let made = events.length;
    let comma = "";
    head = null;
    tail = null;
    text = "[";
    computations = 0;
    findLastArrivals(events);
    for (;;) {
      if (head === null) {
        if (next === events.length) break;
        admit(events[next], next++, many);
      }
      const update = head;
      const { wakes } = nodes[update.node];
      for (let i = 0; i < wakes.length; i++) {
        const wake = wakes[i];
        const number = wake[0];
        if (update.only !== null && update.only !== number) continue;
        while (next < events.length && comesFirst(events[next], update, number)) {
          admit(events[next], next++, many);
        }
        const node = nodes[wake[1]];
        const argument = wake[2];
        if (update.depth >= hops) {
          end(node, "hop-limit", TOO_FAR(), update, false);
          continue;
        }
        computations += 1;
        if (computations > most) return false;
        if (isSuperseded(node, update, number)) {
          end(node, "superseded", '"a later path of the same tree computes"', update, false);
          continue;
        }
        if ((node.options & SKIPS) !== 0 && lacks(node, argument)) {
          noteTimes(node, argument, update);
          end(node, "missing", '"an input has no update yet"', update, true);
          continue;
        }
        const revision = revisionOf(node, argument, update);
        if (revision === "" && isStale(node, update)) continue;
        const document = computed(node, argument, update, revision);
        const now = real();
        if (now !== ticked) {
          node.ticks += now - ticked;
          ticked = now;
          touch(node);
        }
        if (document === undefined) continue;
        const state = (node.options & BY_INPUT) === 0 || revision !== "" ? null : used(node, argument, update);
        end(node, "emitted", "", update, true);
        text += comma + "[" + update.number + "," + number + "," + node.number + "," + stamp + "," +
          document + (state === null ? "]" : "," + state + "]");
        comma = ",";
        if (text.length > MAX_TREE && made > events.length) return false;
        if (state !== null) node.state = parse(state);
        const output = {
          node: node.number, last: stamp, value: null, text: document, number: made++,
          depth: update.depth + 1, path: many ? pathOf(update, number) : null, only: null, next: null,
        };
        const isOlder = revision !== "" && (isPassing(update) || (node.last !== null && stamp < node.last.last));
        if (!isOlder) node.last = output;
        if (update.only !== null || revision !== "") continue; // of a step nothing follows
        tail.next = output;
        tail = output;
      }
      head = update.next;
      if (head === null) tail = null;
    }
    text += "]";
    return true;
  }

  // ---- A frame: [milliseconds, [call...]]; a call is [wiring, lasts, trees, hops, computations,
  // refusals]. The answer is, for each call, [made, ended, ticks, failed]: of as many trees as
  // there was time for, or nothing but the number of the tree that cannot be grown whole.
  function growAll() {
    const frame = parse(this);
    const until = real() + frame[0];
    const calls = frame[1];
    let answer = "[";
    let begun = 0;
    ticked = real();
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i];
      begin(call);
      const trees = call[2];
      let made = "";
      let failed = -1;
      for (tree = 0; tree < trees.length; tree++) {
        if (begun > 0 && (real() > until || answer.length + made.length > MAX_BEGUN)) break;
        begun += 1;
        if (!grow(trees[tree])) {
          failed = tree;
          break;
        }
        made += tree === 0 ? text : "," + text;
      }
      answer += i === 0 ? "[[" : ",[[";
      answer += failed < 0 ? made + "],[" + endings() + "],[" + ticks() + "],-1]" : "],[],[],"+ failed + "]";
      forget();
    }
    text = "";
    return answer + "]";
  }

  function begin(call) {
    nodes = wirings[call[0]];
    const lasts = call[1];
    for (let i = 0; i < lasts.length; i++) {
      const each = lasts[i];
      const node = nodes[each[0]];
      touch(node);
      node.last = {
        node: each[0], last: timeOf(each[1]), value: each[2], text: null, number: -1,
        depth: 0, path: null, only: null, next: null,
      };
      if (each.length > 3) node.state = each[3];
    }
    hops = call[3];
    most = call[4];
    const refused = call[5];
    for (let i = 0; i < refused.length; i++) {
      const node = nodes[refused[i][0]];
      touch(node);
      node.refusal = { kind: refused[i][1], message: quoted(refused[i][2]) };
    }
  }

  return [wire, growAll];
})
