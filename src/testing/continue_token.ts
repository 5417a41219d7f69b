/**
 * The token at which the next page of a list begins.
 * @module
 */

import { errorMessage } from "../util/errors.ts";
import { badRequest } from "./api_errors.ts";
import { isJsonObject } from "./json.ts";

/** Where a page begins. */
export interface PageStart {
  /** The revision of the list; `undefined`: the newest, for a list that has become inconsistent. */
  readonly revision: bigint | undefined;
  /** The first key that may be on the page. */
  readonly key: string;
}

const API_VERSION = "meta.k8s.io/v1";

/** Writes a token, in the form that kube-apiserver gives it. */
export function encodeContinue({ revision, key }: PageStart): string {
  const json = `{"v":"${API_VERSION}","rv":${revision ?? -1},"start":${JSON.stringify(key)}}`;
  const bytes = new TextEncoder().encode(json);
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/={1,2}$/, "");
}

/**
 * Reads a token.
 *
 * @throws {StatusError} 400: it is none.
 */
export function decodeContinue(token: string): PageStart {
  const refuse = (reason: string) =>
    badRequest(`invalid continue token: continue key is not valid: ${reason}`);
  let value: unknown;
  let json = "";
  try {
    const text = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
    json = new TextDecoder().decode(Uint8Array.from(text, (unit) => unit.charCodeAt(0)));
    value = JSON.parse(json);
  } catch (error) {
    throw refuse(errorMessage(error));
  }
  if (!isJsonObject(value) || value.v !== API_VERSION) {
    const version = isJsonObject(value) ? value.v : "";
    throw refuse(`server does not recognize this encoded version ${version}`);
  }
  // The text of the number: a revision may be beyond 2^53.
  const revision = /"rv":(-1|[1-9][0-9]*)[,}]/.exec(json)?.[1];
  if (revision === undefined) {
    throw refuse(`incorrect encoded start resourceVersion (version ${API_VERSION})`);
  }
  if (typeof value.start !== "string" || value.start === "") {
    throw refuse(`encoded start key empty (version ${API_VERSION})`);
  }
  return { revision: revision === "-1" ? undefined : BigInt(revision), key: value.start };
}
