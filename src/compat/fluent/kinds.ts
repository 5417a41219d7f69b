/** Which resource a class of objects is, by its name or as it was registered. */

import { DNS_LABEL, type GroupVersionResource } from "../../meta/resource.ts";
import { builtinResources } from "../../protocol/builtin_resources.ts";

/**
 * A class whose name says a kind: `kind.Pod` of
 * kubernetes-fluent-client, `V1Pod` of client-node, or your own.
 */
// deno-lint-ignore no-explicit-any -- as kubernetes-fluent-client declares it
export type GenericClass = abstract new () => any;

/** The group, version and kind of a class, as kubernetes-fluent-client writes them. */
export interface RegisteredKind {
  /** Such as `Widget`. */
  readonly kind: string;
  /** `""` for the core group. */
  readonly group: string;
  /** Such as `v1`. */
  readonly version?: string;
  /** The name of the resource; the kind in small letters with an `s` by default. */
  readonly plural?: string;
}

const registered = new Map<GenericClass, RegisteredKind>();

/**
 * Says which kind a class is, for your own resources. What was registered with
 * kubernetes-fluent-client is not known here: register it with both.
 *
 * @throws {TypeError} The class is registered already, or its kind is known by its name.
 *
 * @example
 * ```ts
 * import { K8s, RegisterKind } from "@listwatch/cache/compat/fluent";
 * class Widget {
 *   metadata?: { name?: string };
 *   spec?: { size?: number };
 * }
 * RegisterKind(Widget, { group: "example.com", version: "v1", kind: "Widget" });
 * const widgets = K8s(Widget).InNamespace("shop").Watch((widget, phase) => console.log(phase, widget.spec?.size));
 * console.log(widgets.isClosed); // false: it has not started
 * ```
 */
export function RegisterKind(model: GenericClass, groupVersionKind: RegisteredKind): void {
  if (registered.has(model) || builtinKind(model.name) !== undefined) {
    throw new TypeError(`Cannot register the kind of ${model.name}: it is known already`);
  }
  registered.set(model, groupVersionKind);
}

/**
 * The resource of a class.
 *
 * @throws {TypeError} No kind is known for it, or the kind has no version.
 */
export function resourceOfModel(model: GenericClass, override?: RegisteredKind): GroupVersionResource {
  const kind = override ?? registered.get(model);
  if (kind !== undefined) return resourceOfKind(kind);
  const builtin = builtinKind(model.name);
  if (builtin !== undefined) return builtin;
  throw new TypeError(
    `Cannot find the resource of the class ${JSON.stringify(model.name)}: no kind is known by this name; ` +
      "call RegisterKind, or give a kindOverride",
  );
}

function resourceOfKind({ group, version, kind, plural }: RegisteredKind): GroupVersionResource {
  const known = builtinResources().find((one) => one.group === group && one.kind === kind);
  const named = plural ?? known?.resource ?? `${kind.toLowerCase()}s`;
  const ofVersion = version ?? (group === "" ? "v1" : known?.version);
  if (!ofVersion || !DNS_LABEL.test(named)) {
    throw new TypeError(
      `Cannot find the resource of the kind ${kind}: it needs a version, and a plural in small letters`,
    );
  }
  return { group, version: ofVersion, resource: named };
}

/** `V1Pod`, `CoreV1Event`, `EventsV1Event`: a prefix of a group, a version, and the kind. */
const CLASS_NAME = /^(Core|Events)?V\d+([A-Z]\w*)$/;

function builtinKind(className: string): GroupVersionResource | undefined {
  const [, prefix, kind] = CLASS_NAME.exec(className) ?? [];
  if (prefix === "Events") return { group: "events.k8s.io", version: "v1", resource: "events" };
  const found = builtinResources().find((one) => one.kind === kind);
  return found && { group: found.group, version: found.version, resource: found.resource };
}
