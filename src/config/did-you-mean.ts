/** The number of characters to insert, delete, replace or swap with their neighbour. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min(current[column - 1]! + 1, last[column]! + 1, last[column - 1]! + (same ? 0 : 1));
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (row > 1 && column > 1 && swapped) best = Math.min(best, beforeLast[column - 2]! + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length]!;
}

/** Returns the nearest known name, or null if none is near enough. */
export function didYouMean(given: string, known: Iterable<string>): string | null {
  let nearest: string | null = null;
  let nearestDistance = Math.max(2, Math.floor(given.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(given.toLowerCase(), candidate.toLowerCase());
    if (distance < nearestDistance) {
      nearest = candidate;
      nearestDistance = distance;
    }
  }
  return nearest;
}

/** ` Did you mean X?`, or nothing. */
export function hint(given: string, known: Iterable<string>, show: (name: string) => string): string {
  const nearest = didYouMean(given, known);
  return nearest === null ? '' : ` Did you mean ${show(nearest)}?`;
}
