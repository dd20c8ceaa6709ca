// Reads what a program under test writes, and ends the program.

export interface Output {
  text(): string;
  /** Resolves with what is found in the text; null if the stream ends before. */
  until<T>(find: (text: string) => T | null): Promise<T | null>;
}

export function collect(stream: ReadableStream<Uint8Array>): Output {
  let text = "";
  let over = false;
  let wake = Promise.withResolvers<void>();
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      wake.resolve();
      wake = Promise.withResolvers();
    }
    over = true;
    wake.resolve();
  })();
  return {
    text: () => text,
    until: async (find) => {
      for (;;) {
        const found = find(text);
        if (found !== null || over) return found;
        await wake.promise;
      }
    },
  };
}

interface Child {
  kill(name: NodeJS.Signals): void;
  readonly exited: Promise<number>;
}

/** Sends SIGTERM, and SIGKILL if that takes too long for a test. Resolves with the exit status. */
export async function endChild(child: Child): Promise<number> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 50_000);
  const status = await child.exited;
  clearTimeout(timer);
  return status;
}
