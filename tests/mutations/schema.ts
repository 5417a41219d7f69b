/** Faults of the checks at the trust boundary. */

import type { SuiteMutation } from "../mutant.ts";

export const SCHEMA_FAULTS: readonly SuiteMutation[] = [
  {
    name: "schema: a delete must have a version, but no name",
    file: "src/schema/checks.ts",
    find: '      return checkObject(schemas, object, "object", undefined);\n',
    replace: "",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: an issue without a path ends the watch",
    file: "src/schema/checks.ts",
    find: "issue.path ?? []",
    replace: "issue.path!",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: what is refused of a cluster-scoped kind has no key",
    file: "src/schema/checks.ts",
    find: '(namespace === undefined || typeof namespace === "string")',
    replace: 'typeof namespace === "string"',
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: a version that is no text is reported",
    file: "src/schema/checks.ts",
    find: 'typeof resourceVersion === "string" ? resourceVersion : undefined',
    replace: "resourceVersion as string",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: names of one character are refused",
    file: "src/schema/kubernetes_schemas.ts",
    find: "z._minLength(1,",
    replace: "z._minLength(2,",
    test: "tests/schema/ordinary_test.ts",
  },
  {
    name: "schema: a path inside an array has a dot before its bracket",
    file: "src/schema/schema.ts",
    find: 'return inner.startsWith("[") ? outer + inner : `${outer}.${inner}`;',
    replace: "return `${outer}.${inner}`;",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: a path with a symbol ends the watch",
    file: "src/schema/schema.ts",
    find: 'typeof key === "string" && /^',
    replace: "/^",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: a list whose status is a failure is one, whatever it is",
    file: "src/schema/checks.ts",
    find: 'list.status === "Failure" && isStatus(schemas, list)',
    replace: 'list.status === "Failure"',
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: an object in place of a list is an empty list",
    file: "src/schema/checks.ts",
    find: 'typeof list.kind === "string" && list.kind.endsWith("List")',
    replace: 'typeof list.kind === "string"',
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: the time to wait makes a refusal unreadable",
    file: "src/schema/kubernetes_schemas.ts",
    find: "retryAfterSeconds: optional(number())",
    replace: "retryAfterSeconds: optional(text())",
    test: "tests/schema/validator_test.ts",
  },
  {
    name: "schema: the failure of an asynchronous schema ends the process",
    file: "src/schema/schema.ts",
    find: "result.then(undefined, () => {});",
    replace: "",
    test: "tests/schema/validator_test.ts",
  },
];
