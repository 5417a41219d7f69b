import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changes, type Size, type SizeCase, tooLarge } from "../../scripts/check_size.ts";

function size(files: Record<string, number>, gzip: number = 0): Size {
  return { gzip, minified: Object.values(files).reduce((sum, bytes) => sum + bytes, 0), files };
}

describe("tooLarge and changes", () => {
  it("names what grew, by room and by file, the largest growth first", () => {
    const before = size({
      "src/store/store.ts": 100,
      "src/store/heap.ts": 50,
      "src/util/abort.ts": 10,
      "mod.ts": 1,
    });
    const after = size({
      "src/store/store.ts": 130,
      "src/util/abort.ts": 90,
      "src/queue/fifo.ts": 5,
      "mod.ts": 1,
    });
    const { rooms, files } = changes(before, after);
    assert.deepEqual(rooms.map(({ path, before, after }) => [path, after - before]), [
      ["src/util/", 80],
      ["src/queue/", 5],
      ["src/store/", -20],
    ]);
    assert.deepEqual(files.map(({ path, before, after }) => [path, before, after]), [
      ["src/util/abort.ts", 10, 90],
      ["src/store/store.ts", 100, 130],
      ["src/queue/fifo.ts", 0, 5],
      ["src/store/heap.ts", 50, 0],
    ]);
  });

  it("takes zod as one room", () => {
    const { rooms } = changes(size({}), size({ "zod/v4/core/core.js": 7, "zod/v4/mini/schemas.js": 3 }));
    assert.deepEqual(rooms, [{ path: "zod/", before: 0, after: 10 }]);
  });

  it("fails for what is over its ceiling, and only for that", () => {
    const cases: SizeCase[] = [
      { name: ".", program: "", withZod: false, ceiling: 20_000, target: 10_000 },
      { name: "./workqueue", program: "", withZod: false, ceiling: 3_000 },
    ];
    assert.deepEqual(tooLarge({ ".": size({}, 20_000), "./workqueue": size({}, 3_000) }, cases), []);
    assert.deepEqual(tooLarge({ ".": size({}, 20_150), "./workqueue": size({}, 2_000) }, cases), [
      ". is 20.1 KB compressed, 150 bytes over its ceiling of 20.0 KB",
    ]);
  });
});
