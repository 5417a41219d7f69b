/** The parameter `shardSelector` (KEP-5866): ranges of hashes, in a small part of CEL. */

import { type ShardField, ShardSelector } from "../meta/shard_hash.ts";
import { quotedByGo, shortened } from "./statuses.ts";

/**
 * Reads calls of `shardRange`, joined by `||`. Mirrors apiserver's `sharding.Parse` and its texts. The rest
 * of CEL, such as parentheses around a call, is refused as no CEL.
 * @throws {TypeError} Why an API server refuses it.
 */
export function parseShardSelector(text: string): ShardSelector {
  if (text.trim() === "") {
    throw refusal("empty shard selector is not allowed; omit the parameter for unfiltered lists");
  }
  const ranges = callsOf(text).map(rangeOf);
  const [{ field }] = ranges;
  const other = ranges.find((each) => each.field !== field)?.field;
  if (other === undefined) return new ShardSelector(field, ranges.map(({ range }) => range));
  const fields = `"object.metadata.${field}" and "object.metadata.${other}"`;
  throw refusal(`all shard ranges must use the same field, got ${fields}`);
}

/** The operands of `||`, and what each has in parentheses if it is a call. */
function callsOf(text: string): (readonly [operand: string, args: string | undefined])[] {
  const next =
    /\s*([A-Za-z_][\w.]*|'[^'\\]*'|"[^"\\]*"|-?\d+)\s*(?:\(((?:[^()]|\([^()]*\))*)\)\s*)?(\|\||&&|[=!<>]=|[-<>+*/%]|$)/y;
  const calls: [string, string | undefined][] = [];
  for (let operator = "||"; operator !== "";) {
    const rest = text.slice(next.lastIndex).trim();
    const match = next.exec(text);
    if (match === null) throw refusal(`CEL parse error: Syntax error: at '${shortened(rest) || "<EOF>"}'`);
    calls.push([match[1], match[2]]);
    operator = match[3];
    if (operator !== "" && operator !== "||") throw unsupported(`_${operator}_`);
  }
  return calls;
}

function rangeOf([operand, args]: readonly [string, string | undefined]) {
  if (args === undefined) {
    throw refusal(`unexpected expression kind ${kindOf(operand)}; expected shardRange() call or || operator`);
  }
  if (operand !== "shardRange") throw unsupported(operand);
  const parts = args.trim() === "" ? [] : args.split(",").map((part) => part.trim());
  if (parts.length !== 3) throw refusal(`shardRange() requires exactly 3 arguments, got ${parts.length}`);
  const field = fieldOf(parts[0]);
  const [start, end] = [digitsOf(parts[1], "hexStart"), digitsOf(parts[2], "hexEnd")];
  if (BigInt(`0x${start}`) < BigInt(`0x${end}`)) return { field, range: [start, end] as const };
  throw refusal(`shard range start 0x${start} must be less than end 0x${end}`);
}

/** The number that CEL has for a kind: of a call, a literal, a field or a variable. */
function kindOf(part: string): 1 | 5 | 7 | 3 {
  return part.endsWith(")") ? 1 : /^['"0-9-]/.test(part) ? 5 : part.includes(".") ? 7 : 3;
}

function fieldOf(path: string): ShardField {
  if (path === "object.metadata.uid") return "uid";
  if (path === "object.metadata.namespace") return "namespace";
  const kind = kindOf(path);
  const problem = kind === 1 || kind === 5
    ? `shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind ${kind}`
    : `unsupported field path ${quoted(path)}; supported: object.metadata.uid, object.metadata.namespace`;
  throw refusal(problem);
}

function digitsOf(part: string, bound: string): string {
  const text = /^'([^']*)'$|^"([^"]*)"$/.exec(part)?.slice(1).join("");
  const digits = text?.slice(2) ?? "";
  const problem = boundProblem(kindOf(part), text, digits);
  if (problem !== undefined) throw refusal(bound + problem);
  return digits;
}

function boundProblem(kind: number, text: string | undefined, digits: string): string | undefined {
  if (kind !== 5) return ` must be a string literal (e.g. '0xff'), got expression kind ${kind}`;
  if (text === undefined) return " must be a string literal, got int64";
  if (!text.startsWith("0x")) return ` must have '0x' prefix, got ${quoted(text)}`;
  if (digits === "") return ": hex value is required after '0x'";
  const { length } = digits;
  if (length > 17) return `: hex value too long (${length} chars, max 17): ${quoted(digits)}`;
  const [wrong] = /[^0-9a-f]/u.exec(digits) ?? [];
  if (wrong !== undefined) return `: invalid hex character ${quoted(wrong)} in ${quoted(text)}`;
  const padded = `0x${digits.padStart(16, "0")}`;
  if (length < 16) {
    return ` must be a 0x-prefixed 16-digit hex value, got "${text}" (did you mean "${padded}"?)`;
  }
  if (length === 16 || text === "0x10000000000000000") return undefined;
  return `: 17-digit hex value must be '0x10000000000000000' (2^64), got "${text}"`;
}

function unsupported(name: string): TypeError {
  return refusal(`unsupported function ${quoted(name)}; only shardRange() and || are allowed`);
}

function refusal(problem: string): TypeError {
  return new TypeError(`invalid shard selector: ${problem}`);
}

function quoted(text: string): string {
  return quotedByGo(shortened(text));
}
