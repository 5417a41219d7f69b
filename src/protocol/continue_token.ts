/** Tokens at which the next page of a list begins. */

import { isComparableResourceVersion } from "../meta/object.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { fromBase64, toBase64 } from "../util/bytes.ts";
import { errorMessage } from "../util/errors.ts";
import { textHash } from "../util/hash.ts";

export interface ContinueToken {
  /** The resourceVersion of the list, or {@linkcode LATEST}. */
  readonly resourceVersion: string;
  /** The first key that may be on the next page; without its namespace in a list of one namespace. */
  readonly start: string;
  /** The {@linkcode listIdentity} of the list; absent where the server does not bind tokens to lists. */
  readonly list?: string;
  /** The writer of the token, and the epoch of its content. */
  readonly epoch?: string;
}

/** The resourceVersion of a token that continues with the present state. */
export const LATEST = "-1";

const API_VERSION = "meta.k8s.io/v1";
// A key has at most 253 characters each for namespace and name; this is more than twice what they take.
const MAX_TOKEN_LENGTH = 2_048;
// A merged version has a part for each shard.
const MAX_VERSION_LENGTH = 512;

/**
 * A short text that identifies a list: its resource, namespace, selectors and reader.
 *
 * It finds mistakes and is no protection: a forged token returns what its request is allowed to read, from
 * the place that the token names. Namespace and permission always come from the request.
 */
export function listIdentity(parts: readonly string[]): string {
  return textHash(JSON.stringify(parts));
}

/**
 * Writes a token in the form of kube-apiserver up to 1.37, with a slash before its key; 1.38 reads it, too:
 * https://github.com/kubernetes/apiserver/blob/master/pkg/storage/continue.go
 *
 * A token holds a decimal version of up to 512 digits. With any other, that of a list without a version for
 * instance, it continues with the present state.
 */
export function encodeContinue({ resourceVersion, start, list, epoch }: ContinueToken): string {
  const rest = JSON.stringify({ start: `/${start}`, list, epoch }).slice(1);
  const isShort = resourceVersion.length <= MAX_VERSION_LENGTH;
  const version = isShort && isComparableResourceVersion(resourceVersion) ? resourceVersion : LATEST;
  // The digits as they are: a revision may be beyond 2^53.
  return toBase64(`{"v":"${API_VERSION}","rv":${version},${rest}`).replaceAll("+", "-").replaceAll("/", "_")
    .replace(/={1,2}$/, "");
}

/**
 * Reads a token, or returns the Status that refuses it: 400. Takes a key without its slash, too, as 1.38
 * and old servers write it. Mirrors apiserver's `storage.DecodeContinue`.
 */
export function decodeContinue(token: string): ContinueToken | Status {
  if (token.length > MAX_TOKEN_LENGTH) return refusal(`it is longer than ${MAX_TOKEN_LENGTH} characters`);
  // Go's base64.RawURLEncoding: without padding.
  const illegal = token.search(/[^A-Za-z0-9_-]/);
  if (illegal >= 0 || token.length % 4 === 1) {
    return refusal(`illegal base64 data at input byte ${illegal < 0 ? token.length - 1 : illegal}`);
  }
  let value: unknown;
  let json = "";
  try {
    json = fromBase64(token);
    value = JSON.parse(json);
  } catch (error) {
    return refusal(errorMessage(error));
  }
  const { v, rv, start, list, epoch } = (value ?? {}) as Record<string, unknown>;
  if (v !== API_VERSION) return refusal(`server does not recognize this encoded version ${v ?? ""}`);
  const resourceVersion = typeof rv === "number"
    ? /"rv":(-1|[1-9][0-9]{0,511})[,}]/.exec(json)?.[1]
    : undefined;
  if (resourceVersion === undefined) {
    return refusal(`incorrect encoded start resourceVersion (version ${API_VERSION})`);
  }
  if (typeof start !== "string" || start === "") {
    return refusal(`encoded start key empty (version ${API_VERSION})`);
  }
  const key = start.replace(/^\//, "");
  // A key that would leave its list on the API server: https://pkg.go.dev/path#Clean
  if (key.split("/").some((part) => /^\.{0,2}$/.test(part))) return refusal(start);
  return {
    resourceVersion,
    start: key,
    ...(typeof list === "string" && { list }),
    ...(typeof epoch === "string" && { epoch }),
  };
}

function refusal(reason: string): Status {
  return newStatus(400, "BadRequest", `invalid continue token: continue key is not valid: ${reason}`);
}
