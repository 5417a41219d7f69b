import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as z from "zod/mini";
import * as zod from "zod";
import { DecodeError } from "../../src/meta/request.ts";
import type { Quarantined, WatchItem } from "../../src/meta/list_watch.ts";
import type { KubernetesObject } from "../../src/meta/object.ts";
import { isForbidden, newStatus, StatusError } from "../../src/meta/status.ts";
import type { Schema, SchemaIssue } from "../../src/schema/schema.ts";
import { newEventValidator, newObjectValidator, validateList } from "../../src/schema/validator.ts";
import { nextTurn } from "../../src/util/clock.ts";

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "shop", name: "web-1", resourceVersion: "7" },
};

function refusal(frame: unknown, schema?: Schema<KubernetesObject>): Quarantined {
  const item = newEventValidator(schema === undefined ? {} : { schema })(frame);
  assert.equal(item.type, "QUARANTINED", JSON.stringify(item));
  return (item as Extract<WatchItem<unknown>, { type: "QUARANTINED" }>).quarantined;
}

describe("newEventValidator", () => {
  it("hands on the very frame it was given, with unknown fields", () => {
    const validate = newEventValidator();
    for (const type of ["ADDED", "MODIFIED", "DELETED"]) {
      const frame = { type, object: { ...pod, spec: { unknown: [1, { a: null }] }, extra: 1 }, more: true };
      const before = structuredClone(frame);
      assert.equal(validate(frame), frame);
      assert.deepEqual(frame, before);
    }
  });

  it("hands on the very frame when a schema with defaults and transforms accepts it", () => {
    const schema = z.looseObject({
      spec: z._default(z.looseObject({}), { filled: true }),
      metadata: z.pipe(z.looseObject({}), z.transform(() => "transformed")),
    });
    const frame = { type: "ADDED", object: { ...pod } };
    assert.equal(newEventValidator<object>({ schema })(frame), frame);
    assert.deepEqual(frame.object, pod);
  });

  it("accepts a PartialObjectMetadata", () => {
    const object = { ...pod, kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };
    assert.equal(newEventValidator()({ type: "ADDED", object }).type, "ADDED");
  });

  it("refuses an object without a usable name, labels or version, and says where and what", () => {
    const cases: [object: unknown, path: string, reason: string][] = [
      [{}, "object.metadata", "is missing, must be an object"],
      [{ metadata: null }, "object.metadata", "must be an object, is null"],
      [{ metadata: {} }, "object.metadata.name", "is missing, must be a string"],
      [{ metadata: { name: 42 } }, "object.metadata.name", "must be a string, is of type number"],
      [{ metadata: { name: "" } }, "object.metadata.name", "must not be empty"],
      [
        { metadata: { name: "a", namespace: null } },
        "object.metadata.namespace",
        "must be a string, is null",
      ],
      [
        { metadata: { name: "a", resourceVersion: 7 } },
        "object.metadata.resourceVersion",
        "must be a string, is of type number",
      ],
      [{ metadata: { name: "a", labels: [] } }, "object.metadata.labels", "must be an object, is an array"],
      [
        { metadata: { name: "a", labels: { "app.io/x": 1 } } },
        'object.metadata.labels["app.io/x"]',
        "must be a string, is of type number",
      ],
      [{ kind: 1, metadata: { name: "a" } }, "object.kind", "must be a string, is of type number"],
    ];
    for (const [object, path, reason] of cases) {
      const quarantined = refusal({ type: "ADDED", object });
      assert.deepEqual([quarantined.path, quarantined.reason], [path, reason]);
      assert.equal(quarantined.eventType, "ADDED");
    }
  });

  it("says how many more things are wrong", () => {
    assert.equal(
      refusal({ type: "ADDED", object: { metadata: { uid: 1, labels: 1 } } }).reason,
      "is missing, must be a string (and 2 more)",
    );
  });

  it("refuses an envelope that is broken, and says where", () => {
    const cases: [frame: unknown, path: string, reason: string][] = [
      [null, "", "must be an object, is null"],
      ["text", "", "must be an object"],
      [[], "", "must be an object, is an array"],
      [{ object: pod }, "type", "is missing, must be a string"],
      [{ type: 1, object: pod }, "type", "must be a string, is of type number"],
      [{ type: "ADDED" }, "object", "is missing, must be an object"],
      [{ type: "ADDED", object: [] }, "object", "must be an object, is an array"],
      [{ type: "WEIRD", object: pod }, "type", 'is "WEIRD", which is no type of event'],
      [{ kind: "PodList", items: [] }, "type", "is missing, must be a string (and 1 more)"],
    ];
    for (const [frame, path, reason] of cases) {
      const quarantined = refusal(frame);
      assert.deepEqual([quarantined.path, quarantined.reason], [path, reason]);
    }
  });

  it("names the key and version of what it refuses, where they can be read", () => {
    const object = { metadata: { namespace: "shop", name: "web-1", resourceVersion: "7", labels: null } };
    assert.deepEqual(refusal({ type: "MODIFIED", object }), {
      reason: "must be an object, is null",
      path: "object.metadata.labels",
      key: "shop/web-1",
      resourceVersion: "7",
      eventType: "MODIFIED",
    });
    assert.equal(
      "key" in refusal({ type: "ADDED", object: { metadata: { name: "a", namespace: 1 } } }),
      false,
    );
    assert.equal(refusal({ type: 1, object: pod }).key, "shop/web-1");
    assert.equal("eventType" in refusal({ type: 1, object: pod }), false);
    const refused = (metadata: Record<string, unknown>) => {
      const { key, resourceVersion } = refusal({ type: "ADDED", object: { metadata } });
      return [key, resourceVersion];
    };
    assert.deepEqual(refused({ name: "node-1", uid: 1, resourceVersion: "7" }), ["node-1", "7"]);
    assert.deepEqual(refused({ name: "", namespace: "shop", resourceVersion: 7 }), [undefined, undefined]);
    assert.deepEqual(refused({ name: 1, namespace: "shop" }), [undefined, undefined]);
  });

  it("refuses a Table, whose rows are no objects, but not a Table of another group", () => {
    const table = (apiVersion: string) => ({ type: "ADDED", object: { ...pod, kind: "Table", apiVersion } });
    assert.equal(refusal(table("meta.k8s.io/v1")).path, "object.kind");
    assert.equal(refusal(table("meta.k8s.io/v1beta1")).reason, "is Table, whose rows are no objects");
    assert.equal(newEventValidator()(table("furniture.example/v1")).type, "ADDED");
  });

  it("asks of a bookmark nothing but a resourceVersion", () => {
    const validate = newEventValidator();
    const bookmark = {
      type: "BOOKMARK",
      object: { kind: "Pod", metadata: { resourceVersion: "9", creationTimestamp: null } },
    };
    assert.equal(validate(bookmark), bookmark);
    assert.equal(
      refusal({ type: "BOOKMARK", object: { metadata: {} } }).path,
      "object.metadata.resourceVersion",
    );
    assert.equal(
      refusal({ type: "BOOKMARK", object: { metadata: { resourceVersion: "" } } }).reason,
      "must not be empty",
    );
    assert.equal(
      refusal({ type: "BOOKMARK", object: { metadata: { resourceVersion: "9", annotations: { a: true } } } })
        .path,
      "object.metadata.annotations.a",
    );
  });

  it("hands on an ERROR with its Status", () => {
    const frame = {
      type: "ERROR",
      object: newStatus(410, "Expired", "too old", { causes: [{ reason: "x" }], retryAfterSeconds: 1 }),
    };
    assert.equal(newEventValidator()(frame), frame);
  });

  it("loses no ERROR, even one that cannot be read", () => {
    for (
      const frame of [{ type: "ERROR" }, { type: "ERROR", object: "no" }, {
        type: "ERROR",
        object: { code: "410" },
      }]
    ) {
      const item = newEventValidator()(frame);
      assert.equal(item.type, "ERROR");
      if (item.type !== "ERROR") continue;
      assert.equal(item.object.code, 500);
      assert.equal(item.object.reason, "InternalError");
      assert.match(item.object.message ?? "", /cannot be read: object/);
    }
  });

  describe("with a schema for the kind", () => {
    const Widget = z.looseObject({
      spec: z.looseObject({
        replicas: z.number("must be a number"),
        ports: z.optional(z.array(z.looseObject({ name: z.string() }))),
      }),
    });
    const widget = { ...pod, kind: "Widget", spec: { replicas: 3 } };

    it("accepts what the schema accepts and refuses what it refuses, with the path in the object", () => {
      const validate = newEventValidator({ schema: Widget });
      assert.equal(validate({ type: "ADDED", object: widget }).type, "ADDED");
      const quarantined = refusal(
        { type: "MODIFIED", object: { ...widget, spec: { replicas: "3" } } },
        Widget as Schema<never>,
      );
      assert.deepEqual(quarantined, {
        reason: "must be a number",
        path: "object.spec.replicas",
        key: "shop/web-1",
        resourceVersion: "7",
        eventType: "MODIFIED",
      });
      const inArray = { ...widget, spec: { replicas: 1, ports: [{ name: "a" }, {}] } };
      assert.equal(
        refusal({ type: "ADDED", object: inArray }, Widget as Schema<never>).path,
        "object.spec.ports[1].name",
      );
    });

    it("validates the metadata first", () => {
      assert.equal(
        refusal({ type: "ADDED", object: { metadata: {} } }, Widget as Schema<never>).path,
        "object.metadata.name",
      );
    });

    it("lets a delete through, so that no ghost stays in the cache", () => {
      const frame = { type: "DELETED", object: { ...pod, spec: { replicas: "3" } } };
      assert.equal(newEventValidator({ schema: Widget })(frame), frame);
    });

    it("asks of a delete for a name, as of each object, and for no version", () => {
      const validate = newEventValidator({ schema: Widget });
      assert.equal(validate({ type: "DELETED", object: { metadata: { name: "a" } } }).type, "DELETED");
      const { path } = refusal({ type: "DELETED", object: { metadata: { resourceVersion: "7" } } });
      assert.equal(path, "object.metadata.name");
    });

    it("says of its issues what is there instead, wherever they are", () => {
      const issue = (message: string, path?: SchemaIssue["path"]) => {
        const schema: Schema<KubernetesObject> = {
          "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message, path }] }) },
        };
        const { path: at, reason } = refusal({ type: "ADDED", object: { ...pod, spec: { n: 1 } } }, schema);
        return `${at}: ${reason}`;
      };
      assert.equal(issue("must be blue"), "object: must be blue, is of type object");
      assert.equal(
        issue("must be text", [{ key: "spec" }, { key: "n" }]),
        "object.spec.n: must be text, is of type number",
      );
      assert.equal(issue("must be text", ["a b"]), 'object["a b"]: is missing, must be text');
      assert.equal(issue("bad", [Symbol("s")]), 'object["Symbol(s)"]: bad');
    });

    it("is not asked about bookmarks and errors", () => {
      const schema: Schema<KubernetesObject> = {
        "~standard": { version: 1, vendor: "test", validate: () => assert.fail("asked") },
      };
      const validate = newEventValidator({ schema });
      assert.equal(
        validate({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1" } } }).type,
        "BOOKMARK",
      );
      assert.equal(validate({ type: "ERROR", object: {} }).type, "ERROR");
    });

    it("works with zod itself, whose own message is kept", () => {
      const schema = zod.looseObject({ spec: zod.looseObject({ replicas: zod.number() }) });
      const { reason, path } = refusal(
        { type: "ADDED", object: { ...pod, spec: {} } },
        schema as Schema<never>,
      );
      assert.equal(path, "object.spec.replicas");
      assert.equal(reason, "Invalid input: expected number, received undefined");
    });

    it("reads paths of both shapes that Standard Schema knows", () => {
      const schema: Schema<KubernetesObject> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: () => ({ issues: [{ message: "bad", path: [{ key: "spec" }, 0, { key: "a b" }] }] }),
        },
      };
      assert.equal(refusal({ type: "ADDED", object: pod }, schema).path, 'object.spec[0]["a b"]');
    });

    it("sets an object aside when the schema throws", () => {
      const schema: Schema<KubernetesObject> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: () => (undefined as unknown as { boom(): never }).boom(),
        },
      };
      assert.match(refusal({ type: "ADDED", object: pod }, schema).reason, /^the schema threw TypeError: /);
      const thrower: Schema<KubernetesObject> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: () => {
            // deno-lint-ignore no-throw-literal -- as schemas of users may
            throw "text";
          },
        },
      };
      assert.equal(refusal({ type: "ADDED", object: pod }, thrower).reason, "the schema threw text");
    });

    it("refuses an asynchronous schema with a clear error", () => {
      const schema = zod.looseObject({}).refine(async () => await Promise.resolve(false));
      assert.throws(
        () => newEventValidator<object>({ schema })({ type: "ADDED", object: pod }),
        (error) => error instanceof TypeError && /asynchronous schema \(zod\)/.test(error.message),
      );
    });

    it("leaves no failure of an asynchronous schema unhandled", async () => {
      const validate = () => Promise.reject(new Error("late"));
      const schema = { "~standard": { version: 1 as const, vendor: "own", validate } };
      assert.throws(
        () => newEventValidator<object>({ schema })({ type: "ADDED", object: pod }),
        /asynchronous schema \(own\)/,
      );
      await nextTurn();
    });

    it("takes an empty list of issues for a yes", () => {
      const schema: Schema<KubernetesObject> = {
        "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [] }) },
      };
      assert.equal(newEventValidator({ schema })({ type: "ADDED", object: pod }).type, "ADDED");
    });
  });

  it("calls onInvalid for each refusal, with the frame itself", () => {
    const received: unknown[] = [];
    const frame = { type: "ADDED", object: { metadata: {} } };
    const validate = newEventValidator({
      onInvalid: (quarantined, value) => received.push(quarantined.path, value),
    });
    validate(frame);
    validate({ type: "ADDED", object: pod });
    assert.deepEqual(received, ["object.metadata.name", frame]);
    assert.equal(received[1], frame);
  });
});

describe("newObjectValidator", () => {
  it("validates a list's items, and puts their place before the path", () => {
    const received: unknown[] = [];
    const item = { metadata: { name: "a", namespace: "n", resourceVersion: "3", uid: 1 } };
    const validate = newObjectValidator({ onInvalid: (_, value) => received.push(value) });
    assert.equal(validate(pod, "items[0]"), undefined);
    assert.deepEqual(validate(item, "items[1]"), {
      reason: "must be a string, is of type number",
      path: "items[1].metadata.uid",
      key: "n/a",
      resourceVersion: "3",
    });
    assert.deepEqual(received, [item]);
    assert.equal(validate(null, "items[2]")?.path, "items[2]");
    assert.equal(validate({ metadata: {} }, "")?.path, "metadata.name");
    assert.equal(newObjectValidator()({ metadata: {} }, "[2]")?.path, "[2].metadata.name");
  });
});

describe("validateList", () => {
  const list = {
    kind: "PodList",
    apiVersion: "v1",
    metadata: { resourceVersion: "7", continue: "x", remainingItemCount: 3 },
    items: [],
  };

  it("hands the list back", () => {
    assert.equal(validateList(list, '"pods"'), list);
    assert.equal(validateList({ metadata: {}, items: null }, '"pods"').metadata.resourceVersion, undefined);
  });

  it("refuses a Table as client-go does", () => {
    assert.throws(
      () => validateList({ ...list, kind: "Table", apiVersion: "meta.k8s.io/v1" }, '"pods"'),
      (error) =>
        error instanceof DecodeError &&
        error.message === 'Cannot list "pods": unsupported list: the server answered with a Table ' +
            "(meta.k8s.io/v1), whose rows are no objects; ask for application/json without as=Table",
    );
  });

  it("takes what a list by its kind leaves out for nothing, as Go's clients do", () => {
    assert.deepEqual(validateList({ apiVersion: "v1", kind: "PodList" }, '"pods"'), {
      apiVersion: "v1",
      kind: "PodList",
      metadata: {},
      items: null,
    });
    const { items, metadata, ...of } = list;
    assert.deepEqual(validateList({ ...of, metadata }, '"pods"'), { ...of, metadata, items: null });
    assert.deepEqual(validateList({ ...of, items }, '"pods"'), { ...of, metadata: {}, items });
  });

  it("refuses what is no list, and says why", () => {
    const message = (value: Record<string, unknown>) => {
      try {
        validateList(value, '"pods"');
      } catch (error) {
        assert.ok(error instanceof DecodeError);
        return error.message.replace('Cannot list "pods": the answer is no list: ', "");
      }
      return "accepted";
    };
    assert.equal(message({ items: [] }), "metadata is missing, must be an object");
    for (const kind of [undefined, "Pod"]) assert.equal(message({ kind, metadata: {} }), "items is missing");
    assert.equal(
      message({ ...list, metadata: { resourceVersion: 7 } }),
      "metadata.resourceVersion must be a string, is of type number",
    );
    assert.equal(
      message({ ...list, metadata: { continue: 1 } }),
      "metadata.continue must be a string, is of type number",
    );
  });

  it("throws a Status that says Failure, whatever the HTTP code was", () => {
    assert.throws(
      () => validateList({ ...newStatus(403, "Forbidden", "no") }, '"pods"'),
      (error) => error instanceof StatusError && isForbidden(error),
    );
    // Neither a success nor what only says so is a refusal.
    for (const more of [{ status: "Success" }, { code: "403" }, { kind: "Pod" }]) {
      assert.throws(
        () => validateList({ ...newStatus(403, "Forbidden", "no"), ...more }, '"pods"'),
        DecodeError,
      );
    }
  });
});

describe("newEventValidator: types", () => {
  it("follow the schema of zod, and refuse objects of another kind", () => {
    const Widget = z.looseObject({ spec: z.looseObject({ replicas: z.number() }) });
    const validate = newEventValidator({ schema: Widget });
    const item = validate({ type: "ADDED", object: { ...pod, spec: { replicas: 2 } } });
    assert.ok(item.type === "ADDED");
    const replicas: number = item.object.spec.replicas;
    assert.equal(replicas, 2);
    // @ts-expect-error replicas is a number
    const text: string = item.object.spec.replicas;
    assert.equal(text, 2);
    // what a default would fill in may be missing, as the object is passed on as it came
    const Filled = z.looseObject({
      spec: z._default(z.looseObject({ replicas: z.number() }), { replicas: 1 }),
    });
    const filled = newEventValidator({ schema: Filled })({ type: "ADDED", object: pod });
    assert.ok(filled.type === "ADDED");
    // @ts-expect-error spec may be undefined
    assert.throws(() => filled.object.spec.replicas, TypeError);
  });
});
