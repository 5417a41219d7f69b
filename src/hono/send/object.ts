/** Answers to gets. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import type { Held } from "../../store/holding.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { type EntityTags, notModified, OBJECT_HEADERS, VARY } from "./responses.ts";
import { indentedText, matchesTag } from "../../protocol/responses.ts";
import type { Content } from "../content/content.ts";
import { GZIP_LEAST_BYTES, gzipBytes, gzipResponse } from "./gzip.ts";
import type { Reader } from "../request/readers.ts";
import { tooManyRequests } from "../request/refusals.ts";
import type { Form, View } from "../request/requested_read.ts";
import { loadYaml } from "./yaml.ts";

export interface ObjectAnswerRequest {
  readonly key: string;
  readonly view: View;
  readonly form: Form;
  readonly tags: EntityTags;
  readonly reader: Reader;
}

/** The answer to a get. It is 304 if the client has the object already, which is then not opened. */
export async function answerObject(
  content: Content<KubernetesObject>,
  held: Held<KubernetesObject>,
  request: ObjectAnswerRequest,
): Promise<Response | Status> {
  const { key, view, form: { mediaType, pretty, gzip, ifNoneMatch } } = request;
  const tag = view.sharedAs === undefined
    ? undefined
    : request.tags.ofObject(content.log, held, JSON.stringify([key, view.sharedAs, mediaType, pretty]));
  if (tag !== undefined && matchesTag(ifNoneMatch, tag)) return notModified(tag);
  const headers = { ...OBJECT_HEADERS[mediaType], ...VARY, ...(tag !== undefined && { ETag: tag }) };
  const json = objectText(content, held, { view, pretty: pretty && mediaType === "application/json" });
  const text = mediaType === "application/yaml" ? (await loadYaml()).document(json) : json;
  if (!request.reader.take(text.length)) return tooManyRequests();
  // A text has at least as many bytes as characters.
  if (!gzip || text.length < GZIP_LEAST_BYTES) return new Response(text, { headers });
  return gzipResponse(await gzipBytes(encodeUtf8(text)), headers);
}

function objectText(
  { holding }: Content<KubernetesObject>,
  held: Held<KubernetesObject>,
  { view, pretty }: { readonly view: View; readonly pretty: boolean },
): string {
  if (pretty) return indentedText(view.one(holding.peek(held)));
  const json = view.objectText && holding.json(held, view.cut);
  return `${(json && view.objectText?.(json)) ?? JSON.stringify(view.one(holding.peek(held)))}\n`;
}
