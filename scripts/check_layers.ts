/**
 * The gate of the house's walls: which room of `src/` may import which, and which packages may be imported
 * where. Reads the real module graph, so that type imports, re-exports and dynamic imports count too.
 *
 * Run with `deno run -A scripts/check_layers.ts`. Names each wrong import as `file:line: [rule] message`.
 *
 * @module
 */

import { reportViolations, ROOT, type Violation } from "./lib/gate.ts";
import { moduleGraph, type ModuleNode, sourceFiles } from "./lib/module_graph.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";

/** What one room may import. */
export interface RoomRule {
  /** Other rooms; a room may always import itself. */
  rooms: string[];
  /** Package names and schemes (`node:`); none unless listed. */
  packages: string[];
  why: string;
}

/** The arrows. An import may only go to a room that is listed. */
export const ROOMS: Record<string, RoomRule> = {
  util: { rooms: [], packages: [], why: "the leaf: knows nothing of Kubernetes" },
  meta: { rooms: ["util"], packages: [], why: "what a Kubernetes object is" },
  text: {
    rooms: ["util", "meta"],
    packages: [],
    why: "JSON as text: the one walk over bytes, which decoders, stores and answers share",
  },
  protocol: {
    rooms: ["util", "meta", "text"],
    packages: [],
    why:
      "Kubernetes over HTTP, as servers speak it: shared by hono/, node/, testing/ and cli/; names fields by paths",
  },
  store: {
    rooms: ["util", "meta", "text"],
    packages: [],
    why: "holds objects, does not know where they come from",
  },
  queue: { rooms: ["util", "meta", "store"], packages: [], why: "turns lists and events into deltas" },
  reflector: {
    rooms: ["util", "meta", "text", "store", "queue"],
    packages: [],
    why: "declares the ListerWatcher it needs; the transport is the user's, so it never sees client/",
  },
  informer: {
    rooms: ["util", "meta", "text", "store", "queue", "reflector"],
    packages: [],
    why: "joins reflector, queue and store; runs over any transport",
  },
  snapshots: {
    rooms: ["util", "meta", "text", "informer"],
    packages: [],
    why: "stores what informers save: the format, and key-value stores",
  },
  compat: {
    rooms: ["util", "meta", "store", "queue", "reflector", "informer"],
    packages: [],
    why: "what only ported Go code asks for: no room imports it",
  },
  "compat/client_node": {
    rooms: ["util", "meta", "protocol", "store", "reflector", "informer", "client", "node"],
    packages: [],
    why: "client-node's signatures over informers and its own KubeConfig: no room imports it",
  },
  metrics: { rooms: ["util"], packages: [], why: "collects what all rooms measure" },
  "compat/fluent": {
    rooms: ["util", "meta", "protocol", "informer", "client", "node", "workqueue"],
    packages: [],
    why: "the fluent client's signatures over informers: no room imports it",
  },
  "compat/gardener": {
    rooms: ["util", "meta", "reflector", "informer", "node"],
    packages: [],
    why: "the informer and store of gardener's dashboard over informers: no room imports it",
  },
  workqueue: { rooms: ["util"], packages: [], why: "useful without Kubernetes" },
  watch: {
    rooms: ["util", "meta", "text"],
    packages: [],
    why: "decodes bytes; takes the validator as an argument",
  },
  schema: { rooms: ["util", "meta"], packages: ["zod"], why: "the only room that knows zod" },
  client: {
    rooms: ["util", "meta", "text", "protocol", "watch", "schema"],
    packages: [],
    why: "one transport over fetch; provides the reflector's contract without seeing it",
  },
  controller: {
    rooms: ["util", "meta", "store", "reflector", "informer", "client", "workqueue"],
    packages: [],
    why: "reconcilers over informers and work queues; no room of the cache knows them",
  },
  screens: { rooms: ["util", "meta", "text"], packages: [], why: "what pages show of a served cache" },
  hono: {
    rooms: ["metrics", "util", "meta", "text", "protocol", "store", "informer"],
    packages: ["hono", "yaml"],
    why: "reads informers; does not care how they were filled",
  },
  workers: {
    rooms: [
      "util",
      "meta",
      "text",
      "store",
      "queue",
      "reflector",
      "informer",
      "watch",
      "schema",
      "protocol",
      "client",
      "hono",
    ],
    packages: ["hono", "cloudflare:"],
    why: "joins everything inside a Durable Object",
  },
  testing: {
    rooms: ["util", "meta", "text", "protocol", "store", "client", "controller"],
    packages: [],
    why:
      "a server, which shares only the words with the cache; a store of functions; and worlds that run controllers",
  },
  node: {
    rooms: ["util", "meta", "text", "protocol", "informer", "snapshots", "client", "controller"],
    packages: ["node:", "yaml", "@hono/node-server", "ws"],
    why: "adapts files, databases, processes and TLS",
  },
  cli: {
    rooms: [
      "metrics",
      "util",
      "meta",
      "text",
      "protocol",
      "store",
      "reflector",
      "informer",
      "watch",
      "client",
      "snapshots",
      "hono",
      "testing",
      "node",
      "screens",
      "workqueue",
    ],
    packages: ["node:", "hono", "@hono/node-server", "yaml"],
    why: "a program: no room imports it",
  },
};

/** The most lines of a file of `src/`, and the most files of a folder: what a reader can hold. */
const MOST_LINES = 500;
const MOST_FILES = 20;

/** What the folders of one room may import of each other. */
export const INNER_ROOMS: Record<string, Record<string, Omit<RoomRule, "packages">>> = {
  hono: {
    request: { rooms: [], why: "what is requested, and by whom" },
    tables: { rooms: ["request"], why: "what rows of Tables say" },
    content: { rooms: ["request"], why: "what can be answered: the history of changes, states, versions" },
    screens: { rooms: ["request", "content", "tables"], why: "what screens show: orders, windows, groups" },
    send: { rooms: ["request", "content", "screens", "tables"], why: "the bytes that readers get" },
    upstream: { rooms: ["request", "send"], why: "what other servers answer: it knows no content" },
    health: { rooms: ["request", "content", "send"], why: "what probes and metrics show" },
  },
};

/** Checks the tree below `root`. */
export async function checkLayers(root: string): Promise<{ violations: Violation[]; fileCount: number }> {
  const files = await sourceFiles(root, "src");
  const examples = await sourceFiles(root, "examples");
  const hasMod = await exists(`${root}/mod.ts`);
  const graph = await moduleGraph(root, [...files, ...examples, ...(hasMod ? ["mod.ts"] : [])]);
  const violations = graph.flatMap((node) => checkNode(node));
  violations.push(...findCycles(graph));
  if (hasMod) violations.push(...findLogic("mod.ts", await Deno.readTextFile(`${root}/mod.ts`)));
  violations.push(...await findLarge(root, files));
  return { violations, fileCount: files.length };
}

/**
 * `src/queue/fifo.ts` -> `queue`; `src/compat/client_node/mod.ts` -> `compat/client_node`, which is a room of
 * its own. `undefined` for files that are in no room.
 */
export function roomOf(path: string): string | undefined {
  const [, room, inner] = /^src\/([^/]+)\/(?:([^/]+)\/)?/.exec(path) ?? [];
  return inner !== undefined && Object.hasOwn(ROOMS, `${room}/${inner}`) ? `${room}/${inner}` : room;
}

/** `src/hono/send/answers.ts` -> `send`; `""` for a file between the folders. */
function innerRoomOf(path: string): string {
  return /^src\/[^/]+\/([^/]+)\//.exec(path)?.[1] ?? "";
}

/** `npm:@hono/node-server@^2/x` -> `@hono/node-server`; `node:fs` -> `node:`; `https://…` -> `https:`. */
function packageOf(target: string): string {
  const match = /^(?:npm|jsr):\/?((?:@[^/]+\/)?[^/@]+)/.exec(target);
  if (match) return match[1];
  const scheme = /^[a-z]+:/.exec(target);
  return scheme ? scheme[0] : target;
}

/** The rules that one file can break by itself. */
function checkNode(node: ModuleNode): Violation[] {
  const violations: Violation[] = [];
  const refuse = (line: number, rule: string, message: string) => {
    violations.push({ path: node.path, line, rule, message });
  };
  if (node.error !== undefined) {
    refuse(1, "unreadable", node.error);
    return violations;
  }
  const room = roomOf(node.path);
  const isExample = node.path.startsWith("examples/");
  if (node.path.startsWith("src/") && (room === undefined || ROOMS[room] === undefined)) {
    refuse(
      1,
      "unknown-room",
      "is in no room of scripts/check_layers.ts; add the room there, with its reason",
    );
    return violations;
  }
  for (const { specifier, target, line } of node.imports) {
    const isFile = !/^[a-z][a-z0-9+.-]*:/.test(target);
    if (isExample) {
      if (isFile && (specifier.startsWith(".") && (target.startsWith("src/") || target === "mod.ts"))) {
        refuse(line, "example-import", `imports ${specifier}; an example imports the package by its name`);
      }
    } else if (room !== undefined) {
      const message = isFile ? wrongRoom(node.path, target) : wrongPackage(room, target);
      if (message !== undefined) refuse(line, isFile ? "layer" : "package", message);
    } else if (node.path === "mod.ts" && !(isFile && target.startsWith("src/"))) {
      refuse(line, "layer", `mod.ts imports ${specifier}; it may only re-export from src/`);
    }
  }
  return violations;
}

function wrongRoom(path: string, target: string): string | undefined {
  const room = roomOf(path)!;
  const to = roomOf(target);
  if (to === undefined) return `src/${room}/ imports ${target}, which is outside of src/'s rooms`;
  if (to === room) return wrongInnerRoom(room, path, target);
  if (ROOMS[room].rooms.includes(to)) return undefined;
  const allowed = ROOMS[room].rooms.join(", ") || "no other room";
  return `${room}/ may not import ${to}/ (${target}): ${room}/ ${ROOMS[room].why}; it may import ${allowed}`;
}

/** The files between the folders of a room join them, and may import all; no folder imports them. */
function wrongInnerRoom(room: string, path: string, target: string): string | undefined {
  const inner = INNER_ROOMS[room];
  const from = innerRoomOf(path);
  const to = innerRoomOf(target);
  if (inner === undefined || from === "" || from === to) return undefined;
  const rule = inner[from];
  if (rule === undefined) {
    return `${room}/${from}/ is in no order: add it to INNER_ROOMS of scripts/check_layers.ts, with its reason`;
  }
  if (rule.rooms.includes(to)) return undefined;
  const allowed = rule.rooms.map((name) => `${room}/${name}`).join(", ") || `nothing of ${room}/`;
  return `${room}/${from}/ may not import ${target}: it is ${rule.why}; it may import ${allowed}`;
}

function wrongPackage(room: string, target: string): string | undefined {
  const name = packageOf(target);
  if (ROOMS[room].packages.includes(name)) return undefined;
  const holders = Object.keys(ROOMS).filter((other) => ROOMS[other].packages.includes(name));
  const where = holders.length === 0
    ? "no room may"
    : `only ${holders.map((holder) => `${holder}/`).join(", ")} may`;
  return `${room}/ may not import ${target}: ${where}`;
}

/**
 * Circles of imports, one violation for each. Imports of types, re-exports and dynamic imports count: two
 * files that import each other can be understood only together.
 */
function findCycles(graph: ModuleNode[]): Violation[] {
  const byPath = new Map(graph.map((node) => [node.path, node]));
  const done = new Set<string>();
  const violations: Violation[] = [];
  const visit = (node: ModuleNode, trail: string[]): void => {
    if (done.has(node.path)) return;
    for (const edge of node.imports) {
      const next = byPath.get(edge.target);
      if (next === undefined) continue;
      const at = next.path === node.path ? trail.length : trail.indexOf(next.path);
      if (at !== -1) {
        const cycle = [...trail.slice(at), node.path, next.path].join(" -> ");
        const kind = edge.isTypeOnly ? "type import" : edge.isDynamic ? "dynamic import" : "import";
        const message = `${kind} closes a circle: ${cycle}; move what both need into the lower file`;
        violations.push({ path: node.path, line: edge.line, rule: "cycle", message });
      } else visit(next, [...trail, node.path]);
    }
    done.add(node.path);
  };
  for (const node of graph) visit(node, []);
  return violations;
}

/** Whatever in `source` is neither a comment nor an import or export-from statement. */
function findLogic(path: string, source: string): Violation[] {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  const rest = source
    .replace(/\/\*[\s\S]*?\*\//g, blank)
    .replace(/^\s*\/\/.*$/gm, blank)
    .replace(
      /\b(?:export|import)\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+"[^"]+"\s*;/g,
      blank,
    );
  const at = rest.search(/\S/);
  if (at === -1) return [];
  const line = rest.slice(0, at).split("\n").length;
  const text = rest.slice(at).split("\n")[0].trim();
  return [{ path, line, rule: "mod-logic", message: `holds \`${text}\`; mod.ts only re-exports` }];
}

/** The files with too many lines, and the folders with too many files. */
async function findLarge(root: string, files: readonly string[]): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const path of files) {
    const lines = (await Deno.readTextFile(`${root}/${path}`)).split("\n").length - 1;
    if (lines <= MOST_LINES) continue;
    const message = `has ${lines} lines; split it where a reader would: at most ${MOST_LINES}`;
    violations.push({ path, line: MOST_LINES + 1, rule: "long-file", message });
  }
  for (const [folder, inside] of Map.groupBy(files, (path) => path.slice(0, path.lastIndexOf("/")))) {
    if (inside.length <= MOST_FILES) continue;
    const message = `${folder}/ has ${inside.length} files; at most ${MOST_FILES}`;
    violations.push({ path: inside[0], line: 1, rule: "full-folder", message });
  }
  return violations;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

if (import.meta.main) {
  taskOptions(
    usage({
      script: "scripts/check_layers.ts",
      does:
        "Checks what each room imports, that no imports go in a circle, and how large files and folders are.",
    }),
    {},
  );
  const { violations, fileCount } = await checkLayers(ROOT);
  Deno.exit(
    reportViolations("check_layers", violations, `${fileCount} files in ${Object.keys(ROOMS).length} rooms`),
  );
}
