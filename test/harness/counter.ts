// A client on a bare socket that counts bytes and does not keep them: for more of them than a test can hold.

export async function openCounter(port: number): Promise<{
  send(bytes: Uint8Array): void;
  pause(): void;
  resume(): void;
  came(): number;
  until(bytes: number): Promise<void>;
  close(): void;
}> {
  let came = 0;
  let wanted = Number.POSITIVE_INFINITY;
  let wake = (): void => {};
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, bytes) {
        came += bytes.length;
        if (came >= wanted) wake();
      },
      close: () => wake(),
    },
  });
  return {
    send: (bytes) => void socket.write(bytes),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    came: () => came,
    until: (bytes) =>
      new Promise((resolve) => {
        wanted = bytes;
        wake = resolve;
        if (came >= bytes) resolve();
      }),
    close: () => void socket.end(),
  };
}
