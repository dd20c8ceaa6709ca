// Where the threads of this program are.

/** `folder`: of the module and its worker.ts. In the executable, modules are parts of files in its root, and a worker keeps
 *  the place of its source. */
export function locateWorker(moduleUrl: string, folder: string): URL {
  const isSource = moduleUrl.includes(`/src/${folder}/`);
  return new URL(isSource ? "./worker.ts" : `./${folder}/worker.js`, moduleUrl);
}
