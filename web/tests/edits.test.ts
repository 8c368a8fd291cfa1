import { describe, expect, test } from "vitest";
import { copyNodes, duplicateNodes, pasteNodes } from "../src/model/clipboard";
import type { Position } from "../src/model/definition";
import {
  EditError,
  edgesOf,
  groupsOf,
  isDrawable,
  nodeOf,
  nodesOf,
  notesOf,
  openDocument,
  setAt,
  textOf,
  type WorkflowDocument,
} from "../src/model/document";
import { addGroup, addNote, changeNote, removeGroup, removeNote } from "../src/model/edits/canvas";
import { connect, disconnect, insertOnEdge, setCondition } from "../src/model/edits/edges";
import {
  addMiddleware,
  addNode,
  moveNodes,
  removeMiddleware,
  removeNodes,
  renameNode,
  setBound,
  setDisabled,
  setField,
  setParent,
  unwrapContainer,
} from "../src/model/edits/nodes";
import {
  abort,
  apply,
  begin,
  commit,
  MAX_ENTRIES,
  redo,
  redoLabel,
  startHistory,
  undo,
  undoLabel,
} from "../src/model/history";
import { EVERYTHING, SEED } from "./examples";
import { Random } from "./random";

const at = (x: number, y: number): Position => ({ x, y });
const [OPEN, CLICK] = nodesOf(openDocument(SEED)).map((node) => node.id) as [string, string];

/** The lines of a text that another one has not, both ways. */
function changedLines(before: string, after: string): { gone: string[]; came: string[] } {
  const [old, now] = [before.split("\n"), after.split("\n")];
  return { gone: old.filter((line) => !now.includes(line)), came: now.filter((line) => !old.includes(line)) };
}

function chain(count: number): WorkflowDocument {
  let document = openDocument('{"id":"w","nodes":[],"edges":[]}');
  for (let number = 0; number < count; number += 1) {
    document = addNode(document, { id: `n${number}`, type: "core.echo", position: at(number * 10, 0) });
    if (number > 0)
      document = connect(document, { source: { node: `n${number - 1}` }, target: { node: `n${number}` } });
  }
  return document;
}

describe("the bytes of what was not edited", () => {
  test.each([SEED, EVERYTHING, ` ${SEED}\r\n`])("open and save changes nothing", (text) => {
    expect(textOf(openDocument(text))).toBe(text);
  });

  test("a parameter is one line of the seed", () => {
    const edited = setBound(openDocument(SEED), OPEN, "parameters.url", "https://example.org");
    expect(changedLines(SEED, textOf(edited))).toEqual({
      gone: ['        "url": "https://example.com",'],
      came: ['        "url": "https://example.org",'],
    });
  });

  test("setting what is there already changes nothing, and gives the same document", () => {
    const document = openDocument(
      '{"nodes":[{"id":"a","type":"t","parameters":{"x":1.0,"y":1e400,"big":12345678901234567890}}]}',
    );
    for (const [path, value] of [
      ["x", 1],
      ["y", Number.POSITIVE_INFINITY],
      ["big", Number("12345678901234567890")],
    ] as const) {
      expect(setBound(document, "a", `parameters.${path}`, value)).toBe(document);
    }
  });

  test("an object that is set anew keeps the bytes of the members that are equal", () => {
    const text = '{"p": { "a" : 1.0,  "b": [ 1.50, 2 ], "c": 3 }}';
    const edited = setAt(openDocument(text), ["p"], { a: 1, b: [1.5, 7], d: null });
    expect(textOf(edited)).toBe('{"p": { "a" : 1.0,  "b": [ 1.50, 7 ],  "d" : null }}');
  });

  test("move, rename and disable touch their lines alone", () => {
    let document = openDocument(SEED);
    document = moveNodes(document, new Map([[CLICK, at(501.4, 160.6)]]));
    document = renameNode(document, OPEN, "Open");
    document = setDisabled(document, [CLICK], true);
    const { gone, came } = changedLines(SEED, textOf(document));
    expect(gone).toHaveLength(2);
    expect(came).toContain('      "position": { "x": 501, "y": 161 },');
    expect(came).toContain('      "label": "Open",');
    expect(textOf(setDisabled(setDisabled(openDocument(SEED), [OPEN], true), [OPEN], false))).toBe(SEED);
  });

  test("unknown fields, at any depth, survive edits beside them", () => {
    const text = SEED.replace('"parameters": {', '"x-own": {"a": 1.0},\n      "parameters": {');
    const edited = setField(openDocument(text), OPEN, ["retry", "maxAttempts"], 3);
    expect(textOf(edited)).toContain('"x-own": {"a": 1.0},');
    expect(textOf(setField(edited, OPEN, ["retry"], undefined))).toBe(text);
  });

  test("parts that were not edited are the same objects", () => {
    const document = openDocument(SEED);
    const edited = renameNode(document, OPEN, "Open");
    expect(nodesOf(edited)[1]).toBe(nodesOf(document)[1]);
    expect(edgesOf(edited)).toBe(edgesOf(document));
  });
});

describe("nodes and edges", () => {
  test.each([
    ["{}", true],
    [SEED, true],
    ['{"nodes":[{"id":"a","type":"t","retry":{"maxAttempts":0}}]}', true],
    ["[]", false],
    ["null", false],
    ['{"nodes":{}}', false],
    ['{"nodes":[null]}', false],
    ['{"nodes":[{"id":1,"type":"t"}]}', false],
    ['{"edges":[{"source":{"node":"a"}}]}', false],
  ])("%s can be drawn: %s", (text, isSo) => {
    expect(isDrawable(openDocument(text))).toBe(isSo);
  });

  test("what is not there cannot be edited", () => {
    expect(() => renameNode(openDocument(SEED), "nobody", "x")).toThrow(EditError);
    for (const path of ["results.page", "parameters", "parameters..x", "parameters.__proto__.x"]) {
      expect(() => setBound(openDocument(SEED), OPEN, path, 1)).toThrow(EditError);
    }
  });

  test("a bound list is filled up to its index", () => {
    const document = openDocument('{"nodes":[{"id":"a","type":"t","parameters":{"l":[1]}}]}');
    expect(nodeOf(setBound(document, "a", "parameters.l.3", 9), "a").parameters).toEqual({
      l: [1, null, null, 9],
    });
  });

  test("a removed node takes with it whatever refers to it", () => {
    let document = chain(3);
    document = setField(document, "n0", ["onFailure"], "n1");
    document = setField(document, "n0", ["middlewares"], ["n1", "n2"]);
    document = setAt(document, ["outputs"], { a: { source: { node: "n1" } }, b: { source: { node: "n2" } } });
    document = addGroup(document, { id: "g", label: "G", nodes: ["n0", "n1"] });
    const edited = removeNodes(document, ["n1"]);
    expect(textOf(edited)).not.toContain('"n1"');
    expect(nodeOf(edited, "n0").middlewares).toEqual(["n2"]);
    expect(groupsOf(edited)[0]?.nodes).toEqual(["n0"]);
    expect(edgesOf(edited)).toEqual([]);
  });

  test("a healed gap connects what came before with what came after, over several nodes", () => {
    const healed = removeNodes(chain(5), ["n1", "n2", "n3"], { heals: () => true });
    expect(edgesOf(healed)).toEqual([{ source: { node: "n0" }, target: { node: "n4" } }]);
    expect(edgesOf(removeNodes(chain(3), ["n1"], { heals: () => false }))).toEqual([]);
  });

  test("an edge is there once, and can take the place of another", () => {
    const document = chain(3);
    const same = connect(document, { source: { node: "n0", port: "done" }, target: { node: "n1" } });
    expect(same).toBe(document);
    const edge = { source: { node: "n0", port: "value" }, target: { node: "n2", port: "value" } };
    const once = connect(document, edge);
    const other = { source: { node: "n1", port: "value" }, target: edge.target };
    expect(edgesOf(connect(once, other, { replaces: true })).filter((one) => one.target.port)).toEqual([
      other,
    ]);
    expect(edgesOf(disconnect(once, new Set([0, 2])))).toHaveLength(1);
  });

  test("a condition is set and taken away again", () => {
    const document = chain(2);
    const text = textOf(document);
    expect(textOf(setCondition(setCondition(document, 0, "results.ok"), 0, ""))).toBe(text);
    expect(setCondition(document, 7, "x")).toBe(document);
  });

  test("a node is put into the middle of an edge", () => {
    const document = addNode(chain(2), { id: "m", type: "core.echo", position: at(0, 0) });
    const edited = insertOnEdge(document, 0, "m", { input: "value", output: "value" });
    expect(edgesOf(edited)).toEqual([
      { source: { node: "n0" }, target: { node: "m", port: "value" } },
      { source: { node: "m", port: "value" }, target: { node: "n1" } },
    ]);
  });
});

describe("containers and chains", () => {
  const withBox = (): WorkflowDocument =>
    addNode(chain(3), { id: "box", type: "core.container", position: at(0, 0) });

  test("edges that would cross a border are removed", () => {
    const edited = setParent(withBox(), ["n1", "n2"], "box");
    expect(edgesOf(edited)).toEqual([{ source: { node: "n1" }, target: { node: "n2" } }]);
    expect(nodeOf(edited, "n1").parent).toBe("box");
  });

  test("a container is not inside itself, and nothing else holds nodes", () => {
    const nested = addNode(withBox(), {
      id: "in",
      type: "core.container",
      position: at(0, 0),
      parent: "box",
    });
    expect(() => setParent(nested, ["box"], "in")).toThrow(EditError);
    expect(() => setParent(nested, ["n1"], "n2")).toThrow(EditError);
  });

  test("a dissolved container leaves its nodes, a removed one does not", () => {
    const boxed = setParent(withBox(), ["n1", "n2"], "box");
    expect(nodesOf(unwrapContainer(boxed, "box")).map((node) => [node.id, node.parent])).toEqual([
      ["n0", undefined],
      ["n1", undefined],
      ["n2", undefined],
    ]);
    expect(nodesOf(removeNodes(boxed, ["box"])).map((node) => node.id)).toEqual(["n0"]);
  });

  test("a middleware loses its edges and follows its host", () => {
    let document = addMiddleware(withBox(), "n1", "n2", 0);
    expect(nodeOf(document, "n1").middlewares).toEqual(["n2"]);
    expect(edgesOf(document)).toHaveLength(1);
    document = setParent(document, ["n1"], "box");
    expect(nodeOf(document, "n2").parent).toBe("box");
    expect(nodeOf(removeMiddleware(document, "n1", "n2"), "n1").middlewares).toBeUndefined();
  });
});

describe("notes and groups", () => {
  test("one that came and went leaves no trace", () => {
    const document = openDocument(SEED);
    const note = { id: "a", text: "Hello", position: at(1, 2), width: 200, height: 80 };
    const noted = changeNote(addNote(document, note), "a", { text: "Bye" });
    expect(notesOf(noted)[0]?.text).toBe("Bye");
    expect(textOf(removeNote(noted, "a"))).toBe(SEED);
    expect(textOf(removeGroup(addGroup(document, { id: "g", label: "G", nodes: [OPEN] }), "g"))).toBe(SEED);
    expect(() => removeNote(document, "a")).toThrow(EditError);
  });
});

describe("copy and paste", () => {
  const ids = (seed: number): (() => string) => {
    const random = new Random(seed);
    return () => random.uuid();
  };

  test("a copy has new ids wherever the old ones are named, and the bytes of the rest", () => {
    const document = openDocument(
      SEED.replace('"timeoutMs": 30000', `"timeoutMs": 30000.0, "of": "=nodes['${CLICK}'].results"`),
    );
    const pasted = pasteNodes(document, copyNodes(document, [OPEN, CLICK]), {
      newId: ids(1),
      offset: at(40, 40),
    });
    if (pasted === null) throw new Error("it was not pasted");
    expect(pasted.ids).toHaveLength(2);
    const [open, click] = pasted.ids as [string, string];
    const edited = pasted.document;
    expect(nodesOf(edited)).toHaveLength(4);
    expect(edgesOf(edited).at(-1)).toMatchObject({ source: { node: open }, target: { node: click } });
    expect(edgesOf(edited).at(-1)?.id).toBeUndefined();
    expect(nodeOf(edited, open).position).toEqual({ x: 140, y: 200 });
    expect(nodeOf(edited, open).parameters?.of).toBe(`=nodes['${click}'].results`);
    expect(textOf(edited).match(/30000\.0/g)).toHaveLength(2);
    expect(textOf(edited).startsWith(textOf(document).slice(0, 400))).toBe(true);
  });

  test.each(["", "x", "{}", '{"kind":"astraflow.nodes"}', '{"kind":"astraflow.nodes","nodes":[1]}', "[]"])(
    "%j is not pasted",
    (text) => {
      expect(pasteNodes(openDocument(SEED), text, { newId: ids(1), offset: at(0, 0) })).toBeNull();
    },
  );

  test("references to what was not copied are left out", () => {
    const [a, b] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];
    const document = openDocument(
      `{"nodes":[{"id":"${a}","type":"t","parent":"${b}","onFailure":"${b}"},{"id":"${b}","type":"core.container"}]}`,
    );
    const copy = pasteNodes(document, copyNodes(document, [a]), { newId: ids(2), offset: at(0, 0) });
    expect(nodesOf(copy?.document as WorkflowDocument).at(-1)).toEqual({
      id: copy?.ids[0],
      type: "t",
      position: { x: 0, y: 0 },
    });
    const twice = duplicateNodes(document, [a], { newId: ids(3), offset: at(8, 8) });
    expect(nodesOf(twice.document).at(-1)?.parent).toBe(b);
  });
});

describe("undo and redo", () => {
  test("a gesture is one entry", () => {
    let history = startHistory(0);
    history = begin(history, "drag");
    for (let step = 1; step <= 5; step += 1) history = apply(history, "move", () => step);
    expect(undoLabel(history)).toBe("drag");
    history = commit(history);
    expect(history.past).toHaveLength(1);
    history = undo(history);
    expect([history.present, redoLabel(history)]).toEqual([0, "drag"]);
    expect(redo(history).present).toBe(5);
  });

  test("a gesture that changes nothing is no entry, and one that is given up leaves nothing", () => {
    const history = startHistory(0);
    expect(commit(begin(history, "drag")).past).toEqual([]);
    expect(abort(apply(begin(history, "drag"), "move", () => 3))).toEqual(history);
    expect(apply(history, "same", (state) => state)).toBe(history);
    expect(undo(history)).toBe(history);
    expect(redo(history)).toBe(history);
  });

  test("undo in the middle of a gesture undoes the gesture; a new edit forgets what was undone", () => {
    const dragged = apply(begin(startHistory(0), "drag"), "move", () => 1);
    expect(undo(dragged).present).toBe(0);
    const undone = undo(
      apply(
        apply(startHistory(0), "a", () => 1),
        "b",
        () => 2,
      ),
    );
    expect(apply(undone, "c", () => 9).future).toEqual([]);
  });

  test("the past has an end", () => {
    let history = startHistory(0);
    for (let step = 1; step <= MAX_ENTRIES + 50; step += 1) history = apply(history, "a", () => step);
    expect(history.past).toHaveLength(MAX_ENTRIES);
  });

  test("random edits, then undo of all: the same bytes; redo of all: those after the edits", () => {
    for (let seed = 0; seed < 60; seed += 1) {
      const random = new Random(seed);
      const text = random.pick([SEED, EVERYTHING, textOf(chain(4))]);
      let history = startHistory(openDocument(text));
      for (let step = 0; step < 25; step += 1) {
        const inside = random.below(4) === 0;
        if (inside) history = begin(history, "gesture");
        history = apply(history, "edit", (document) => randomEdit(document, random));
        history = apply(history, "edit", (document) => randomEdit(document, random));
        if (inside) history = random.below(5) === 0 ? abort(history) : commit(history);
        expect(() => JSON.parse(textOf(history.present))).not.toThrow();
        expect(openDocument(textOf(history.present)).root).toEqual(history.present.root);
      }
      const after = textOf(history.present);
      let back = history;
      while (back.past.length > 0) back = undo(back);
      expect(textOf(back.present), `seed ${seed}`).toBe(text);
      while (back.future.length > 0) back = redo(back);
      expect(textOf(back.present), `seed ${seed}`).toBe(after);
    }
  });
});

function randomEdit(document: WorkflowDocument, random: Random): WorkflowDocument {
  const nodes = nodesOf(document);
  const id = nodes.length > 0 ? random.pick(nodes).id : "";
  const other = nodes.length > 0 ? random.pick(nodes).id : "";
  const newId = (): string => random.uuid();
  const edits: (() => WorkflowDocument)[] = [
    () => addNode(document, { id: newId(), type: "core.echo", position: at(random.below(900), 5) }),
    () => removeNodes(document, [id], { heals: () => true }),
    () => moveNodes(document, new Map([[id, at(random.below(900), random.below(900))]])),
    () => renameNode(document, id, random.pick(["", "A", "é\u2028"])),
    () => setBound(document, id, "parameters.a.b", random.pick([1, "x", null, [1, { c: 2 }]])),
    () => setDisabled(document, [id], random.below(2) === 0),
    () => connect(document, { source: { node: id }, target: { node: other } }),
    () => disconnect(document, new Set([random.below(4)])),
    () => duplicateNodes(document, [id], { newId, offset: at(8, 8) }).document,
    () => addNote(document, { id: newId(), text: "n", position: at(0, 0), width: 9, height: 9 }),
    () => setField(document, id, ["retry"], random.pick([undefined, { maxAttempts: 3 }])),
    () => setParent(document, [id], null),
  ];
  return nodes.length === 0 ? (edits[0] as () => WorkflowDocument)() : random.pick(edits)();
}
