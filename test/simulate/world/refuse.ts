// Stands for modules and names of the runtime of which a simulated process gets only a part.

/** A function that is not replaced throws. */
export function refuseOthers<T extends object>(replaced: T, name: string): T {
  return new Proxy(replaced, {
    get(target, property) {
      if (property in target || typeof property === "symbol") return Reflect.get(target, property);
      if (property === "__esModule" || property === "default") return undefined;
      throw new Error(`the simulator does not replace ${name}.${property}`);
    },
  });
}
