import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Pinned {
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
}

const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");

test("every dependency is pinned to one version", () => {
  const pinned = JSON.parse(read("package.json")) as Pinned;
  for (const [name, version] of Object.entries({ ...pinned.dependencies, ...pinned.devDependencies })) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
  }
});

test("the lock file names no registry, and has the native parts of every platform", () => {
  const text = read("package-lock.json");
  expect(text).not.toMatch(/"resolved"|registry/);
  const packages = (
    JSON.parse(text) as { packages: Record<string, { optionalDependencies?: Record<string, string> }> }
  ).packages;
  const names = Object.keys(packages);
  for (const [place, entry] of Object.entries(packages)) {
    for (const part of Object.keys(entry.optionalDependencies ?? {})) {
      expect(
        names.some((name) => name.endsWith(`node_modules/${part}`)),
        `${part} of ${place}`,
      ).toBe(true);
    }
  }
});

test("the model imports nothing but itself and the layout library", () => {
  const folder = new URL("../src/model/", import.meta.url);
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  expect(names.length).toBeGreaterThan(20);
  for (const name of names) {
    const source = readFileSync(new URL(name, folder), "utf8");
    for (const [, from] of source.matchAll(/from "([^"]+)"/g)) {
      const isOwn = from?.startsWith("./") || (from?.startsWith("../") && name.includes("/"));
      expect(isOwn || from === "@dagrejs/dagre", `${name}: ${from}`).toBe(true);
    }
    expect(source, name).not.toMatch(/\b(?:fetch|window|localStorage|Date\.now|Math\.random)\b/);
  }
});
