import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isFieldAtItsPath, selectableFields } from "../../src/protocol/selectable_fields.ts";

/** A field of a resource, and its value in objects with these members. */
const CASES: readonly (readonly [resource: string, field: string, values: readonly [object, string][]])[] = [
  ["pods", "spec.nodeName", [[{ spec: { nodeName: "n1" } }, "n1"], [{}, ""], [{ spec: [] }, ""], [{
    spec: null,
  }, ""]]],
  ["pods", "spec.host", [[{ spec: { nodeName: "n1" } }, "n1"], [{}, ""]]],
  ["pods", "spec.hostNetwork", [[{ spec: { hostNetwork: true } }, "true"], [{ spec: {} }, "false"]]],
  ["pods", "status.podIP", [
    [{ status: { podIP: "10.0.0.9", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] } }, "10.0.0.1"],
    [{ status: { podIP: "10.0.0.9" } }, ""],
    [{ status: { podIPs: { ip: "10.0.0.1" } } }, ""],
  ]],
  ["pods", "metadata.constructor", [[{ metadata: {} }, ""]]],
  ["pods", "metadata.constructor.name", [[{ metadata: {} }, ""]]],
  ["nodes", "spec.unschedulable", [[{ spec: { unschedulable: true } }, "true"], [{}, "false"]]],
  ["events", "source", [
    [{ source: { component: "kubelet" }, reportingComponent: "other" }, "kubelet"],
    [{ source: {}, reportingComponent: "example.com/operator" }, "example.com/operator"],
    [{}, ""],
  ]],
  ["events", "reason", [[{ reason: "Started" }, "Started"]]],
  ["replicationcontrollers", "status.replicas", [[{ status: { replicas: 3 } }, "3"], [{}, "0"]]],
  ["batch/jobs", "status.successful", [[{ status: { succeeded: 2 } }, "2"], [{ status: {} }, "0"]]],
  ["example.com/pods", "spec.hostNetwork", [[{ spec: {} }, ""]]],
];

describe("selectableFields", () => {
  for (const [name, field, values] of CASES) {
    const slash = name.indexOf("/");
    const of = { group: name.slice(0, Math.max(0, slash)), version: "v1", resource: name.slice(slash + 1) };
    it(`reads ${field} of ${name} as an API server does`, () => {
      for (const [object, value] of values) {
        assert.equal(selectableFields(of)(object)(field), value, JSON.stringify(object));
      }
    });

    it(`says whether ${field} of ${name} is the value at its path`, () => {
      const atPath = (object: object) =>
        String(
          field.split(".").reduce((at: unknown, key) => (at as Record<string, unknown>)?.[key], object) ?? "",
        );
      const isAtPath = values.every(([object, value]) =>
        field.includes("constructor") || atPath(object) === value
      );
      assert.equal(isFieldAtItsPath(of, field), isAtPath);
    });
  }
});
