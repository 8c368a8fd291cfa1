import { describe, expect, test } from "vitest";
import { openDocument } from "../src/model/document";
import { casesOf, portsOf } from "../src/model/ports";
import { MAX_PROBLEMS, SERVER_ONLY } from "../src/model/validation/problems";
import { validate } from "../src/model/validation/validate";
import { CATALOG, CORPUS, type CorpusCase, TYPES } from "./examples";

/** What only the scheduler knows besides whole codes: see `validate`. */
const isDefault = (pointer: string): boolean => /^\/inputs\/[^/]+\/default/.test(pointer);

function expectedOf(one: CorpusCase): string[] {
  return one.problems
    .filter(([pointer, code]) => !(code in SERVER_ONLY) && !isDefault(pointer))
    .map(([pointer, code]) => `${code} ${pointer}`)
    .sort();
}

describe("the corpus of the scheduler", () => {
  test("it breaks every rule that the browser checks, and has sound definitions", () => {
    const codes = new Set(CORPUS.flatMap((one) => one.problems.map(([, code]) => code)));
    expect(codes.size).toBeGreaterThan(15);
    expect(CORPUS.filter((one) => one.problems.length === 0).length).toBeGreaterThan(50);
  });

  test.each(CORPUS.map((one) => [one.name, one] as const))("%s", (_, one) => {
    const found = validate(openDocument(one.text), CATALOG).map(({ code, pointer }) => `${code} ${pointer}`);
    expect(found.sort()).toEqual(expectedOf(one));
  });
});

describe("what is not in the corpus", () => {
  const id = "00000000-0000-4000-8000-000000000001";
  const codes = (text: string): string[] =>
    validate(openDocument(text), CATALOG).map((one) => `${one.code} ${one.pointer}`);
  const withNode = (fields: string): string =>
    `{"id":"${id}","nodes":[{"id":"${id}","type":"core.echo"${fields}}]}`;

  test("a value that is no object has one problem", () => {
    for (const text of ["1", "[]", '"x"', "null"]) expect(codes(text)).toEqual(["E.WORKFLOW.INVALID "]);
  });

  test("1.0 is no integer, as for the scheduler", () => {
    expect(codes(withNode(',"priority":1.0'))).toEqual(["E.WORKFLOW.INVALID /nodes/0/priority"]);
    expect(codes(withNode(',"priority":1'))).toEqual([]);
  });

  test("an integer beyond 64 bits is found in its text", () => {
    expect(codes(withNode(',"parameters":{"a":[18446744073709551616]}'))).toEqual([
      "E.WORKFLOW.INVALID /nodes/0/parameters",
    ]);
    expect(codes(withNode(',"parameters":{"a":[18446744073709551615, 1e400]}'))).toEqual([]);
  });

  test("the list of problems has an end", () => {
    const nodes = Array.from({ length: 300 }, () => '{"id":"x","type":"core.echo"}').join(",");
    const found = validate(openDocument(`{"id":"${id}","nodes":[${nodes}]}`), CATALOG);
    expect(found).toHaveLength(MAX_PROBLEMS);
    expect(found.at(-1)?.message).toContain("more");
  });

  test("a circle of many nodes ends in no error of the stack", () => {
    const count = 20_000;
    const uid = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
    const nodes = Array.from({ length: count }, (_, at) => `{"id":"${uid(at)}","type":"core.echo"}`);
    const edges = Array.from(
      { length: count },
      (_, at) => `{"source":{"node":"${uid(at)}"},"target":{"node":"${uid((at + 1) % count)}"}}`,
    );
    expect(codes(`{"id":"${id}","nodes":[${nodes}],"edges":[${edges}]}`)).toEqual([
      "E.WORKFLOW.CYCLE /nodes/0",
    ]);
  });
});

describe("ports", () => {
  test.each(TYPES.map((one) => [one.type, one] as const))(
    "%s has the types that the scheduler tells",
    (_, type) => {
      const ports = portsOf({ id: "n", type: type.type }, type);
      const told = (
        side: ReadonlyMap<string, { types: ReadonlySet<string> | null; isCase: boolean }>,
      ): Record<string, string[]> =>
        Object.fromEntries(
          [...side].flatMap(([key, port]) =>
            port.types && !port.isCase ? [[key, [...port.types].sort()]] : [],
          ),
        );
      const { inputs, outputs } = type.portTypes;
      const cases = new Set(casesOf({ id: "n", type: type.type }));
      const declared = Object.fromEntries(Object.entries(outputs).filter(([key]) => !cases.has(key)));
      expect(told(ports.inputs)).toEqual(inputs);
      expect(told(ports.outputs)).toEqual({ done: ["boolean"], ...declared });
    },
  );
});
