/**
 * `node:test` inside workerd: the part of it that portable suites use. The bundler puts this module in the
 * place of `node:test`; the worker that it is bundled into runs {@linkcode runFiles}.
 *
 * @module
 */

/** Options of a test. */
export interface TestOptions {
  skip?: boolean | string;
  todo?: boolean | string;
  /** Default: {@linkcode TEST_TIMEOUT_MS}. */
  timeout?: number;
}

/** What a test function gets. */
export interface TestContext {
  readonly name: string;
  readonly signal: AbortSignal;
  test(name: string, fn: TestFn): Promise<void>;
  after(fn: () => unknown): void;
  skip(message?: string): void;
  diagnostic(message: string): void;
}

type TestFn = (context: TestContext) => unknown;
type Hook = () => unknown;

/** One line of what the worker answers. */
export type Report =
  | { type: "start"; file: string; name: string }
  | {
    type: "result";
    file: string;
    name: string;
    status: "passed" | "failed" | "skipped";
    message?: string;
  }
  | { type: "end" };

/** A test that takes longer has failed; without it a test that hangs would hide its name. */
const TEST_TIMEOUT_MS = 60_000;

class Suite {
  readonly entries: (Suite | Test)[] = [];
  readonly hooks: Record<
    "before" | "after" | "beforeEach" | "afterEach",
    Hook[]
  > = {
    before: [],
    after: [],
    beforeEach: [],
    afterEach: [],
  };

  constructor(
    readonly name: string,
    readonly parent: Suite | undefined,
    readonly options: TestOptions,
  ) {}
}

class Test {
  constructor(
    readonly name: string,
    readonly fn: TestFn,
    readonly options: TestOptions,
  ) {}
}

let current = new Suite("", undefined, {});

type Register<F> = {
  (name: string, fn?: F): void;
  (name: string, options: TestOptions, fn?: F): void;
};

/** `describe` and `it` with their `skip` and `todo`. */
type Registrar<F> = Register<F> & { skip: Register<F>; todo: Register<F> };

function registrar<F>(
  register: (name: string, options: TestOptions, fn: F | undefined) => void,
): Registrar<F> {
  const withDefaults = (defaults: TestOptions): Register<F> => (name: string, ...rest: unknown[]) => {
    const fn = rest.find((argument) => typeof argument === "function") as
      | F
      | undefined;
    const options = rest.find((argument) => typeof argument === "object") as
      | TestOptions
      | undefined;
    register(name, { ...defaults, ...options }, fn);
  };
  return Object.assign(withDefaults({}), {
    skip: withDefaults({ skip: true }),
    todo: withDefaults({ todo: true }),
  });
}

export const describe: Registrar<() => void> = registrar(
  (name, options, fn) => {
    const suite = new Suite(name, current, options);
    current.entries.push(suite);
    current = suite;
    try {
      const returned: unknown = fn?.();
      if (returned instanceof Promise) {
        throw new TypeError(
          `describe("${name}") is asynchronous; workerd's is not`,
        );
      }
    } finally {
      current = suite.parent as Suite;
    }
  },
);

export const it: Registrar<TestFn> = registrar((name, options, fn) => {
  current.entries.push(
    new Test(
      name,
      fn ?? (() => {}),
      fn === undefined ? { ...options, todo: true } : options,
    ),
  );
});

export const suite: typeof describe = describe;
export const test: typeof it = it;

export const before = (hook: Hook): unknown => current.hooks.before.push(hook);
export const after = (hook: Hook): unknown => current.hooks.after.push(hook);
export const beforeEach = (hook: Hook): unknown => current.hooks.beforeEach.push(hook);
export const afterEach = (hook: Hook): unknown => current.hooks.afterEach.push(hook);

/**
 * Loads each file (a name and an import), runs its tests one after
 * another, and answers one JSON line per report.
 */
export function runFiles(
  files: [name: string, load: () => Promise<unknown>][],
): Response {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const report = (line: Report) => writer.write(encoder.encode(`${JSON.stringify(line)}\n`));
  void (async () => {
    for (const [file, load] of files) {
      const root = new Suite("", undefined, {});
      current = root;
      try {
        await load();
        if (root.entries.length === 0) throw new Error("the file has no tests");
      } catch (error) {
        await report({
          type: "result",
          file,
          name: "loads",
          status: "failed",
          message: describeError(error),
        });
        continue;
      }
      await runSuite(root, [], { file, report, skip: false });
    }
    await report({ type: "end" });
    await writer.close();
  })();
  return new Response(readable, {
    headers: { "Content-Type": "application/x-ndjson" },
  });
}

interface Run {
  file: string;
  report: (line: Report) => Promise<void>;
  skip: boolean;
}

async function runSuite(suite: Suite, path: string[], run: Run): Promise<void> {
  const skip = run.skip || Boolean(suite.options.skip) ||
    Boolean(suite.options.todo);
  const fail = (name: string, error: unknown) =>
    run.report({
      type: "result",
      file: run.file,
      name: [...path, name].join(" > "),
      status: "failed",
      message: describeError(error),
    });
  try {
    if (!skip) { for (const hook of suite.hooks.before) await hook(); }
  } catch (error) {
    await fail("before", error);
    return;
  }
  for (const entry of suite.entries) {
    if (entry instanceof Suite) {
      await runSuite(entry, [...path, entry.name], { ...run, skip });
    } else await runTest(entry, suite, [...path, entry.name], { ...run, skip });
  }
  try {
    if (!skip) { for (const hook of suite.hooks.after) await hook(); }
  } catch (error) {
    await fail("after", error);
  }
}

async function runTest(
  test: Test,
  suite: Suite,
  path: string[],
  run: Run,
): Promise<void> {
  const { file, report } = run;
  const name = path.join(" > ");
  if (run.skip || test.options.skip || test.options.todo) {
    await report({ type: "result", file, name, status: "skipped" });
    return;
  }
  await report({ type: "start", file, name });
  const abort = new AbortController();
  const cleanups: Hook[] = [];
  let isSkipped = false;
  const context: TestContext = {
    name: test.name,
    signal: abort.signal,
    test: (subname, fn) => runTest(new Test(subname, fn, {}), suite, [...path, subname], run),
    after: (fn) => void cleanups.push(fn),
    skip: () => void (isSkipped = true),
    diagnostic: () => {},
  };
  const outer: Suite[] = [];
  for (let at: Suite | undefined = suite; at !== undefined; at = at.parent) {
    outer.unshift(at);
  }
  let failure: { error: unknown } | undefined;
  try {
    for (const { hooks } of outer) {
      for (const hook of hooks.beforeEach) await hook();
    }
    await withTimeout(
      test.fn(context),
      test.options.timeout ?? TEST_TIMEOUT_MS,
    );
  } catch (error) {
    failure = { error };
  }
  abort.abort();
  try {
    for (const cleanup of cleanups) await cleanup();
    for (const { hooks } of outer.reverse()) {
      for (const hook of hooks.afterEach) {
        await hook();
      }
    }
  } catch (error) {
    failure ??= { error };
  }
  if (failure) {
    await report({
      type: "result",
      file,
      name,
      status: "failed",
      message: describeError(failure.error),
    });
  } else {await report({
      type: "result",
      file,
      name,
      status: isSkipped ? "skipped" : "passed",
    });}
}

async function withTimeout(work: unknown, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the test did not end within ${timeoutMs} ms`)),
      timeoutMs,
    );
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const head = `${error.name}: ${error.message}`;
  const stack = error.stack ?? "";
  const text = stack.includes(error.message) ? stack : `${head}\n${stack}`;
  return error.cause === undefined ? text : `${text}\ncaused by ${describeError(error.cause)}`;
}
