import { describe, expect, it } from "vitest";
import { isAsText, readText, shownText, writeText } from "../src/editor/asText";
import { createSession, documentOf, type EditorSession } from "../src/editor/session";
import { foundZones, offsetOf, timeZones } from "../src/forms/timeZones";
import { drawingProblem, edgesOf, nodesOf, openDocument, textOf } from "../src/model/document";
import { spanAt } from "../src/model/json/tree";
import { CATALOG } from "./examples";

const problemOf = (text: string) => drawingProblem(openDocument(text));

describe("a document that cannot be drawn", () => {
  it.each([
    ["[]", [], "object"],
    ['{"nodes":{}}', ["nodes"], "list"],
    ['{"nodes":[{"id":"a","type":"t"},null]}', ["nodes", 1], "object"],
    ['{"nodes":[{"type":"t"}]}', ["nodes", 0], "`id`"],
    ['{"nodes":[{"id":1,"type":"t"}]}', ["nodes", 0, "id"], "`id`"],
    ['{"edges":[{"source":{"node":"a"}}]}', ["edges", 0], "`target`"],
    ['{"edges":[{"source":"a","target":{"node":"b"}}]}', ["edges", 0, "source"], "`source`"],
  ])("%s", (text, path, word) => {
    expect(problemOf(text)).toMatchObject({ path, message: expect.stringContaining(word) });
    // Whoever asks for its steps gets none, rather than things that are not steps.
    expect([nodesOf(openDocument(text)), edgesOf(openDocument(text))]).toEqual([[], []]);
  });

  it("is any other that can be drawn, whatever else is wrong", () => {
    expect(problemOf("{}")).toBeNull();
    expect(problemOf('{"nodes":[{"id":"a","type":"t","parameters":7}],"edges":[]}')).toBeNull();
  });
});

describe("a workflow as text", () => {
  const broken = '\n{\n  "name": "N",\n  "nodes": [\n    {"id": 7, "type": "t"}\n  ]\n}\n';

  it("marks the place where it cannot be drawn, and names the line", () => {
    const { document, problem, marks } = readText(broken, []);
    expect(document === null ? null : textOf(document)).toBe(broken);
    expect(problem).toContain("Line 5");
    expect(broken.slice(marks[0]?.from, marks[0]?.to)).toBe("7");
  });

  it("marks the place where it is no JSON", () => {
    const read = readText('{\n  "a": 1,\n  oops\n}', []);
    expect(read.document).toBeNull();
    expect(read.problem).toContain("Line 3");
    expect(read.marks).toHaveLength(1);
    expect(read.marks[0]?.from).toBeGreaterThanOrEqual(13);
  });

  it("marks what validation has found, on the first line of it", () => {
    const text = '{\n  "nodes": [\n    {\n      "id": "a",\n      "type": "t"\n    }\n  ]\n}';
    const found = { code: "INVALID", message: "no such type", severity: "warning" } as const;
    const { problem, marks } = readText(text, [
      { ...found, pointer: "/nodes/0/type" },
      { ...found, pointer: "/nodes/0/parameters" },
    ]);
    expect(problem).toBeNull();
    expect(marks.map((mark) => text.slice(mark.from, mark.to))).toEqual(['"t"', "{"]);
    expect(marks[0]?.severity).toBe("warning");
  });

  it("finds the span of a value, and of what is around one that is missing", () => {
    const { root } = openDocument('{"a~/b": [1, {"c": 2}]}');
    const slice = (path: (string | number)[]) => {
      const { from, to } = spanAt(root, path);
      return root.text.slice(from, to);
    };
    expect(slice(["a~/b", 1, "c"])).toBe("2");
    expect(slice(["a~/b", 1, "d"])).toBe('{"c": 2}');
    expect(slice([])).toBe(root.text);
  });
});

describe("editing as text", () => {
  const sessionOf = (text: string): EditorSession =>
    createSession({
      workflowId: "w",
      openedVersion: null,
      document: openDocument(text),
      isReadOnly: false,
      catalog: () => CATALOG,
      keeper: () => null,
      mayEdit: true,
      mayRun: true,
    });

  it("is spread over lines if it is written on one, with each value as it was written", () => {
    const compact =
      '{"id":"w","nodes":[{"id":"a", "type":"t","parameters":{"n":1.0,"big":1e400,"a":1,"a":2,"é":"\\u00e9"}}],"edges":[ ]}';
    expect(shownText(openDocument(compact))).toBe(
      '{\n  "id": "w",\n  "nodes": [\n    {\n      "id": "a",\n      "type": "t",\n      "parameters": {\n' +
        '        "n": 1.0,\n        "big": 1e400,\n        "a": 1,\n        "a": 2,\n        "é": "\\u00e9"\n' +
        '      }\n    }\n  ],\n  "edges": [ ]\n}\n',
    );
    expect(shownText(openDocument("{\n}"))).toBe("{\n}");
    // Whoever only looks at it changes nothing.
    const session = sessionOf(compact);
    expect(writeText(session, shownText(documentOf(session)))).toBe(true);
    expect(textOf(documentOf(session))).toBe(compact);
  });

  it("keeps the bytes that were typed, as one entry that can be undone", () => {
    const session = sessionOf('{"nodes":[7]}');
    expect(isAsText(session)).toBe(true);
    expect(writeText(session, '{"nodes":[7')).toBe(false);
    expect(session.editor.getState().history.past).toEqual([]);
    expect(writeText(session, '{ "nodes" : [] }\n')).toBe(true);
    expect(textOf(documentOf(session))).toBe('{ "nodes" : [] }\n');
    expect(isAsText(session)).toBe(false);
    writeText(session, '{ "nodes" : [] }\n');
    expect(session.editor.getState().history.past).toHaveLength(1);
    session.editor.actions.undo();
    expect(isAsText(session)).toBe(true);
  });
});

describe("time zones", () => {
  it("are found by each of their words, what begins so first", () => {
    const zones = ["UTC", "America/New_York", "Europe/Zurich", "America/North_Dakota/New_Salem", "Asia/Aden"];
    expect(foundZones(zones, "new york")).toEqual(["America/New_York"]);
    expect(foundZones(zones, "NEW")).toEqual(["America/New_York", "America/North_Dakota/New_Salem"]);
    expect(foundZones(zones, "a")[0]).toBe("America/New_York");
    expect(foundZones(zones, "europe/zur")).toEqual(["Europe/Zurich"]);
    expect(foundZones(zones, "mars")).toEqual([]);
    expect(foundZones(zones, " ")).toBe(zones);
  });

  it("have UTC once and first, and tell their difference to it", () => {
    expect(timeZones()[0]).toBe("UTC");
    expect(timeZones().filter((zone) => zone === "UTC")).toHaveLength(1);
    expect(offsetOf("Asia/Tokyo", 0)).toBe("UTC+9");
    expect(offsetOf("UTC", 0)).toBe("UTC");
    expect(offsetOf("Mars/Base", 0)).toBe("");
  });
});
