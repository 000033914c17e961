// The allow-list: what a program may be made of. Runs where no tenant's code ever runs; the
// texts are only parsed. Hygiene with good error messages, not the boundary.
(function (acorn) {
  "use strict";
  const MOST_BYTES = 4096;
  const MOST_NODES = 1000;
  const MOST_DEPTH = 60;
  const DEEP = `more than ${MOST_DEPTH} levels of nesting`;
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
  function parse(text) {
    if (bytes(text) > MOST_BYTES) throw new Problem(START, `more than ${MOST_BYTES} bytes of text`);
    const options = {
      ecmaVersion: 2023, sourceType: "script", locations: true, allowHashBang: false,
      onComment(block, content, start, end, from) {
        if (text[start] !== "/") throw new Problem({ loc: { start: from } }, "an HTML comment is not allowed");
      },
    };
    const node = acorn.parseExpressionAt(text, 0, options);
    const blanks = text.slice(0, node.end).replace(/[^\n]/g, " ");
    const rest = acorn.parse(blanks + text.slice(node.end), options);
    for (const each of rest.body) {
      if (each.type !== "EmptyStatement") throw new Problem(each, "text after its end", "syntax");
    }
    return node;
  }
  const START = { loc: { start: { line: 1, column: 0 } } };
  // A surrogate pair is four bytes in UTF-8: two for each half.
  const bytes = (text) =>
    encodeURIComponent(text.replace(/[\ud800-\udfff]/g, "xx")).replace(/%../g, "x").length;

  const isFunction = (node) =>
    node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression" || node.type === "FunctionDeclaration";

  // ---- One walk over everything: calls visit(node, parent, depth). -------------------------
  function walk(root, visit) {
    const waiting = [[root, null, 1]];
    while (waiting.length > 0) {
      const [node, parent, depth] = waiting.pop();
      visit(node, parent, depth);
      const children = [];
      for (const key of Object.keys(node)) {
        const child = node[key];
        if (Array.isArray(child)) {
          for (const each of child) if (each && each.type) children.push(each);
        } else if (child && typeof child.type === "string" && child.loc) children.push(child);
      }
      for (let i = children.length - 1; i >= 0; i--) waiting.push([children[i], node, depth + 1]);
    }
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
  function namesOf(root) {
    const names = new Set();
    walk(root, (node) => {
      if (isFunction(node)) {
        if (node.id) names.add(node.id.name);
        for (const each of node.params) bound(each, names);
      } else if (node.type === "VariableDeclarator") bound(node.id, names);
      else if (node.type === "CatchClause") bound(node.param, names);
      else if (node.type === "AssignmentExpression") bound(node.left, names);
      else if (node.type === "ForInStatement" || node.type === "ForOfStatement") {
        if (node.left.type !== "VariableDeclaration") bound(node.left, names);
      }
    });
    return names;
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
  function inspect(top, dialect, known, inputs) {
    const expressions = dialect === "expression";
    let count = 0;
    walk(top, (node, parent, depth) => {
      const { type } = node;
      if (++count > MOST_NODES) throw new Problem(node, `more than ${MOST_NODES} parts of a program`);
      if (depth > MOST_DEPTH) throw new Problem(node, DEEP);
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
        if (isName(node, parent) && !probed && !known.has(node.name) && !GLOBALS.has(node.name)) {
          throw new Problem(node, node.name + " is neither an input nor a variable nor a known name");
        }
      }
    });
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

  // `this`: {dialect, inputs, snippets: [[where, text, whether a function]]} as JSON; the
  // answer: [[kind, where, line, column, reason]] as JSON, at most one a snippet.
  return function check() {
    const { dialect, inputs, snippets } = JSON.parse(this);
    const known = new Set(inputs);
    const given = new Set(inputs);
    const problems = [];
    const parsed = [];
    const attempt = (where, work) => {
      try {
        work();
      } catch (error) {
        const [kind, loc, reason] = explain(error);
        problems.push([kind, where, loc.line, loc.column + 1, reason]);
      }
    };
    for (const [where, text, whole] of snippets) {
      attempt(where, () => {
        const node = parse(text);
        if (whole) checkFunction(node, given);
        for (const name of namesOf(node)) known.add(name);
        parsed.push([where, node]);
      });
    }
    for (const [where, node] of parsed) attempt(where, () => inspect(node, dialect, known, given));
    return JSON.stringify(problems);
  };
})
