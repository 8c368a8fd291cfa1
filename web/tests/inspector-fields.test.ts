import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fieldsOf } from "../src/forms/fields";
import {
  countSet,
  FIELDS_ELSEWHERE,
  ownSection,
  type Section,
  sectionsFor,
} from "../src/inspector/stepFields";
import type { NodeDefinition } from "../src/model/definition";
import { openDocument } from "../src/model/document";
import type { Json, JsonFields } from "../src/model/json/tree";

const schema = JSON.parse(
  readFileSync(new URL("../../schemas/workflow.schema.json", import.meta.url), "utf8"),
) as { $defs: Record<string, JsonFields>; properties: JsonFields };
const nodeFields = (schema.$defs.node as JsonFields).properties as JsonFields;

const ID = "6f1c0d1e-4a0b-4d57-9b0b-0d6a0a6d2a01";
const BOX = "6f1c0d1e-4a0b-4d57-9b0b-0d6a0a6d2a02";
const OWN = ["core.wait", "core.approval", "core.signal", "core.call", "core.container"];
const nodeOf = (type: string): NodeDefinition => ({ id: ID, type });
const documentOf = (type: string) =>
  openDocument(JSON.stringify({ id: ID, nodes: [nodeOf(type), { id: BOX, type: "core.container" }] }));

function sectionsOf(type: string): readonly Section[] {
  const own = ownSection(nodeOf(type));
  return [...(own === null ? [] : [own]), ...sectionsFor(documentOf(type), nodeOf(type), false, false)];
}

const resolved = (given: Json | undefined): JsonFields => {
  const ref = (given as JsonFields | undefined)?.$ref;
  return typeof ref === "string"
    ? resolved(schema.$defs[ref.split("/").at(-1) ?? ""])
    : ((given ?? {}) as JsonFields);
};

/** Every path that the sections of all types can set. */
function pathsOf(sections: readonly Section[]): Set<string> {
  const found = new Set<string>();
  const walk = (properties: JsonFields, path: readonly string[]): void => {
    for (const [key, one] of Object.entries(properties)) {
      found.add([...path, key].join("."));
      const below = (one as JsonFields).properties;
      if (below !== undefined) walk(below as JsonFields, [...path, key]);
    }
  };
  for (const section of sections) {
    if (section.path.length > 0) found.add(section.path.join("."));
    walk(section.schema.properties as JsonFields, section.path);
  }
  return found;
}

const all = pathsOf(["core.echo", ...OWN].flatMap(sectionsOf));

describe("the settings of a step", () => {
  it.each(Object.keys(nodeFields))("have the field %s, or it is edited elsewhere", (name) => {
    expect(all.has(name) !== Object.hasOwn(FIELDS_ELSEWHERE, name)).toBe(true);
  });

  const nested = Object.entries(nodeFields).flatMap(([name, one]) =>
    Object.keys((resolved(one as Json).properties as JsonFields | undefined) ?? {}).map(
      (key) => `${name}.${key}`,
    ),
  );
  it.each(nested.filter((path) => !Object.hasOwn(FIELDS_ELSEWHERE, path.split(".")[0] ?? "")))(
    "have the field %s",
    (path) => {
      expect(all.has(path)).toBe(true);
    },
  );

  it("name no field that the definition does not have", () => {
    for (const path of all) expect(Object.hasOwn(nodeFields, path.split(".")[0] ?? "")).toBe(true);
  });

  it("say what each is for", () => {
    for (const section of ["core.echo", ...OWN].flatMap(sectionsOf)) {
      for (const field of fieldsOf(section.schema)) {
        expect(field.label).not.toBe("");
        expect(field.help).toBeTruthy();
      }
    }
  });

  it("of one's own are those of the type", () => {
    expect(OWN.map((type) => ownSection(nodeOf(type))?.path[0])).toEqual([
      "wait",
      "approval",
      "signal",
      "call",
      "container",
    ]);
    expect(ownSection(nodeOf("core.echo"))).toBeNull();
  });

  it("are counted", () => {
    const node = { ...nodeOf("core.echo"), disabled: true, when: null, map: { over: "=x", item: "a" } };
    const sections = sectionsFor(documentOf("core.echo"), node, false, false);
    const counts = Object.fromEntries(sections.map((one) => [one.key, countSet(one, node)]));
    expect(counts).toMatchObject({ run: 1, map: 2, retry: 0 });
  });

  it("of a middleware have no map and no undo", () => {
    const keys = sectionsFor(documentOf("core.retry"), nodeOf("core.retry"), true, false).map(
      (one) => one.key,
    );
    expect(keys).toEqual(["run", "retry", "placement", "resources"]);
  });
});
