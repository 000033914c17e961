// The allow-list: what a program may be made of. Runs where no tenant's code ever runs; the
// texts are only parsed. Hygiene with good error messages, not the boundary.
(function (acorn) {
  "use strict";
  const MAX_BYTES = 65536;
  const MAX_NODES = 16000;
  const MAX_DEPTH = 60;
  const DEEP = `more than ${MAX_DEPTH} levels of nesting`;
  const MANY = `more than ${MAX_NODES} parts of a program`;
  const words = (text) => new Set(text.trim().split(/\s+/));

  const GLOBALS = words(`
    Object Array Number String Boolean Math JSON Date Map Set Infinity NaN undefined iot
    Error EvalError RangeError ReferenceError SyntaxError TypeError URIError
    parseInt parseFloat isNaN isFinite encodeURI encodeURIComponent decodeURI decodeURIComponent
  `);
  const MADE = words(`Array Date Map Set Error EvalError RangeError ReferenceError SyntaxError
    TypeError URIError`);
  const DENIED = /^(?:constructor|prototype|callee|caller|arguments|eval|__.*)$/;

  const BOTH = words(`
    Literal TemplateLiteral TemplateElement Identifier ArrayExpression ObjectExpression Property
    SpreadElement UnaryExpression BinaryExpression LogicalExpression ConditionalExpression
    CallExpression NewExpression MemberExpression ChainExpression ArrowFunctionExpression
    AssignmentExpression ObjectPattern ArrayPattern AssignmentPattern RestElement
  `);
  const STATEMENTS = words(`
    FunctionExpression FunctionDeclaration BlockStatement ReturnStatement VariableDeclaration
    VariableDeclarator IfStatement ForStatement ForInStatement ForOfStatement WhileStatement
    DoWhileStatement SwitchStatement SwitchCase BreakStatement ContinueStatement ThrowStatement
    TryStatement CatchClause ExpressionStatement EmptyStatement UpdateExpression
    SequenceExpression
  `);
  const NAMED = {
    ThisExpression: "`this`", ClassExpression: "a class", ClassDeclaration: "a class",
    TaggedTemplateExpression: "a tagged template", WithStatement: "`with`",
    LabeledStatement: "a label", DebuggerStatement: "`debugger`", ImportExpression: "`import`",
    AwaitExpression: "`await`", YieldExpression: "`yield`", MetaProperty: "`new.target`",
    SequenceExpression: "a comma between expressions", UpdateExpression: "`++` or `--`",
    FunctionExpression: "`function`", BlockStatement: "a body in braces",
  };

  class Problem extends Error {
    constructor(node, reason, kind = "policy") {
      super(reason);
      this.kind = kind;
      this.loc = node.loc.start;
    }
  }
  const refuse = (node, what) => {
    throw new Problem(node, what + " is not allowed");
  };

  // ---- From text to one expression. ------------------------------------------------------
  // Ends at what is refused in any case, where acorn's work would grow faster than the text.
  class Parser extends acorn.Parser {
    made = 0;
    nested = 0;

    finishNode(node, type) {
      if (++this.made > 2 * MAX_NODES) throw new Problem(node, MANY); // few are made in vain
      return super.finishNode(node, type);
    }
    parseStatement(context, topLevel, exported) {
      if (++this.nested > MAX_DEPTH) throw new Problem({ loc: { start: this.startLoc } }, DEEP);
      const node = super.parseStatement(context, topLevel, exported);
      this.nested--;
      return node;
    }
    parseLabeledStatement(node) {
      refuse(node, NAMED.LabeledStatement);
    }
    readRegexp() {
      refuse({ loc: { start: this.startLoc } }, "a regular expression");
    }
  }

  function parse(text) {
    if (bytes(text) > MAX_BYTES) throw new Problem(START, `more than ${MAX_BYTES} bytes of text`);
    const options = {
      ecmaVersion: 2023, sourceType: "script", locations: true, allowHashBang: false,
      onComment(block, content, start, end, from) {
        if (text[start] !== "/") throw new Problem({ loc: { start: from } }, "an HTML comment is not allowed");
      },
    };
    const parser = new Parser(options, text);
    parser.nextToken();
    const node = parser.parseExpression();
    const end = parser.lastTokEnd; // not node.end: that is before a closing parenthesis
    const tokens = new acorn.Parser(options, text, end);
    const { semi, eof } = acorn.tokTypes;
    do tokens.next();
    while (tokens.type === semi);
    if (tokens.type === eof) return node;
    const rest = new acorn.Parser(options, text, end).parse(); // for what is wrong with it
    const first = rest.body.find((each) => each.type !== "EmptyStatement");
    throw new Problem(first, "text after its end", "syntax");
  }
  const START = { loc: { start: { line: 1, column: 0 } } };
  // A surrogate pair is four bytes in UTF-8: two for each half.
  const bytes = (text) =>
    encodeURIComponent(text.replace(/[\ud800-\udfff]/g, "xx")).replace(/%../g, "x").length;

  const isFunction = (node) =>
    node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression" || node.type === "FunctionDeclaration";

  // All nodes from the top down, each with its parent and depth; one more than may be.
  function partsOf(top) {
    const parts = [];
    const waiting = [[top, null, 1]];
    while (waiting.length > 0 && parts.length <= MAX_NODES) {
      const part = waiting.pop();
      parts.push(part);
      const [node, , depth] = part;
      const children = [];
      for (const key in node) {
        const child = node[key];
        if (typeof child !== "object" || child === null) continue;
        if (Array.isArray(child)) {
          for (const each of child) if (each && each.type) children.push(each);
        } else if (child.loc && typeof child.type === "string") children.push(child);
      }
      for (let i = children.length - 1; i >= 0; i--) waiting.push([children[i], node, depth + 1]);
    }
    return parts;
  }

  // The names a pattern binds.
  function bound(pattern, names) {
    if (pattern === null) return;
    if (pattern.type === "Identifier") names.add(pattern.name);
    else if (pattern.type === "ObjectPattern") {
      for (const each of pattern.properties) bound(each.value || each.argument, names);
    } else if (pattern.type === "ArrayPattern") for (const each of pattern.elements) bound(each, names);
    else if (pattern.type === "AssignmentPattern") bound(pattern.left, names);
    else if (pattern.type === "RestElement") bound(pattern.argument, names);
  }

  // All names that any scope of the snippet declares, or assigns without a declaration.
  function namesOf(parts, names) {
    for (const [node] of parts) {
      if (isFunction(node)) {
        if (node.id) names.add(node.id.name);
        for (const each of node.params) bound(each, names);
      } else if (node.type === "VariableDeclarator") bound(node.id, names);
      else if (node.type === "CatchClause") bound(node.param, names);
      else if (node.type === "AssignmentExpression") bound(node.left, names);
      else if (node.type === "ForInStatement" || node.type === "ForOfStatement") {
        if (node.left.type !== "VariableDeclaration") bound(node.left, names);
      }
    }
  }

  const isName = (node, parent) =>
    !(parent && ((parent.type === "MemberExpression" && parent.property === node && !parent.computed)
      || (parent.type === "Property" && parent.key === node && !parent.computed && !parent.shorthand)));

  // The text of a key made of constants only, or null.
  function constant(node) {
    if (node.type === "Literal") return String(node.value);
    if (node.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked;
    if (node.type === "BinaryExpression" && node.operator === "+") {
      const [left, right] = [constant(node.left), constant(node.right)];
      return left === null || right === null ? null : left + right;
    }
    return null;
  }

  function root(node) {
    while (node.type === "MemberExpression") node = node.object;
    return node.type === "Identifier" ? node.name : null;
  }

  // ---- The rules. --------------------------------------------------------------------------
  // `unknown` is given the names that must be some other snippet's, with their places.
  function inspect(parts, dialect, inputs, names, unknown) {
    const expressions = dialect === "expression";
    const top = parts[0][0];
    let count = 0;
    for (const [node, parent, depth] of parts) {
      const { type } = node;
      if (++count > MAX_NODES) throw new Problem(node, MANY);
      if (depth > MAX_DEPTH) throw new Problem(node, DEEP);
      if (!BOTH.has(type) && (expressions || !STATEMENTS.has(type))) refuse(node, NAMED[type] || type);
      if (isFunction(node)) {
        if (node.async) refuse(node, "`async`");
        if (node.generator) refuse(node, "a generator");
        if (expressions && !node.expression) refuse(node.body, NAMED.BlockStatement);
      }
      if (type === "Literal" && node.regex) refuse(node, "a regular expression");
      if (type === "Literal" && node.bigint) refuse(node, "a bigint");
      if (type === "UnaryExpression" && node.operator === "delete") refuse(node, "`delete`");
      if (type === "BinaryExpression" && (node.operator === "in" || node.operator === "instanceof")) {
        refuse(node, "`" + node.operator + "`");
      }
      if (type === "NewExpression" && !(node.callee.type === "Identifier" && MADE.has(node.callee.name))) {
        throw new Problem(node, "`new` is for Array, Date, Map, Set and errors");
      }
      if (type === "Property" && node.kind !== "init") refuse(node, "a getter or setter");
      if ((type === "MemberExpression" || type === "Property") && node.computed) {
        const key = constant(type === "Property" ? node.key : node.property);
        if (key !== null && DENIED.test(key)) refuse(node, "the name " + key);
      }
      if (type === "Property" && node.key.type === "Literal" && DENIED.test(node.key.value)) {
        refuse(node, "the name " + node.key.value);
      }
      if (type === "AssignmentExpression" || type === "UpdateExpression") {
        const target = type === "UpdateExpression" ? node.argument : node.left;
        if (expressions && (node !== top || target.type !== "Identifier" || node.operator !== "=")) {
          refuse(node, "an assignment inside an expression");
        }
        if (target.type === "MemberExpression" && inputs.has(root(target))) throw new Problem(node, "an input cannot be changed");
        if (target.type === "Identifier" && GLOBALS.has(target.name)) throw new Problem(node, target.name + " cannot be assigned");
      }
      if (type === "Identifier") {
        if (DENIED.test(node.name)) refuse(node, "the name " + node.name);
        const probed = parent && parent.type === "UnaryExpression" && parent.operator === "typeof";
        const { name } = node;
        if (isName(node, parent) && !probed && !names.has(name) && !inputs.has(name)) {
          if (!GLOBALS.has(name) && !unknown.has(name)) unknown.set(name, node.loc.start);
        }
      }
    }
  }

  function checkFunction(node, inputs) {
    if (node.type !== "FunctionExpression" && node.type !== "ArrowFunctionExpression") {
      throw new Problem(node, "must be a function, `function(A, B) {...}` or `(A, B) => ...`", "syntax");
    }
    for (const each of node.params) {
      if (each.type !== "Identifier") throw new Problem(each, "the arguments must be plain names", "syntax");
      if (!inputs.has(each.name)) throw new Problem(each, each.name + " is not an input", "syntax");
    }
  }

  function explain(error) {
    if (error instanceof Problem) return [error.kind, error.loc, error.message];
    if (error instanceof SyntaxError && error.message.startsWith("Not enough stack")) {
      return ["policy", error.loc, DEEP];
    }
    if (error instanceof SyntaxError && error.loc) {
      return ["syntax", error.loc, error.message.replace(/ \(\d+:\d+\)$/, "")];
    }
    if (error instanceof RangeError) return ["policy", START.loc.start, DEEP];
    throw error;
  }

  // What a snippet has and lacks, without the others; `problem` as explain() has it, or null.
  function look(text, whole, dialect, inputs) {
    const names = new Set();
    const unknown = new Map();
    let problem = null;
    try {
      const node = parse(text);
      if (whole) checkFunction(node, inputs);
      const parts = partsOf(node);
      namesOf(parts, names);
      inspect(parts, dialect, inputs, names, unknown);
    } catch (error) {
      problem = explain(error);
    }
    return { names, unknown, problem };
  }

  // A name that no snippet knows comes before what ended the look.
  function judge({ unknown, problem }, known) {
    for (const [name, loc] of unknown) {
      if (!known.has(name)) {
        return ["policy", loc, name + " is neither an input nor a variable nor a known name"];
      }
    }
    return problem;
  }

  // `this`: {dialect, inputs, snippets: [[where, text, whether a function]]} as JSON; the
  // answer: [[kind, where, line, column, reason]] as JSON, at most one a snippet.
  return function check() {
    const { dialect, inputs, snippets } = JSON.parse(this);
    const given = new Set(inputs);
    const known = new Set();
    const looks = { true: new Map(), false: new Map() }; // the same text is looked at once
    for (const [, text, whole] of snippets) {
      if (looks[whole].has(text)) continue;
      const found = look(text, whole, dialect, given);
      looks[whole].set(text, found);
      for (const name of found.names) known.add(name);
    }
    const problems = [];
    for (const [where, text, whole] of snippets) {
      const problem = judge(looks[whole].get(text), known);
      if (problem === null) continue;
      const [kind, loc, reason] = problem;
      problems.push([kind, where, loc.line, loc.column + 1, reason]);
    }
    return JSON.stringify(problems);
  };
})
