/**
 * Deliberate faults that no simulated world can have, or hardly ever: each of them the tests named must notice.
 * @module
 */

import type { Mutation } from "./simulation/mutations.ts";

/** One fault, and who notices it. */
export interface SuiteMutation extends Mutation {
  /** The test file, from the root of the project. */
  readonly test: string;
}

/** The faults, in the order the data walks. */
export const SUITE_MUTATIONS: readonly SuiteMutation[] = [
  {
    name: "watch: the limit of a frame is counted in characters",
    file: "src/watch/frame_cutter.ts",
    find:
      "frame.length > this.#maxFrameBytes || new TextEncoder().encode(frame).length > this.#maxFrameBytes",
    replace: "frame.length > this.#maxFrameBytes",
    test: "tests/watch/decode_watch_test.ts",
  },
  {
    name: "watch: a frame is not measured that has fewer characters than it may have bytes",
    file: "src/watch/frame_cutter.ts",
    find: "if (frame.length * 3 <= this.#maxFrameBytes) return false;",
    replace: "if (frame.length <= this.#maxFrameBytes) return false;",
    test: "tests/watch/decode_watch_test.ts",
  },
  {
    name: "watch: a frame without an end grows and grows",
    file: "src/watch/frame_cutter.ts",
    find: "    this.#restLength += part.length;\n    if",
    replace: "    this.#restLength = part.length;\n    if",
    test: "tests/watch/decode_watch_test.ts",
  },
  {
    name: "projection: one wrong guess makes up for another",
    file: "src/watch/projection.ts",
    find: "        if (this.#hasGuessed) return false;\n",
    replace: "",
    test: "tests/watch/projection_test.ts",
  },
  {
    name: "projection: half a value passes for a whole one in what is skipped",
    file: "src/watch/projection.ts",
    find: "const isScalar = SCALAR.test(text.slice(this.#position, i));",
    replace: "const isScalar = i > this.#position;",
    test: "tests/watch/projection_test.ts",
  },
  {
    name: "reflector: the delay after losses does not grow",
    file: "src/reflector/retry_pacing.ts",
    find: "    this.#delayMs = Math.min(this.#delayMs * 2, LAST_RELIST_MS);\n",
    replace: "",
    test: "tests/reflector/retry_pacing_test.ts",
  },
  {
    name: "reflector: a relist that is due is forgotten when the watch reopens",
    file: "src/reflector/follow_watch.ts",
    find: "  guard.relistAt(losses.dueMs);\n",
    replace: "",
    test: "tests/reflector/reflector_test.ts",
  },
  {
    name: "reflector: a list leaves a listener",
    file: "src/reflector/patient_source.ts",
    find: "      silence.stop();\n      link.unlink();",
    replace: "      silence.stop();",
    test: "tests/reflector/reflector_life_test.ts",
  },
  {
    name: "reflector: a streamed list leaves a listener",
    file: "src/reflector/watch_list.ts",
    find: "    deadline.stop();\n    link.unlink();",
    replace: "    deadline.stop();",
    test: "tests/reflector/reflector_life_test.ts",
  },
  {
    name: "informer: a change that an index function refuses once is lost for good",
    file: "src/informer/process_deltas.ts",
    find: 'delta.type !== "Replaced" && delta.type !== "Sync"',
    replace: 'delta.type === "Deleted"',
    test: "tests/informer/refused_for_a_while_test.ts",
  },
  {
    name: "informer: a wait for a version leaves a listener",
    file: "src/meta/version_waiters.ts",
    find: "          unlisten();\n          resolve(how);",
    replace: "          resolve(how);",
    test: "tests/meta/version_waiters_test.ts",
  },
  {
    name: "store: what was patched in is put in though the store was written to meanwhile",
    file: "src/store/replacement.ts",
    find: "      if (this.#content.writes !== writes) return false;\n",
    replace: "",
    test: "tests/store/replace_in_steps_test.ts",
  },
  {
    name: "store: an index function is asked about what stands in for a refused object",
    file: "src/store/replacement.ts",
    find: "return this.#known(key, instead) ??\n      {",
    replace: "return {",
    test: "tests/store/replace_test.ts",
  },
  {
    name: "store: keys under several labels are in no order",
    file: "src/store/label_index.ts",
    find: "return Array.from(keys).sort();",
    replace: "return Array.from(keys);",
    test: "tests/hono/reads_test.ts",
  },
  {
    name: "work queue: a wait for an item leaves a listener",
    file: "src/workqueue/work_queue.ts",
    find: "    try {\n      return await getter.promise;\n    } finally {\n      stop?.();\n    }",
    replace: "    void stop;\n    return await getter.promise;",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "work queue: it listens to its own signal when it was shut down",
    file: "src/workqueue/work_queue.ts",
    find: "    this.#unlink?.();\n",
    replace: "",
    test: "tests/workqueue/work_queue_test.ts",
  },
  {
    name: "read API: a token of another list is good for this one",
    file: "src/hono/continue_token.ts",
    find: 'return list === identity ? { resourceVersion: rv, start } : "foreign";',
    replace: "return { resourceVersion: rv, start };",
    test: "tests/hono/reads_test.ts",
  },
  {
    name: "read API: a token leads out of the namespace",
    file: "src/hono/list.ts",
    find: "if (token.start > start) start = token.start;",
    replace: "start = token.start;",
    test: "tests/hono/reads_test.ts",
  },
  {
    name: "read API: a list goes on in the next namespace",
    file: "src/hono/list.ts",
    find: "lowerBound(keys, `${at.namespace}0`)",
    replace: "lowerBound(keys, `${at.namespace}1`)",
    test: "tests/hono/reads_test.ts",
  },
  {
    name: "read API: a list shows an object as it was listed before",
    file: "src/hono/snapshot.ts",
    find: "  updated(): void {\n    this.#snapshot = undefined;\n  }",
    replace: "  updated(): void {}",
    test: "tests/hono/reads_test.ts",
  },
  {
    name: "read API: a bookmark comes while initial events wait",
    file: "src/hono/watch_stream.ts",
    find: "return this.#initialDone && this.#cursor === this.#log.head;",
    replace: "return this.#cursor === this.#log.head;",
    test: "tests/hono/watch_test.ts",
  },
  {
    name: "read API: a delete of which only the key was known takes a watch back",
    file: "src/hono/watch_stream.ts",
    find: "      if (isOld) {",
    replace: "      if (isOld && entry.position === undefined) {",
    test: "tests/hono/watch_test.ts",
  },
  {
    name: "read API: whatever is not a refusal opens the gate",
    file: "src/hono/gate.ts",
    find: "if (decision === true) return undefined;",
    replace: 'if (decision !== false && typeof decision !== "string") return undefined;',
    test: "tests/hono/gate_test.ts",
  },
  {
    name: "read API: a user without a name is known",
    file: "src/hono/gate.ts",
    find: '  if (typeof name !== "string" || name === "") return false;\n',
    replace: "",
    test: "tests/hono/gate_test.ts",
  },
  {
    name: "read API: a credential that has ended is good for the next request",
    file: "src/hono/gate.ts",
    find: "isOver(user, clock) ? unauthorized() : user",
    replace: "user",
    test: "tests/hono/gate_test.ts",
  },
  {
    name: "read API: Secrets are known by their name only",
    file: "src/hono/read_api.ts",
    find: "isSecrets(resource) || isSecrets(options.resources[i].informer.resource)",
    replace: "isSecrets(resource)",
    test: "tests/hono/gate_test.ts",
  },
  {
    name: "read API: an allow-list forgets requests for all namespaces",
    file: "src/hono/allow_namespaces.ts",
    find: 'if (request.scope !== "namespace" || !inNamespaces.has(request.namespace)) {',
    replace: 'if (request.scope === "namespace" && !inNamespaces.has(request.namespace)) {',
    test: "tests/hono/hooks_test.ts",
  },
  {
    name: "read API: whatever an access review says that is no no is a yes",
    file: "src/hono/access_review.ts",
    find: "const isAllowed = allowed === true &&",
    replace: "const isAllowed = Boolean(allowed) &&",
    test: "tests/hono/hooks_test.ts",
  },
  {
    name: "read API: a review is good for ever",
    file: "src/hono/answer_cache.ts",
    find: "if (known.untilMs > monotonicNow(this.#options.clock)) {",
    replace: "if (known.untilMs > 0) {",
    test: "tests/hono/hooks_test.ts",
  },
  {
    name: "read API: a watch goes on for another user",
    file: "src/hono/watch_life.ts",
    find: "if (isStatus(answer) || answer.user?.name !== known?.name) return",
    replace: "if (isStatus(answer)) return",
    test: "tests/hono/watch_life_test.ts",
  },
  {
    name: "read API: a watch tells on after its credential has ended",
    file: "src/hono/watch_stream.ts",
    find: "      if (this.#life?.isOver) return this.stop();\n",
    replace: "",
    test: "tests/hono/watch_life_test.ts",
  },
  {
    name: "read API: a client may have as many readers as it likes",
    file: "src/hono/readers.ts",
    find: "        if (count >= this.#options.maxReadersPerClient) return false;\n",
    replace: "",
    test: "tests/hono/readers_test.ts",
  },
  {
    name: "read API: a list is let go in the middle of being read",
    file: "src/hono/encoding.ts",
    find: "      awaitReader(controller);\n      controller.enqueue",
    replace: "      controller.enqueue",
    test: "tests/hono/readers_test.ts",
  },
  {
    name: "watch: an item of a list grows and grows",
    file: "src/watch/list_cutter.ts",
    find: "if (this.#restLength > this.#maxItemLength) ",
    replace: "if (this.#restLength === Infinity) ",
    test: "tests/client/large_answers_test.ts",
  },
  {
    name: "selectors: of many keys each label counts as one that must be there",
    file: "src/meta/compiled_labels.ts",
    find: "        if (condition.mustExist) missing--;\n",
    replace: "        missing--;\n",
    test: "tests/meta/compiled_labels_test.ts",
  },
];
