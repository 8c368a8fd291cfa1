import { describe, expect, it } from "vitest";
import { csvRows } from "../src/values/csv";
import {
  between,
  formatBytes,
  formatCount,
  formatDuration,
  shortId,
  withLocalTimes,
} from "../src/values/format";
import { addressOf, artifactReference, mediaOf, referenceOf, secretOf } from "../src/values/references";
import { PAGE, pathTo, treeRows } from "../src/values/treeRows";
import { columnsOf, viewsOf } from "../src/values/views";

const REF = { resourceRef: { resourceId: "run/a b/report.txt", workerId: "w", type: "file", sizeBytes: 12 } };

describe("the way to show a value", () => {
  it.each([
    [undefined, "text"],
    [null, "text"],
    [3, "text"],
    ["plain", "text"],
    ["# Title\n\nSome text", "markdown"],
    ["- one\n- two", "markdown"],
    ['{"a": 1}', "text"],
    ["data:image/png;base64,AAAA", "image"],
    ["data:audio/wav;base64,AAAA", "audio"],
    ["data:video/mp4;base64,AAAA", "video"],
    ["data:text/html;base64,AAAA", "text"],
    [[], "tree"],
    [[1, 2], "tree"],
    [[{ a: 1 }, { a: 2, b: 3 }], "table"],
    [[{ a: 1 }, 2], "tree"],
    [{ a: 1 }, "tree"],
    [REF, "reference"],
    [[REF], "tree"],
    [{ secretRef: { name: "openai" } }, "secret"],
  ])("of %j is %s", (value, view) => expect(viewsOf(value)[0]).toBe(view));

  it("is no table where rows share nothing", () => {
    expect(columnsOf([{ a: 1 }, { b: 1 }, { c: 1 }, { d: 1 }])).toBeNull();
    expect(columnsOf([{}])).toBeNull();
    expect(columnsOf([{ a: 1, b: 2 }])).toEqual(["a", "b"]);
  });

  it("offers the tree of JSON in a text", () => expect(viewsOf("[1]")).toContain("tree"));
});

describe("references", () => {
  it("are read from results and from artifacts", () => {
    expect(referenceOf(REF)).toMatchObject({ name: "report.txt", workerId: "w", sizeBytes: 12 });
    expect(referenceOf({ resourceRef: { resourceId: "x" } })).toBeNull();
    expect(referenceOf("x")).toBeNull();
    const artifact = {
      resourceId: "r/p",
      workerId: "w",
      type: "image",
      sizeBytes: null,
      metadata: { name: "p.png" },
    };
    expect(artifactReference(artifact)).toMatchObject({ name: "p.png", sizeBytes: null, type: "image" });
    expect(secretOf({ secretRef: { name: "k" } })).toBe("k");
    expect(secretOf({ secret: 1 })).toBeNull();
  });

  it("have an address that keeps slashes and nothing else", () => {
    const reference = { resourceId: "run/a b/ü?.txt", workerId: "w&1" };
    expect(addressOf(reference)).toBe("/api/v1/artifacts/run/a%20b/%C3%BC%3F.txt?workerId=w%261");
    expect(addressOf(reference, true)).toContain("inline=true");
  });

  it.each([
    ["image/png", "x", "image"],
    ["image/svg+xml", "x", "file"],
    ["text/html", "x", "file"],
    ["text/csv; charset=utf-8", "x", "table"],
    ["text/markdown", "x", "markdown"],
    ["text/plain", "x", "text"],
    ["application/json", "x", "json"],
    ["application/pdf", "x", "file"],
    [null, "clip.MP4", "video"],
    ["application/octet-stream", "a.csv", "table"],
    [null, "noending", "file"],
  ])("of %s %s are shown as %s", (mime, name, media) =>
    expect(mediaOf({ mime, name, type: "file" })).toBe(media),
  );

  it("that hold a stored value are JSON", () =>
    expect(mediaOf({ mime: null, name: "x", type: "astraflow.value" })).toBe("json"));
});

describe("the rows of a tree", () => {
  const value = { "a/b": [1, { c: "deep" }], ref: REF, none: null };
  const options = { open: new Set([""]), pages: new Map<string, number>(), search: "" };

  it("are those that are open", () => {
    expect(treeRows(value, options).map((row) => row.pointer)).toEqual(["", "/a~1b", "/ref", "/none"]);
    const open = new Set(["", "/a~1b"]);
    const rows = treeRows(value, { ...options, open });
    expect(rows.map((row) => row.path)).toContain('["a/b"][1]');
    expect(rows.find((row) => row.pointer === "/ref")?.kind).toBe("leaf");
  });

  it("come in pages", () => {
    const long = Array.from({ length: PAGE + 5 }, (_, index) => index);
    const rows = treeRows(long, options);
    expect(rows).toHaveLength(PAGE + 2);
    expect(rows.at(-1)).toMatchObject({ kind: "more", count: 5 });
    expect(treeRows(long, { ...options, pages: new Map([["", 2]]) })).toHaveLength(PAGE + 6);
  });

  it("are found with what is around them", () => {
    const rows = treeRows(value, { ...options, search: "DEEP" });
    expect(rows.map((row) => row.pointer)).toEqual(["", "/a~1b", "/a~1b/1", "/a~1b/1/c"]);
    expect(treeRows(value, { ...options, search: "missing" })).toEqual([]);
  });

  it("have paths as expressions name them", () => {
    expect(pathTo("", "rows")).toBe("rows");
    expect(pathTo("rows[1]", "a-b")).toBe('rows[1]["a-b"]');
  });
});

describe("numbers", () => {
  it.each([
    [0, "< 1 ms"],
    [999, "999 ms"],
    [4_260, "4.2 s"],
    [9_999, "9.9 s"],
    [42_400, "42 s"],
    [64_000, "1m 04s"],
    [7_500_000, "2h 05m"],
    [273_600_000, "3d 04h"],
    [-5, "< 1 ms"],
  ])("%d ms is %s", (ms, text) => expect(formatDuration(ms)).toBe(text));

  it("are short", () => {
    expect(formatBytes(1023)).toBe("1023 B");
    expect(formatBytes(1536)).toBe("1.5 KiB");
    expect(formatBytes(50 * 1024 * 1024)).toBe("50 MiB");
    expect(formatCount(1_234_567)).toBe("1 234 567");
    expect(shortId("01M7J8A719WR979GEG00000001")).toBe("M7J8A719");
    expect(shortId("a205e280-1e2f-4709")).toBe("a205e280");
    const now = Date.parse("2026-01-02T12:00:00");
    const today = new Date("2026-01-02T14:51:03").toISOString();
    expect(withLocalTimes(`until ${today}, then`, now)).toBe("until 14:51:03, then");
    expect(withLocalTimes("until 2020-03-04T10:00:00Z", now)).toContain("2020");
    expect(between(null, null, 5)).toBeNull();
    expect(between("1970-01-01T00:00:01Z", null, 3000)).toBe(2000);
  });
});

describe("a CSV", () => {
  it("has rows by the names in its first line", () => {
    expect(csvRows('a,b\n1,"x, ""y"""\r\n2,\n')).toEqual([
      { a: "1", b: 'x, "y"' },
      { a: "2", b: "" },
    ]);
    expect(csvRows("only")).toBe("only");
  });
});

describe("an object", () => {
  it("is shown member by member where a tree would not do", () => {
    expect(viewsOf({ rows: [{ a: 1 }], n: 1 })).toEqual(["members", "tree"]);
    expect(viewsOf({ file: REF })[0]).toBe("members");
    expect(viewsOf({ deep: { rows: [{ a: 1 }] } })).toEqual(["tree"]);
    expect(viewsOf(Object.fromEntries(Array.from({ length: 13 }, (_, n) => [`k${n}`, "# T"])))).toEqual([
      "tree",
    ]);
  });
});
