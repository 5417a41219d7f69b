/**
 * Random operations on an object whose members are parsed when they are read,
 * and on the same object as `JSON.parse` makes it.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { JsonWriter } from "./json_writer.ts";

export type Loose = Record<string, unknown>;

/** A lazy object, and the same parsed. */
export type Pair = readonly [lazy: Loose, plain: Loose];

/** An object with metadata that a cache can hold, mostly as API servers write it. */
export function textOf(
  writer: JsonWriter,
  { name = "web-1", resourceVersion }: { readonly name?: string; readonly resourceVersion?: string } = {},
): string {
  const member = (): string => `${writer.key(writer.name())}:${writer.value(2)}`;
  const metadata = [
    `"name":"${name}"`,
    '"namespace":"shop"',
    '"uid":"u-1"',
    `"resourceVersion":"${resourceVersion ?? "7"}"`,
  ].filter((_, i) => i === 0 || writer.below(4) > 0 || (i === 3 && resourceVersion !== undefined));
  for (let i = writer.below(3); i > 0; i--) metadata.splice(writer.below(metadata.length + 1), 0, member());
  if (writer.below(2) === 0) metadata.push(`"annotations":{${writer.below(2) === 0 ? '"a":"𝒳"' : ""}}`);
  const members = [`"metadata":{${metadata}}`, '"kind":"Pod"', '"apiVersion":"v1"'];
  for (let i = writer.below(4); i > 0; i--) members.splice(writer.below(members.length + 1), 0, member());
  const text = `{${members}}`;
  // Where a name comes twice its last value counts: no such metadata can be held.
  const { metadata: parsed, kind, apiVersion } = JSON.parse(text);
  const isHeld = typeof parsed?.name === "string" && parsed.name !== "" &&
    (resourceVersion === undefined || parsed.name === name && parsed.resourceVersion === resourceVersion) &&
    ["namespace", "uid", "resourceVersion"].every((name) =>
      /^(string|undefined)$/.test(typeof parsed[name])
    ) &&
    typeof kind === "string" && typeof apiVersion === "string";
  return isHeld ? text : textOf(writer, { name, ...(resourceVersion !== undefined && { resourceVersion }) });
}

/**
 * Does the same to both, and compares what comes of it.
 *
 * @param meanwhile What happens to the lazy one only, in place of an operation.
 */
export function act(
  [lazy, plain]: Pair,
  writer: JsonWriter,
  done: string[],
  meanwhile: readonly (readonly [name: string, act: (key: string) => void])[] = [],
): void {
  const name = writer.of(Object.keys(plain).concat("absent"));
  const isInMetadata = writer.below(3) === 0 && isObject(lazy["metadata"]) && isObject(plain["metadata"]);
  const [a, b] = (isInMetadata ? [lazy["metadata"], plain["metadata"]] : [lazy, plain]) as Pair;
  const key = isInMetadata ? writer.of(Object.keys(b).concat("absent")) : name;
  const same = (what: string, make: (object: Loose) => unknown) => {
    done.push(`${what} ${isInMetadata ? "metadata." : ""}${key}`);
    const outcome = (object: Loose) => {
      try {
        return { value: JSON.stringify(make(object)) };
      } catch (error) {
        return { error: (error as Error).name };
      }
    };
    assert.deepEqual(outcome(a), outcome(b));
  };
  const chosen = writer.below(OPERATIONS + meanwhile.length);
  switch (chosen) {
    case 0:
      return same("keys", Object.keys);
    case 1:
      return same("entries", Object.entries);
    case 2:
      return same("values", Object.values);
    case 3:
      return same("spread", (object) => ({ ...object, more: 1 }));
    case 4:
      return same("assign", (object) => Object.assign({ first: 1 }, object));
    case 5:
      return same("stringify", (object) => JSON.stringify(object));
    case 6:
      return same("clone", (object) => structuredClone(object));
    case 7:
      return same("set", (object) => {
        object[key] = { set: true };
        return object[key];
      });
    case 8:
      return same("delete", (object) => [delete object[key], key in object]);
    case 9:
      return same("in", (object) => [key in object, Object.hasOwn(object, key)]);
    case 10:
      return same("for in", (object) => {
        const names = [];
        for (const each in object) if (Object.hasOwn(object, each)) names.push(each);
        return names;
      });
    case 11:
      return same("freeze", (object) => [Object.isFrozen(Object.freeze(object)), object[key]]);
    case 12:
      // A lazy object has one more, which is no name and not enumerable: console.log calls it.
      return same("own keys", (object) => [
        Reflect.ownKeys(object).filter((key) => typeof key === "string"),
        Object.getOwnPropertySymbols({ ...object }).length,
      ]);
    case 13:
      return same("read", (object) => {
        const value = object[key];
        return [value, Object.is(object[key], value)];
      });
    case 14:
      return same("inherit", (object) => {
        const heir = Object.create(object);
        const before = heir[key];
        heir[key] = "own";
        return [before, Object.keys(heir), object[key]];
      });
    case 15:
      return same("seal", (object) => [Object.isSealed(Object.seal(object)), object[key]]);
    case 16:
      return same(
        "prevent",
        (object) => [Object.isExtensible(Object.preventExtensions(object)), object[key]],
      );
    case 17:
      return same("define", (object) => {
        Object.defineProperty(object, key, {
          value: "defined",
          writable: true,
          enumerable: true,
          configurable: true,
        });
        return object[key];
      });
    case 18:
      return same("enumerable", (object) => Object.prototype.propertyIsEnumerable.call(object, key));
    case 19:
      return same("change inside", (object) => {
        const value = object[key];
        if (isObject(value)) (value as Loose)["inside"] = 1;
        return object[key];
      });
    case 20:
      return same("round trip", (object) => JSON.parse(JSON.stringify(object))[key]);
    case 21:
      return same("descriptors", (object) => {
        const { enumerable, configurable } = Object.getOwnPropertyDescriptor(object, key) ?? {};
        return [enumerable, configurable, Object.getPrototypeOf(object) === Object.prototype];
      });
    case 22:
      return same("nested reads", (object) => {
        const paths: unknown[] = [];
        // Inner members before outer ones, and the last first.
        for (const each of Object.keys(object).reverse()) {
          const value = object[each];
          if (isObject(value)) {
            for (const inner of Object.keys(value as Loose)) paths.push((value as Loose)[inner]);
          }
          paths.push(value === object[each]);
        }
        return paths;
      });
    case 23:
      return same("rest", (object) => {
        const { [key]: taken, ...rest } = object;
        return [taken, rest];
      });
    case 24:
      return same("compute", (object) => [`${typeof object[key]}`, object[key] ?? null, !object[key]]);
    case 25:
      return same("make permanent", (object) => {
        Object.defineProperty(object, key, { configurable: false });
        return object[key];
      });
    case 26:
      return same("hide", (object) => {
        Object.defineProperty(object, key, { enumerable: false });
        return [Object.keys(object), object[key], Object.keys(object)];
      });
    case 27:
      return same("proxy", (object) => {
        const proxy = new Proxy(object, {});
        const before = [proxy[key], Object.is(proxy[key], object[key]), Object.keys(proxy), { ...proxy }];
        proxy[key] = "by proxy";
        return [before, object[key], delete proxy[key], Object.keys(object)];
      });
    case 28:
      return same("copy of descriptors", (object) => {
        const copy = Object.defineProperties({} as Loose, Object.getOwnPropertyDescriptors(object));
        const before = { ...copy };
        // A permanent accessor of a copy cannot become a value.
        if (Object.getOwnPropertyDescriptor(copy, key)?.configurable !== false) copy[key] = "copied";
        return [before, copy[key], object[key]];
      });
    default: {
      const [what, happen] = meanwhile[chosen - OPERATIONS];
      done.push(what);
      happen(key);
    }
  }
}

/** How many operations there are. */
const OPERATIONS = 29;

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Compares what has become of both. */
export function assertSame([lazy, plain]: Pair, writer: JsonWriter): void {
  if (writer.below(10) === 0) assert.deepStrictEqual(lazy, plain);
  assert.equal(JSON.stringify(lazy), JSON.stringify(plain));
  assert.deepEqual(Object.keys(lazy), Object.keys(plain));
}
