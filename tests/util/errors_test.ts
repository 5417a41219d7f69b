import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { atOnce, CacheError, callGuarded, errorMessage, findCause, toError } from "../../src/util/errors.ts";
import { requireNumbers } from "../../src/util/require_number.ts";

class Odd extends CacheError {}

async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await Promise.resolve();
}

describe("CacheError", () => {
  it("has a code, the name of its class, and a cause only where one was given", () => {
    const error = new Odd("Odd", "it is odd");
    assert.deepEqual([error.code, error.name, "cause" in error], ["Odd", "Odd", false]);
    assert.equal(new Odd("Odd", "it is odd", { cause: 0 }).cause, 0);
  });
});

describe("errorMessage", () => {
  it("has a text for anything that can be thrown", () => {
    const thrower = {
      toString() {
        throw new Error("no");
      },
    };
    const thrown = [new Error("why"), "why", 5, undefined, Object.create(null), thrower];
    const none = "something without a text";
    assert.deepEqual(thrown.map(errorMessage), ["why", "why", "5", "undefined", none, none]);
    assert.deepEqual([toError(thrown[0]) === thrown[0], toError("why").message], [true, "why"]);
  });
});

describe("findCause", () => {
  it("finds the first of a class among the causes, and ends where these go in a circle", () => {
    const odd = new Odd("Odd", "it is odd", { cause: new Odd("Odd", "inner") });
    const wrapped = new Error("outer", { cause: new Error("middle", { cause: odd }) });
    assert.equal(findCause(wrapped, Odd), odd);
    assert.equal(findCause(odd, Odd), odd);
    assert.equal(findCause(new AggregateError([new Error("other"), wrapped]), Odd), odd);
    assert.equal(findCause("text", Odd), undefined);
    const circle = new Error("circle");
    circle.cause = circle;
    assert.equal(findCause(circle, Odd), undefined);
    const nested = (depth: number) => {
      let error: Error = odd;
      for (let i = 1; i < depth; i++) error = new Error("outer", { cause: error });
      return error;
    };
    assert.deepEqual([findCause(nested(16), Odd), findCause(nested(17), Odd)], [odd, undefined]);
  });
});

describe("atOnce", () => {
  it("refuses a promise, whose rejection nothing else would handle", async () => {
    assert.equal(atOnce(5), 5);
    assert.throws(() => atOnce(Promise.reject(new Error("late"))), TypeError);
    await settled();
  });
});

describe("callGuarded", () => {
  it("passes on what is thrown, at once or later", async () => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    callGuarded(() => {
      throw errors; // anything can be thrown
    }, onError);
    callGuarded((text: string) => Promise.reject(text), onError, "later");
    callGuarded(() => Promise.resolve(), onError);
    await settled();
    assert.equal(errors.shift(), errors);
    assert.deepEqual(errors, ["later"]);
  });
});

describe("requireNumbers", () => {
  const isFine = (value: unknown, rule?: Parameters<typeof requireNumbers>[2]) => {
    try {
      requireNumbers("wait", { ms: value as number }, rule);
      return true;
    } catch (error) {
      assert.ok(error instanceof RangeError);
      return false;
    }
  };

  it("takes finite numbers from 0 on, or what the rule says, and what is left out", () => {
    const values = [undefined, 0, 1.5, -1, Infinity, -Infinity, NaN, "5", null];
    const fine = (rule?: Parameters<typeof requireNumbers>[2]) =>
      values.filter((value) => isFine(value, rule));
    assert.deepEqual(fine(), [undefined, 0, 1.5]);
    assert.deepEqual(fine({ mayBeInfinite: true }), [undefined, 0, 1.5, Infinity]);
    assert.deepEqual(fine({ least: -Infinity, mayBeInfinite: true }), [
      undefined,
      0,
      1.5,
      -1,
      Infinity,
      -Infinity,
    ]);
    assert.deepEqual(fine({ isWhole: true }), [undefined, 0]);
    assert.deepEqual(fine({ least: 1 }), [undefined, 1.5]);
  });

  it("names what is wrong, and what would be right", () => {
    assert.throws(() => requireNumbers("wait", { ms: NaN }), {
      message: "Cannot wait with a ms of NaN: it must be a finite number of 0 or more",
    });
    assert.throws(() => requireNumbers("wait", { turns: 0.5 }, { least: 1, isWhole: true }), {
      message: "Cannot wait with a turns of 0.5: it must be a whole number of 1 or more",
    });
  });
});
