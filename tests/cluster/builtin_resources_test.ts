import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinResource } from "../../src/protocol/builtin_resources.ts";
import { isAction, subresourcesOf } from "../../src/protocol/subresources.ts";
import { connect, type TestConnection } from "./connection.ts";

const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

interface Discovered {
  readonly resource: string;
  readonly responseKind: { readonly kind: string };
  readonly scope: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly { readonly subresource: string; readonly verbs: readonly string[] }[];
}

describe("builtinResource", () => {
  let connection: TestConnection;

  before(async () => {
    connection = await connect();
  });
  after(async () => {
    await connection?.[Symbol.asyncDispose]();
  });

  it("describes each resource of its table, with its subresources, as kube-apiserver's discovery does", async () => {
    const differences: unknown[] = [];
    let compared = 0;
    for (const root of ["/api", "/apis"]) {
      const { items } = await (await connection.ask(root, { headers: { Accept: ACCEPT } })).json();
      for (const { metadata: { name: group = "" }, versions } of items) {
        for (const { version, resources = [] } of versions) {
          for (const found of resources as Discovered[]) {
            const known = builtinResource({ group, version, resource: found.resource });
            if (known === undefined) continue;
            compared++;
            const { kind, namespaced, shortNames, categories } = known;
            const ours = { kind, namespaced, shortNames, categories, subresources: subresourcesOf(known) };
            const theirs = {
              kind: found.responseKind.kind,
              namespaced: found.scope === "Namespaced",
              shortNames: found.shortNames,
              categories: found.categories,
              subresources: (found.subresources ?? []).filter(({ verbs }) => verbs.includes("get"))
                .map(({ subresource }) => subresource).filter((name) => isRead(known, name)),
            };
            try {
              assert.deepEqual(ours, theirs);
            } catch {
              differences.push({ group, version, resource: found.resource, ours, theirs });
            }
          }
        }
      }
    }
    assert.deepEqual(differences, []);
    assert.ok(compared > 50, `only ${compared} resources were compared`);
  });
});

/** Whether a GET of a subresource is the object or a part of it, and no connection to a node. */
function isRead(of: Parameters<typeof subresourcesOf>[0], subresource: string): boolean {
  return !isAction(of, subresource) || subresourcesOf(of).includes(subresource);
}
