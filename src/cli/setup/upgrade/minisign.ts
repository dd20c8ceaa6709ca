// Verifies a signature of minisign, with the runtime's Ed25519. The format: https://jedisct1.github.io/minisign/
// Decision 0027 says why this is not a library.

import { createHash, createPublicKey, verify } from "node:crypto";

/** Two letters for the algorithm, eight bytes that name the key, and the key. */
const KEY_BYTES = 2 + 8 + 32;
const SIGNATURE_BYTES = 2 + 8 + 64;

/** Returns the trusted comment. Throws unless the owner of `publicKey` has signed both the bytes and the comment. */
export function verifySignature(bytes: Uint8Array, signature: string, publicKey: string): string {
  const key = Buffer.from(publicKey, "base64");
  const [, encoded = "", trusted = "", global = ""] = signature.split(/\r?\n/);
  const own = Buffer.from(encoded, "base64");
  const comment = /^trusted comment: (.*)$/.exec(trusted)?.[1];
  if (key.length !== KEY_BYTES || own.length !== SIGNATURE_BYTES || comment === undefined)
    throw new Error("the signature has another form");
  if (!own.subarray(2, 10).equals(key.subarray(2, 10))) throw new Error("the signature is of another key");
  const signed = own.subarray(10);
  // "ED" signs the hash of the file. Older versions of minisign sign the file itself, as "Ed".
  const isHashed = own.toString("latin1", 0, 2) === "ED";
  const message = isHashed ? createHash("blake2b512").update(bytes).digest() : bytes;
  const commented = Buffer.concat([signed, Buffer.from(comment)]);
  const isRight =
    isSignedBy(key, message, signed) && isSignedBy(key, commented, Buffer.from(global, "base64"));
  if (!isRight) throw new Error("the signature is wrong");
  return comment;
}

function isSignedBy(key: Buffer, message: Uint8Array, signature: Buffer): boolean {
  const jwk = { kty: "OKP", crv: "Ed25519", x: key.subarray(10).toString("base64url") };
  return (
    signature.length === 64 && verify(null, message, createPublicKey({ key: jwk, format: "jwk" }), signature)
  );
}
