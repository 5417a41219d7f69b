/**
 * What Kubernetes allows as a label's key and value.
 * @module
 */

const MAX_NAME_LENGTH = 63;
const MAX_PREFIX_LENGTH = 253;

const NAME = /^[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*$/;
const SUBDOMAIN = /^[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)*$/;

const NAME_RULE =
  "must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit";
const SUBDOMAIN_RULE =
  "must consist of lower case letters, digits, '-' or '.', and every part start and end with a letter or digit";

/**
 * Tells what is wrong with a label key: `name` or `dns.subdomain/name`, the name at most 63 and the prefix at most 253
 * characters. `undefined` means it is fine.
 *
 * Mirrors apimachinery's `content.IsLabelKey`.
 */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  if (slash !== key.lastIndexOf("/")) {
    return `the label key ${quoted(key)} has more than one '/': want "name" or "example.com/name"`;
  }
  const what = `the label key ${quoted(key)}`;
  if (slash >= 0) {
    const prefix = key.slice(0, slash);
    if (prefix === "") return `${what} has an empty prefix`;
    // Lengths first: the patterns then never see a long text.
    if (prefix.length > MAX_PREFIX_LENGTH) return `${what} has a prefix longer than ${MAX_PREFIX_LENGTH}`;
    if (!SUBDOMAIN.test(prefix)) return `the prefix of ${what} ${SUBDOMAIN_RULE}`;
  }
  const name = key.slice(slash + 1);
  if (name === "") return `${what} has an empty name`;
  if (name.length > MAX_NAME_LENGTH) return `the name of ${what} is longer than ${MAX_NAME_LENGTH}`;
  return NAME.test(name) ? undefined : `the name of ${what} ${NAME_RULE}`;
}

/**
 * Tells what is wrong with a label value: empty, or a name of at most 63 characters. `undefined` means it is fine.
 *
 * Mirrors apimachinery's `content.IsLabelValue`.
 */
export function labelValueProblem(value: string): string | undefined {
  if (value === "") return undefined;
  if (typeof value !== "string") return `a label value must be a string, not ${typeof value}`;
  const what = `the label value ${quoted(value)}`;
  if (value.length > MAX_NAME_LENGTH) return `${what} is longer than ${MAX_NAME_LENGTH}`;
  return NAME.test(value) ? undefined : `${what} ${NAME_RULE}`;
}

/** A text in quotes, shortened if it is long. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
