/** The syntax that the parameters of screens share: comma-separated parts with field paths in them. */

import { EACH, parseFieldPath } from "../text/field_path.ts";
import { errorMessage } from "../util/errors.ts";
import { ElementMatch, type ScreenSegment } from "./screen_values.ts";

/** A path of a field, as it was read out of a parameter. */
export interface ScreenPath {
  /** The canonical text: the same for all ways to write the path. */
  readonly text: string;
  readonly segments: readonly ScreenSegment[];
}

/** A parameter that cannot be read; the message says where. */
export class ScreenSyntaxError extends Error {}

/** A name, elements, or a key in brackets, as `parseFieldPath` reads them. */
const SEGMENT = /\.?[A-Za-z_$][\w$-]*|\[\]|\["(?:[^"\\]|\\.)*"\]/y;
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/y;
/** Elements by the value of one of their members, which is written as it is or as a JSON string. */
const MATCH = /\[([A-Za-z_$][\w$-]*)=([\w./-]+|"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*")\]/y;
// Deeper than the objects of any API.
const MOST_SEGMENTS = 64;
const MOST_PATH = 1_024;

/** Reads the value of one parameter from its beginning to its end. */
export class ScreenReader {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  get isDone(): boolean {
    this.blanks();
    return this.at === this.text.length;
  }

  blanks(): void {
    while (this.text[this.at] === " ") this.at++;
  }

  /** Whether a part is next, which is read then. */
  takes(part: string): boolean {
    this.blanks();
    if (!this.text.startsWith(part, this.at)) return false;
    this.at += part.length;
    return true;
  }

  /** The text that matches here, which is read; `undefined` if none does. The expression must be sticky. */
  match(sticky: RegExp): string | undefined {
    this.blanks();
    sticky.lastIndex = this.at;
    const match = sticky.exec(this.text);
    if (match === null) return undefined;
    this.at += match[0].length;
    return match[0];
  }

  /** A path of a field; may end in `[]`, and have `[type=Ready]` in the place of `[]`. */
  path(): ScreenPath {
    this.blanks();
    const start = this.at;
    // The elements that each segment of an array selects.
    const elements: (ElementMatch | typeof EACH)[] = [];
    let plain = "";
    for (;;) {
      SEGMENT.lastIndex = MATCH.lastIndex = this.at;
      const [segment] = SEGMENT.exec(this.text) ?? [];
      const match = segment === undefined ? MATCH.exec(this.text) : null;
      if (match !== null) elements.push(newElementMatch(match));
      else if (segment === "[]") elements.push(EACH);
      else if (segment === undefined) break;
      plain += segment ?? "[]";
      this.at += (match?.[0] ?? segment!).length;
    }
    const text = this.text.slice(start, this.at);
    if (text === "") {
      throw this.error(
        "a path of a field is missing",
        'write it as spec.nodeName, spec.containers[].image, metadata.labels["example.com/team"]',
      );
    }
    // Before an error quotes it.
    checkCount("characters in one path", text.length, MOST_PATH);
    let segments: ScreenSegment[];
    try {
      segments = parseFieldPath(plain, { mayEndInElements: true });
    } catch (error) {
      this.at = start;
      throw this.error(errorMessage(error), undefined);
    }
    checkCount("fields in one path", segments.length, MOST_SEGMENTS);
    segments = segments.map((segment) => segment === EACH ? elements.shift()! : segment);
    return { text: pathText(segments), segments };
  }

  /** A JSON string; `undefined` if none is next. */
  string(): string | undefined {
    this.blanks();
    if (this.text[this.at] !== '"') return undefined;
    const text = this.match(STRING);
    if (text !== undefined) return JSON.parse(text);
    throw this.error(
      "a string in quotation marks is no JSON string",
      'end it with ", and escape as JSON does',
    );
  }

  /** Reads a part that must come next. */
  require(part: string, hint: string): void {
    if (!this.takes(part)) throw this.error(`${JSON.stringify(part)} is missing`, hint);
  }

  /** A comma between two parts; `false` at the end. */
  next(): boolean {
    if (this.isDone) return false;
    this.require(",", "separate the parts by commas");
    return true;
  }

  /** An error at the place that is read. */
  error(problem: string, hint: string | undefined): ScreenSyntaxError {
    const rest = this.text.slice(this.at, this.at + 20);
    const where = rest === "" ? "at its end" : `at character ${this.at + 1} (${JSON.stringify(rest)})`;
    return new ScreenSyntaxError(`${problem} ${where}${hint === undefined ? "" : `; ${hint}`}`);
  }
}

/** Reads comma-separated paths: at least one, at most `most`. */
export function readPaths(text: string, most: number): ScreenPath[] {
  const reader = new ScreenReader(text);
  const paths = [reader.path()];
  while (reader.next()) paths.push(reader.path());
  checkCount("paths", paths.length, most);
  return paths;
}

export function checkCount(what: string, count: number, most: number): void {
  if (count > most) {
    throw new ScreenSyntaxError(`it has ${count} ${what}, and at most ${most} are accepted; ask for fewer`);
  }
}

function newElementMatch([, member, value]: RegExpExecArray): ElementMatch {
  return new ElementMatch(member, value[0] === '"' ? JSON.parse(value) : value);
}

export function pathText(segments: readonly ScreenSegment[]): string {
  let text = "";
  for (const segment of segments) {
    if (segment === EACH) text += "[]";
    else if (typeof segment !== "string") text += matchText(segment);
    else if (!/^[A-Za-z_$][\w$-]*$/.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === "" ? segment : `.${segment}`;
  }
  return text;
}

function matchText({ member, value }: ElementMatch): string {
  return `[${member}=${/^[\w./-]+$/.test(value) ? value : JSON.stringify(value)}]`;
}
