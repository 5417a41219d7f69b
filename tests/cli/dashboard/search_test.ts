import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stateCountsOf } from "../../../src/cli/dashboard/browser/kinds.ts";
import { chooseResources, parseSearch, rankOf, wantedOf } from "../../../src/cli/dashboard/browser/search.ts";
import { parseFieldFilter } from "../../../src/protocol/field_filter.ts";

const PODS = { name: "pods", namespaced: true };

function wanted(text: string, resource = PODS) {
  const found = wantedOf(parseSearch(text), resource);
  // What the server would refuse is no filter.
  if (found?.filter !== undefined) parseFieldFilter(found.filter);
  return found;
}

function pod(phase: string, ready: string | undefined, reason?: string) {
  return {
    metadata: { name: "web-1" },
    spec: { nodeName: "worker-1" },
    status: {
      phase,
      conditions: [
        { type: "PodScheduled", status: "True" },
        ...(ready ? [{ type: "Ready", status: ready }] : []),
      ],
      containerStatuses: [{ name: "a" }, { name: "b", state: { waiting: { reason } } }],
    },
  };
}

function finds(text: string, object: unknown, resource = PODS): boolean {
  return parseFieldFilter(wanted(text, resource)?.filter ?? "").matches(object);
}

describe("wantedOf", () => {
  it("finds pods that are not ready, but none that have completed", () => {
    for (const text of ["not ready", "Not Ready", "notready", "unready web"]) {
      assert.equal(finds(text, pod("Running", "False")), true, text);
      assert.equal(finds(text, pod("Pending", undefined)), true, text);
      assert.equal(finds(text, pod("Running", "True")), false, text);
      assert.equal(finds(text, pod("Succeeded", "False")), false, text);
    }
    const nodes = { name: "nodes", namespaced: false };
    assert.equal(
      finds("not ready", { status: { conditions: [{ type: "Ready", status: "Unknown" }] } }, nodes),
      true,
    );
    assert.equal(wanted("not ready", { name: "configmaps", namespaced: true }), undefined);
  });

  it("finds the states that pods wait in", () => {
    assert.equal(finds("crash", pod("Running", "False", "CrashLoopBackOff")), true);
    assert.equal(finds("crash", pod("Running", "False", "ImagePullBackOff")), false);
    assert.equal(finds("reason=ImagePullBackOff", pod("Pending", "False", "ImagePullBackOff")), true);
    assert.equal(finds("pending", pod("Pending", undefined)), true);
    assert.equal(finds("node=worker-1", pod("Running", "True")), true);
    assert.equal(finds("node:worker-2", pod("Running", "True")), false);
    assert.equal(finds("WEB", pod("Running", "True")), true);
    assert.equal(finds("name=crash", pod("Running", "False", "CrashLoopBackOff")), false);
  });

  it("takes a word of a state for a name where there is no such state", () => {
    assert.equal(wanted("crash", { name: "services", namespaced: true })?.filter, 'metadata.name~"crash"');
  });

  it("reads namespaces and labels", () => {
    const { namespace, labelSelector, filter } = wanted("ns:shop app=web tier!=db a==b")!;
    assert.deepEqual([namespace, labelSelector, filter], ["shop", "app=web,tier!=db,a==b", undefined]);
    assert.equal(wanted("namespace=shop")?.namespace, "shop");
    assert.equal(wanted("ns:shop", { name: "nodes", namespaced: false }), undefined);
    assert.equal(wanted("ns:shop ns:blog"), undefined);
    for (const path of ["ns:.", "ns:.."]) assert.equal(wanted(path), undefined);
  });

  it("quotes what is typed, so that it stays one value", () => {
    for (const text of ['a"b', "a)b", "name=(x", "node=a\\b", "owner=]", "-", "'"]) {
      const filter = wanted(text)?.filter;
      assert.ok(filter !== undefined && parseFieldFilter(filter).requirements.length === 1, text);
    }
    assert.equal(wanted("x".repeat(10_000))?.filter?.length, 'metadata.name~""'.length + 200);
  });
});

describe("stateCountsOf", () => {
  it("counts as not ready what the search finds", () => {
    const { states } = stateCountsOf("pods")!;
    const READY = "status.conditions[type=Ready].status";
    const group = (phase: string, ready: string | null, count: number) => ({
      group: { "status.phase": phase, [READY]: ready },
      count,
    });
    const all = [group("Running", "True", 5), group("Running", "False", 2), group("Pending", null, 1)];
    const found = states([[...all, group("Succeeded", "False", 9)], [
      { group: { "status.containerStatuses[].state.waiting.reason": "CrashLoopBackOff" }, count: 2 },
      { group: { "status.containerStatuses[].state.waiting.reason": null }, count: 15 },
    ]]);
    assert.deepEqual(found.map(({ label, count, search }) => [label, count, search]), [
      ["Not ready", 3, "not ready"],
      ["Running", 7, "phase=Running"],
      ["Pending", 1, "phase=Pending"],
      ["Succeeded", 9, "phase=Succeeded"],
      ["CrashLoopBackOff", 2, "reason=CrashLoopBackOff"],
    ]);
  });

  it("knows the conditions of resources of other groups, and nothing of those without states", () => {
    const { states } = stateCountsOf("widgets.example.com")!;
    const READY = "status.conditions[type=Ready].status";
    const [{ label, count }] = states([[{ group: { [READY]: "False", "status.phase": null }, count: 4 }]]);
    assert.deepEqual([label, count], ["Not ready", 4]);
    for (const name of ["configmaps", "leases.coordination.k8s.io", "toString"]) {
      assert.equal(stateCountsOf(name), undefined, name);
    }
  });
});

describe("chooseResources", () => {
  it("takes the words that name resources, as kubectl does", () => {
    const resources = [
      { name: "pods", kind: "Pod", shortNames: ["po"] },
      { name: "deployments.apps", kind: "Deployment", shortNames: ["deploy"] },
    ];
    for (const text of ["deploy web", "web deployments", "Deployment web", "web deployments.apps"]) {
      const { resources: chosen, terms } = chooseResources(parseSearch(text), resources);
      assert.deepEqual([chosen.length, chosen[0].name, terms.length], [1, "deployments.apps", 1], text);
    }
    assert.equal(chooseResources(parseSearch("web"), resources).resources.length, 2);
  });
});

describe("rankOf", () => {
  it("prefers the whole name, then its beginning", () => {
    const terms = parseSearch("web");
    const names = ["a-web", "web-1", "web", "other"];
    assert.deepEqual(names.sort((a, b) => rankOf(a, terms) - rankOf(b, terms)), [
      "web",
      "web-1",
      "a-web",
      "other",
    ]);
  });
});
