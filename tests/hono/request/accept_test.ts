import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { FakeInformer, object } from "../fake_informer.ts";
// What kube-apiserver v1.36.3 answered: per header and target the index of an answer (status,
// Content-Type, kind, whether it is indented, message of a 406). Protobuf was taken out of headers
// that it was the answer to, and out of messages.
import recorded from "../recorded/accept.json" with { type: "json" };
import { readApi } from "../read_api.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";

const CORE = "/api/v1/namespaces/shop/configmaps";
const CUSTOM = "/apis/readapi.example.com/v1/namespaces/shop/widgets";
const PATHS: Readonly<Record<string, string>> = {
  "list": CORE,
  "get": `${CORE}/a`,
  "watch": `${CORE}?watch=1`,
  "list-custom": CUSTOM,
  "get-custom": `${CUSTOM}/a`,
  "watch-custom": `${CUSTOM}?watch=1`,
  "get-missing": `${CORE}/missing`,
  "list-invalid": `${CORE}?limit=abc`,
  "watch-invalid": `${CORE}?watch=1&resourceVersionMatch=Exact`,
  "no-resource": "/api/v1/nonsense",
  "api": "/api",
  "apis": "/apis",
  "group": "/apis/apps",
  "core-version": "/api/v1",
  "group-version": "/apis/apps/v1",
  "custom-group": "/apis/readapi.example.com",
  "custom-version": "/apis/readapi.example.com/v1",
  "version": "/version",
  "livez": "/livez",
};

function api() {
  const informer = () => FakeInformer.with([object("shop/a", 1)], 1);
  const widgets = { ...WIDGET_RESOURCE, group: "readapi.example.com" };
  return readApi({
    resources: [
      { informer: informer(), resource: "v1/configmaps" },
      { informer: informer(), resource: "apps/v1/deployments" },
      { informer: informer(), resource: widgets },
    ],
    allowAnonymous: true,
  });
}

type Answer = [status: number, type: string, kind: string | null, pretty: boolean, message?: string];

async function answer(app: ReturnType<typeof api>, path: string, accept: string | null): Promise<Answer> {
  const response = await app.request(path, { headers: accept === null ? {} : { Accept: accept } });
  const type = response.headers.get("Content-Type") ?? "";
  const isWatch = path.includes("watch=1") && response.status === 200;
  const text = isWatch ? await firstLine(response) : await response.text();
  if (!/json|yaml/.test(type)) return [response.status, type, null, false];
  const document = type.includes("yaml") ? parse(text) : JSON.parse(text);
  const { kind = null, message } = isWatch ? document.object : document;
  const pretty = text.startsWith("{\n");
  return response.status === 406
    ? [response.status, type, kind, pretty, message]
    : [response.status, type, kind, pretty];
}

async function firstLine(response: Response): Promise<string> {
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value).split("\n")[0];
}

/** Where the answer is meant to be another one than that of kube-apiserver. */
function isMeant([status, , kind]: Answer, target: string, accept: string | null): boolean {
  // The metadata of a list, of one object: 500 for custom
  // resources, and watches without events. Here it is 406.
  return /^(get-custom|watch|watch-custom)$/.test(target) &&
    (accept?.includes("as=PartialObjectMetadataList") ?? false) &&
    (status === 500 || kind === null);
}

describe("readApi and the Accept header", () => {
  for (const [i, target] of recorded.targets.entries()) {
    const path = PATHS[target];
    if (path === undefined) continue;
    it(`is negotiated as by kube-apiserver: ${target}`, async () => {
      const app = api();
      for (const [accept, answers] of recorded.headers as [string | null, number[]][]) {
        const expected = recorded.answers[answers[i]] as Answer;
        const actual = await answer(app, path, accept);
        if (isMeant(expected, target, accept)) assert.equal(actual[0], 406);
        else assert.deepEqual(actual, expected, `Accept: ${accept}`);
      }
    });
  }
});

describe("readApi, for an Accept header that is very long,", () => {
  it("reads the first 128 clauses", async () => {
    const app = api();
    const ask = async (count: number) => {
      const Accept = `${"text/html,".repeat(count)}application/yaml`;
      return (await app.request(CORE, { headers: { Accept } })).status;
    };
    assert.equal(await ask(127), 200);
    assert.equal(await ask(128), 406);
  });
});
