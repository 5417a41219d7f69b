/**
 * Reports where functions begin and where they wait: a plugin of `deno lint` for
 * `corridor_trace.ts`, which reads the messages as JSON.
 *
 * @module
 */

/** A node of the syntax tree, as far as it is read here. */
interface Node {
  readonly type: string;
  readonly range: readonly [start: number, end: number];
  readonly body?: Node | null;
}

interface Context {
  report(diagnostic: { node: Node; message: string }): void;
}

function create(context: Context): Record<string, (node: Node) => void> {
  const report = (node: Node, kind: string, [start, end]: Node["range"]) =>
    context.report({ node, message: JSON.stringify([kind, start, end]) });
  const onFunction = (node: Node) => {
    const { body } = node;
    if (body) report(node, body.type === "BlockStatement" ? "block" : "expression", body.range);
  };
  return {
    FunctionDeclaration: onFunction,
    FunctionExpression: onFunction,
    ArrowFunctionExpression: onFunction,
    AwaitExpression: (node) => report(node, "await", node.range),
  };
}

/** The plugin. */
const plugin: { name: string; rules: { places: { create: typeof create } } } = {
  name: "corridor",
  rules: { places: { create } },
};
export default plugin;
