/**
 * Checks the types of the React recipe, and runs it in a component.
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import { pod } from "@listwatch/cache/testing";
import { RealCluster } from "../cli/real_cluster.ts";
import { root, runProgram } from "./programs.ts";

/** A component that shows pods by the recipe, twice in `StrictMode`; a user scrolls it, and leaves. */
const COMPONENT = `
import { createElement, StrictMode } from "react";
import { act, create } from "react-test-renderer";

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
let drawn = "";
let scroll = () => {};
function Pods() {
  const { snapshot, show } = usePods(Deno.env.get("URL_OF_PODS")!);
  scroll = () => void show({ offset: 1 });
  drawn = snapshot?.state + " " + snapshot?.rows.map(({ object }) => object.metadata.name).join(" ");
  return createElement("p", null, drawn);
}
async function seen(text: string) {
  for (let turn = 0; turn < 500 && drawn !== text; turn++) {
    await act(() => new Promise<void>((resolve) => setTimeout(resolve, 10)));
  }
  console.log(drawn);
}
let page!: ReturnType<typeof create>;
await act(() => void (page = create(createElement(StrictMode, null, createElement(Pods)))));
await seen("live web-1 web-2");
await act(() => scroll());
await seen("live web-2");
await act(() => page.unmount());
console.log("left");
`;

describe("docs/screens.md: the React recipe", () => {
  it("shows a window and what a user scrolls to, and closes each window that it has opened", async () => {
    const text = await readFile(join(root, "docs/screens.md"), "utf8");
    const [, recipe] = /```ts ignore\n(import \{ useEffect[\s\S]*?)```/.exec(text)!;
    await using cluster = await RealCluster.start();
    for (const name of ["web-1", "web-2"]) cluster.server.create("v1/pods", pod(name, { namespace: "shop" }));
    const informer = new SharedIndexInformer(newCluster({ server: cluster.url }).resource("v1/pods"));
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    const running = informer.start();
    await informer.synced();
    const served = await serveFetch(api.fetch, { port: 0 });
    try {
      // The project's compiler wants the types of what is exported; a reader's does not.
      const program = (recipe.replace("export function", "function") + COMPONENT)
        .replaceAll(
          /^(import .* from )"(react[a-z-]*)";$/gm,
          '// @ts-types="npm:@types/$2@19"\n$1"npm:$2@19";',
        );
      const lines: string[] = [];
      // It ends by itself: no window is left open.
      await runProgram(program, { URL_OF_PODS: `${served.url}/api/v1/pods` }, (line) => !lines.push(line), [
        "--check",
      ]);
      assert.deepEqual(lines, ["live web-1 web-2", "live web-2", "left"]);
    } finally {
      api.drain();
      await served.stop();
      await running.stop();
    }
  });
});
