/** Faults of the decoders of watches and lists. */

import type { SuiteMutation } from "../mutant.ts";

export const WATCH_FAULTS: readonly SuiteMutation[] = [{
  name: "watch: a reader that has left gets the reason of an abort",
  file: "src/watch/decode_watch.ts",
  find: "    this.#failure = undefined;\n    this.#end();",
  replace: "    this.#end();",
  test: "tests/watch/decode_watch_test.ts",
}, {
  name: "watch: bytes are not counted",
  file: "src/watch/decode_watch.ts",
  find: "if (chunk !== undefined) this.#options.onBytes?.(chunk.byteLength);",
  replace: "",
  test: "tests/watch/decode_watch_test.ts",
}, {
  name: "watch: an item has no type where the list names it after its items",
  file: "src/watch/list_decoder.ts",
  find: "item = asText.reader.read(item.text, type);",
  replace: "",
  test: "tests/watch/list_decoder_test.ts",
}, {
  name: "watch: a validator of items is shown a text",
  file: "src/watch/list_decoder.ts",
  find: "if (!isAccepted) object = JSON.parse(text);",
  replace: "",
  test: "tests/watch/list_decoder_test.ts",
}, {
  name: "watch: an item that is no JSON is taken for one that is too large",
  file: "src/watch/list_decoder.ts",
  find: "if (error instanceof ItemTooLargeError) {",
  replace: "if (error instanceof Error) {",
  test: "tests/watch/list_decoder_test.ts",
}, {
  name: "watch: what a validator of items throws is taken for text that is no JSON",
  file: "src/watch/list_decoder.ts",
  find: "error instanceof SyntaxError ? notJson(error) : error",
  replace: "notJson(error)",
  test: "tests/watch/list_decoder_test.ts",
}, {
  name: "watch: a body may have one byte more than it may",
  file: "src/watch/list_decoder.ts",
  find: "if (bytes > maxBytes) {",
  replace: "if (bytes > maxBytes + 1) {",
  test: "tests/watch/list_decoder_test.ts",
}, {
  name: "watch: a certificate that is not trusted is a server that is not reached",
  file: "src/watch/network_failure.ts",
  find: '  if (UNTRUSTED.test(words)) return "UntrustedCertificate";\n',
  replace: "",
  test: "tests/watch/network_failure_test.ts",
}, {
  name: "watch: an error without a text hides the text of the one around it",
  file: "src/watch/network_failure.ts",
  find: 'failures.findLast(({ message }) => message !== "")',
  replace: "failures.at(-1)",
  test: "tests/watch/network_failure_test.ts",
}, {
  name: "watch: what is quarantined of texts is handed out",
  file: "src/watch/decode_watch.ts",
  find: 'if (item.type === "QUARANTINED" || item.type === "ERROR") return item;',
  replace: 'if (item.type === "ERROR") return item;',
  test: "tests/watch/decode_watch_test.ts",
}, {
  name: "lists: the first of two keys of items counts where the list has named their type",
  file: "src/watch/list_decoder.ts",
  find: 'if (this.#type === "unknown" || items.length > 0) {',
  replace: 'if (this.#type === "unknown") {',
  test: "tests/watch/list_decoder_test.ts",
}];
