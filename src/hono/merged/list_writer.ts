/**
 * Writing a merged list, and sending it.
 * @module
 */

import { indentedText } from "../../protocol/responses.ts";
import { GZIP_LEAST_BYTES, gzipChunks, gzipResponse } from "../send/gzip.ts";
import type { YamlWriter } from "../send/yaml.ts";
import { encode } from "../watches/encoding.ts";

/** Writes a list around its items. */
export class ListWriter {
  readonly #pretty: boolean;
  readonly #yaml: YamlWriter | undefined;
  readonly #itemsField: string;
  readonly #head: string;
  readonly #tail: string;
  #count = 0;

  constructor(
    head: Readonly<Record<string, unknown>>,
    { itemsField, pretty, yaml }: {
      readonly itemsField: string;
      readonly pretty: boolean;
      readonly yaml: YamlWriter | undefined;
    },
  ) {
    this.#pretty = pretty;
    this.#yaml = yaml;
    this.#itemsField = itemsField;
    if (yaml !== undefined) {
      const part = (isWithin: (field: string) => boolean) => {
        const fields = Object.entries(head).filter(([field]) => isWithin(field));
        return fields.length === 0 ? "" : yaml.document(JSON.stringify(Object.fromEntries(fields)));
      };
      this.#head = part((field) => field < itemsField);
      this.#tail = part((field) => field > itemsField);
      return;
    }
    const text = pretty
      ? indentedText({ ...head, [itemsField]: [] })
      : `${JSON.stringify({ ...head, [itemsField]: [] })}\n`;
    const end = text.lastIndexOf("]");
    this.#head = text.slice(0, end);
    this.#tail = text.slice(end);
  }

  item(json: string): string {
    const isFirst = this.#count++ === 0;
    if (this.#yaml !== undefined) {
      return (isFirst ? `${this.#head}${this.#itemsField}:\n` : "") + this.#yaml.item(json);
    }
    const before = isFirst ? this.#head : ",";
    if (!this.#pretty) return before + json;
    return `${before}\n    ${indentedText(JSON.parse(json)).replaceAll("\n", "\n    ")}`;
  }

  end(): string {
    if (this.#yaml !== undefined) {
      return (this.#count === 0 ? `${this.#head}${this.#itemsField}: []\n` : "") + this.#tail;
    }
    const lineBreak = this.#pretty && this.#count > 0 ? "\n  " : "";
    return (this.#count === 0 ? this.#head : "") + lineBreak + this.#tail;
  }
}

/** The answer with a list: what is small is sent as a whole, the rest as a stream. */
export async function listResponse(
  pieces: AsyncGenerator<string>,
  { headers, gzip, cancel }: {
    readonly headers: Headers;
    readonly gzip: boolean;
    readonly cancel: () => void;
  },
): Promise<Response> {
  const first: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  let isDone = false;
  while (bytes < GZIP_LEAST_BYTES && !isDone) {
    const { done, value } = await pieces.next();
    if (value !== undefined) {
      first.push(encode(value));
      bytes += first.at(-1)!.byteLength;
    }
    isDone = done === true;
  }
  if (isDone) return new Response(new Blob(first), { headers });
  const next = async () => {
    if (first.length > 0) return first.shift();
    const { value } = await pieces.next();
    return value === undefined ? undefined : encode(value);
  };
  const chunks = gzip ? gzipChunks(next) : undefined;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const chunk = chunks === undefined ? await next() : (await chunks.next()).value ?? undefined;
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      } catch (error) {
        cancel();
        throw error;
      }
    },
    cancel() {
      chunks?.return(undefined).catch(() => {});
      cancel();
    },
  }, { highWaterMark: 0 });
  return gzip ? gzipResponse(body, Object.fromEntries(headers)) : new Response(body, { headers });
}
