import { describe, expect, test } from "vitest";
import { editItems, insertIn, removeIn, setIn } from "../src/model/json/edits";
import { styleOf, TWO_SPACES } from "../src/model/json/printing";
import {
  type Json,
  JsonTextError,
  MAX_DEPTH,
  nodeAt,
  parseNode,
  parseText,
  plainOf,
} from "../src/model/json/tree";
import { Random } from "./random";

const STRANGE =
  '{ "a" : 1.0,"b":1e400 , "n": -0.0,\n\t"c": {"__proto__": 1, "a": 12345678901234567890}, "a": 2.50, "s":"\\u00e9\\ud800\\/" , "e": [ ] }';

describe("reading", () => {
  test("a text keeps its bytes", () => {
    const { node, start } = parseText(`  ${STRANGE}\n`);
    expect(node.text).toBe(STRANGE);
    expect(start).toBe(2);
  });

  test("the value is that of JSON.parse, of a repeated key the last", () => {
    expect(plainOf(parseNode(STRANGE))).toEqual(JSON.parse(STRANGE));
    const inner = plainOf(parseNode('{"__proto__": {"x": 1}}')) as object;
    expect(Object.keys(inner)).toEqual(["__proto__"]);
    expect((inner as { x?: unknown }).x).toBeUndefined();
  });

  test("the same node gives the same value", () => {
    const node = parseNode(STRANGE);
    expect(plainOf(node)).toBe(plainOf(node));
  });

  const bad = [
    "",
    "\ufeff{}",
    "{",
    "[1,]",
    "{a:1}",
    "01",
    "1.",
    "+1",
    "NaN",
    "tru",
    '"\n"',
    '"\\x"',
    '{"a" 1}',
    "1 2",
    "'a'",
    '{"a":1,}',
  ];
  test.each(bad)("%j is refused", (text) => {
    expect(() => parseNode(text)).toThrow(JsonTextError);
    expect(() => JSON.parse(text)).toThrow();
  });

  test("nesting has an end", () => {
    expect(() => parseNode("[".repeat(100_000))).toThrow("nested too deeply");
    const deepest = "[".repeat(MAX_DEPTH) + "]".repeat(MAX_DEPTH);
    expect(parseNode(deepest).text).toBe(deepest);
  });
});

describe("editing", () => {
  test("only the edited place has other bytes", () => {
    const node = setIn(parseNode(STRANGE), ["c", "a"], { value: 7 }, TWO_SPACES);
    expect(node.text).toBe(STRANGE.replace("12345678901234567890", "7"));
  });

  test("of a repeated key the last is set, and all are removed", () => {
    const node = parseNode(STRANGE);
    expect(setIn(node, ["a"], { value: 3 }, TWO_SPACES).text).toBe(STRANGE.replace("2.50", "3"));
    expect(Object.keys(plainOf(removeIn(node, ["a"])) as object)).not.toContain("a");
  });

  test("a new member is written as its neighbours are", () => {
    const lines = parseNode('{\n    "a": 1\n}');
    expect(setIn(lines, ["b"], { value: { c: [1] } }, styleOf(lines)).text).toBe(
      '{\n    "a": 1,\n    "b": {\n        "c": [\n            1\n        ]\n    }\n}',
    );
    const tight = parseNode('{"a":1}');
    expect(setIn(tight, ["b", "c"], { value: [1, 2] }, styleOf(tight)).text).toBe('{"a":1,"b":{"c":[1,2]}}');
    const spaced = parseNode('{"a": 1}');
    expect(setIn(spaced, ["b"], { value: { c: [1, 2] } }, styleOf(spaced)).text).toBe(
      '{"a": 1, "b": {"c": [1, 2]}}',
    );
  });

  test("what was inserted and removed again leaves the bytes as they were", () => {
    for (const text of ["[1, 2 ,3]", "[\n  1,\n  2\n]", "[1]", "[]"]) {
      const node = parseNode(text);
      for (let place = 0; place <= 3; place += 1) {
        const longer = insertIn(node, [], place, { value: { x: 1 } }, styleOf(node));
        const count = (plainOf(node) as Json[]).length;
        expect(removeIn(longer, [Math.min(place, count)]).text).toBe(text);
      }
    }
  });

  test("many items in one pass are as one by one", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed);
      const items = Array.from({ length: random.below(7) }, (_, at) => at);
      const text = `{"l": [${items.map((at) => `${" ".repeat(random.below(3))}${at}`).join(random.pick([",", " , ", ",\n  "]))} ]}`;
      const node = parseNode(text);
      const gone = new Set(items.filter(() => random.below(2) === 0));
      const changed = new Set(items.filter(() => random.below(3) === 0));
      const at = editItems(node, ["l"], (item, place) =>
        gone.has(place) ? null : changed.has(place) ? parseNode('"new"') : item,
      );
      let single = node;
      for (const place of [...items].reverse()) {
        if (gone.has(place)) single = removeIn(single, ["l", place]);
        else if (changed.has(place)) single = setIn(single, ["l", place], { value: "new" }, TWO_SPACES);
      }
      expect(at.text, `seed ${seed}`).toBe(single.text);
      expect(at, `seed ${seed}`).toEqual(parseNode(at.text));
    }
  });

  test("what is not there is not removed", () => {
    const node = parseNode(STRANGE);
    expect(removeIn(node, ["x", "y"])).toBe(node);
    expect(removeIn(node, ["e", 4])).toBe(node);
  });

  test("any edits give what the same edits of plain values give", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed);
      const source: Json = { a: [1, { b: 2 }, []], c: { d: {}, e: null }, f: "x" };
      let node = parseNode(JSON.stringify(source, null, random.pick([0, 1, 2, 4])));
      let plain = structuredClone(source) as Record<string, unknown>;
      for (let step = 0; step < 20; step += 1) {
        const key = random.pick(["a", "c", "f", "g", "h"]);
        const value = random.pick<Json>([1, "y", { k: [1] }, [], null]);
        const style = styleOf(node);
        const copy = { ...plain };
        if (random.below(3) === 0) {
          node = removeIn(node, [key]);
          delete copy[key];
        } else if (Array.isArray(copy[key]) && random.below(2) === 0) {
          const list = [...(copy[key] as Json[])];
          const place = random.below(list.length + 1);
          node = insertIn(node, [key], place, { value }, style);
          list.splice(place, 0, value);
          copy[key] = list;
        } else {
          node = setIn(node, [key], { value }, style);
          copy[key] = value;
        }
        plain = copy;
        expect(JSON.parse(node.text), `seed ${seed}`).toEqual(plain);
        const again = parseNode(node.text);
        expect(again, `seed ${seed}: offsets`).toEqual(node);
      }
    }
  });

  test("parts that are not edited stay the same objects", () => {
    const node = parseNode(STRANGE);
    const edited = setIn(node, ["n"], { value: 1 }, TWO_SPACES);
    expect(nodeAt(edited, ["c"])).toBe(nodeAt(node, ["c"]));
  });
});
