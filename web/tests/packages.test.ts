import { describe, expect, test } from "vitest";
import { aboutOf, builtIn, findPackages, type Summary } from "../src/ops/packages/listing";
import { plainOf } from "../src/values/plainText";

const row = (name: string, description = ""): Summary => ({
  name,
  description,
  active: "1.0.0",
  pinned: false,
  nodes: 3,
  publishedAt: "",
  versions: ["1.0.0"],
});

describe("Markdown in one line", () => {
  test.each([
    ["plain text", "plain text"],
    ["Runs `core.python` steps", "Runs core.python steps"],
    ["Uses `a*b*c` and ``x ` y``", "Uses a*b*c and x ` y"],
    ["**Bold**, *slanted* and __also__", "Bold, slanted and also"],
    ["snake_case_names and 2 * 3 * 4 stay", "snake_case_names and 2 * 3 * 4 stay"],
    ["See [the guide](https://example.org/a_b_c).", "See the guide."],
    ["# Title\n\n- one\n- two", "Title one two"],
    ["an open ` stays", "an open ` stays"],
    ["", ""],
  ])("%j is %j", (given, plain) => expect(plainOf(given)).toBe(plain));
});

describe("the list of packages", () => {
  test("a package without a description tells how many steps it has", () => {
    expect(aboutOf(row("a"))).toBe("3 steps");
    expect(aboutOf(row("a", "Reads `csv`"))).toBe("Reads csv");
  });

  test("a text finds by name and by what is shown", () => {
    const rows = [row("tables", "Reads `csv` files"), row("mail")];
    expect(findPackages(rows, " CSV files ").map((one) => one.name)).toEqual(["tables"]);
    expect(findPackages(rows, "MAI").map((one) => one.name)).toEqual(["mail"]);
    expect(findPackages(rows, "")).toHaveLength(2);
    expect(findPackages(rows, "nothing")).toEqual([]);
  });

  test("what nobody published is part of the installation", () => {
    const step = (name: string) => ({ package: { name, version: "2.0.0" } });
    const catalog = { all: [step("core"), step("core"), step("mail")] } as unknown as Parameters<
      typeof builtIn
    >[0];
    expect(builtIn(catalog, [row("mail")])).toMatchObject([{ name: "core", nodes: 2, active: "2.0.0" }]);
    expect(builtIn(undefined, [])).toEqual([]);
  });
});
