/** Faults of work queues. */

import type { SuiteMutation } from "../mutant.ts";

export const WORKQUEUE_FAULTS: readonly SuiteMutation[] = [
  {
    name: "work queue: metrics that throw hold up items",
    file: "src/workqueue/metrics.ts",
    find: "callGuarded(() => metric[method](value), () => {});",
    replace: "metric[method](value);",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: an item that is added again while a worker has it goes to another one, too",
    file: "src/workqueue/work_queue.ts",
    find: "if (!this.#processing.has(key)) this.#push(item);",
    replace: "this.#push(item);",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: a shutdown leaves its listener on the signal",
    file: "src/workqueue/work_queue.ts",
    find: "    this.#unlink?.();\n",
    replace: "",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: a worker that comes to a paused queue takes an item",
    file: "src/workqueue/work_queue.ts",
    find: "if (this.#order.length > 0 && !this.#paused) return this.#take();",
    replace: "if (this.#order.length > 0) return this.#take();",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: a worker that waits takes what is added to a paused queue",
    file: "src/workqueue/work_queue.ts",
    find: "if (this.#paused || this.#order.length === 0) return;",
    replace: "if (this.#order.length === 0) return;",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: a resumed queue wakes no worker",
    file: "src/workqueue/work_queue.ts",
    find: "    this.#paused = false;\n    this.#handOut();\n",
    replace: "    this.#paused = false;\n",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "delaying queue: an item that waits is never added earlier",
    file: "src/workqueue/delaying_queue.ts",
    find: "known !== undefined && known.readyAtMs <= readyAtMs",
    replace: "known !== undefined",
    test: "tests/workqueue/delaying_queue_test.ts",
  },
  {
    name: "work queue: half a worker is one",
    file: "src/workqueue/parallelize.ts",
    find: "  const count = Math.min(Math.floor(workers), Math.ceil(pieces / chunkSize));",
    replace: "  const count = Math.min(Math.ceil(workers), Math.ceil(pieces / chunkSize));",
    test: "tests/workqueue/parallelize_test.ts",
  },
];
