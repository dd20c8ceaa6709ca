// What is thrown where the other side does not speak HTTP/1.1 as it is accepted here.

/** The other side broke the protocol. `status` is what a server answers to it. */
export class Malformed extends Error {
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.name = "Malformed";
    this.status = status;
  }
}
