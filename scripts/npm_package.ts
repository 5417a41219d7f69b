/**
 * What npm wants to know and `deno.json` cannot say. `build_npm.ts` merges it into the `package.json` that
 * `deno pack` wrote; `npm/check.ts` holds the result against it.
 *
 * @module
 */

/** The npm side of the package. */
export interface NpmPackage {
  description: string;
  keywords: string[];
  /** No module registers anything on import (scripts/check_exports.ts proves it). */
  sideEffects: false;
  engines: { node: string };
  /** Command name to the file that is written for it. */
  bin: Record<string, string>;
  /** What is packed besides `package.json`, README and LICENSE. Other documents are in the repository. */
  files: string[];
  /**
   * Packages that are installed with this one. `yaml` reads kubeconfig files (`./node`), `@hono/node-server`
   * is the HTTP server of the `listwatch` command (`./cli`), `ws` its WebSockets.
   */
  dependencies: string[];
  /**
   * Packages that the user brings: only `./hono` and `./cli` import hono, and a user's app and the cache's
   * must come from one copy. npm installs it for the `listwatch` command anyway, as the peer of
   * `@hono/node-server`.
   */
  optionalPeers: string[];
}

/** The metadata. */
export const NPM_PACKAGE: NpmPackage = {
  description:
    "Kubernetes informers for every JavaScript runtime: client-go's tools/cache over fetch, served by hono.",
  keywords: [
    "kubernetes",
    "k8s",
    "informer",
    "reflector",
    "client-go",
    "list-watch",
    "watch",
    "cache",
    "controller",
    "operator",
    "workqueue",
    "hono",
    "edge",
    "cloudflare-workers",
    "deno",
    "bun",
  ],
  sideEffects: false,
  engines: { node: ">=22.13" },
  bin: { listwatch: "./bin/listwatch.js" },
  files: ["bin", "examples", "lib", "types", "THIRD_PARTY.md"],
  dependencies: ["@hono/node-server", "ws", "yaml"],
  optionalPeers: ["hono"],
};

/** Packages whose used parts are in `lib/`, and the file with their licenses. */
export const BUNDLED: { readonly packages: readonly string[]; readonly notice: string } = {
  packages: ["zod"],
  notice: "THIRD_PARTY.md",
};

/**
 * The flags of Node for the `listwatch` command. Since 24, Node lets what is new in the heap grow to three
 * times 32 MB before it looks what is held: requests would take 100 MB more, for as many of them per second.
 */
export const BIN_FLAGS: readonly string[] = ["--max-semi-space-size=16"];

/**
 * The environment of Node for the `listwatch` command, read by glibc (other libraries of C ignore it). The
 * pieces of lists have 64 KB and more. Once one of them was freed, glibc takes them from its heap, between
 * small allocations, and the heap never becomes smaller: after a hundred readers that read nothing it would
 * keep 50 MB that nothing uses. With a fixed limit each piece is a mapping of its own, and is returned.
 */
export const BIN_ENV: Readonly<Record<string, string>> = { MALLOC_MMAP_THRESHOLD_: "65536" };

const BIN_VARIABLES = Object.entries(BIN_ENV).map(([name, value]) => `${name}=${value}`).join(" ");

/**
 * The `listwatch` command. It exits by itself, so that a connection that is kept alive cannot hold the
 * program. On an older Node it would fail in the middle, of a function that is not there.
 */
export const BIN_SOURCE: string = `#!/usr/bin/env -S ${BIN_VARIABLES} node ${BIN_FLAGS.join(" ")}
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  console.error(\`listwatch: Node \${process.versions.node} is too old: it needs Node 22.13 or later\`);
  process.exit(1);
}
const { main } = await import("../lib/cli.js");
process.exit(await main(process.argv.slice(2)));
`;
