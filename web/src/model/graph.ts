/** Circles of a directed graph of numbered vertices. `successors` has, for each vertex, those that its edges lead to. */

/** The strongly connected components of more than one vertex, each in ascending order (Tarjan, without recursion). */
export function findCycles(successors: readonly (readonly number[])[]): number[][] {
  const numbers = new Map<number, number>();
  const low = new Map<number, number>();
  const stack: number[] = [];
  const onStack = new Set<number>();
  const cycles: number[][] = [];
  for (let root = 0; root < successors.length; root += 1) {
    if (numbers.has(root)) continue;
    const path: { vertex: number; next: number }[] = [];
    const enter = (vertex: number): void => {
      numbers.set(vertex, numbers.size);
      low.set(vertex, numbers.get(vertex) as number);
      stack.push(vertex);
      onStack.add(vertex);
      path.push({ vertex, next: 0 });
    };
    enter(root);
    for (let here = path.at(-1); here !== undefined; here = path.at(-1)) {
      const { vertex } = here;
      const target = successors[vertex]?.[here.next];
      if (target !== undefined) {
        here.next += 1;
        if (!numbers.has(target)) enter(target);
        else if (onStack.has(target)) lower(low, vertex, numbers.get(target) as number);
        continue;
      }
      path.pop();
      const above = path.at(-1);
      if (above !== undefined) lower(low, above.vertex, low.get(vertex) as number);
      if (low.get(vertex) === numbers.get(vertex)) {
        const members = stack.splice(stack.lastIndexOf(vertex));
        for (const one of members) onStack.delete(one);
        if (members.length > 1) cycles.push(members.sort((a, b) => a - b));
      }
    }
  }
  return cycles;
}

function lower(low: Map<number, number>, vertex: number, value: number): void {
  low.set(vertex, Math.min(low.get(vertex) ?? value, value));
}
