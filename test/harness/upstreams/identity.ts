// Makes a certificate authority for one test, which signs a certificate for the test's hosts.

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Identity {
  /** The authority's certificate, as PEM text: what the tool has to trust. */
  readonly authority: string;
  /** The hosts' certificate and its key, as PEM text. */
  readonly certificate: string;
  readonly key: string;
}

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 24 * HOUR_MS;

const OID = {
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
} as const;

const ISSUER = "a test of gateway";

export function makeIdentity(hosts: readonly string[], now: number): Identity {
  const root = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const [rootId, leafId] = [identify(root.publicKey), identify(leaf.publicKey)];
  const signed = { issuerKey: root.privateKey, now };
  const authority = writeCertificate({
    ...signed,
    subject: ISSUER,
    publicKey: root.publicKey,
    extensions: [
      extension(OID.basicConstraints, sequence(TRUE, integer(Buffer.of(0))), "critical"),
      extension(OID.keyUsage, bits(Buffer.of(0x04), 2), "critical"), // keyCertSign
      extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth))),
      extension(OID.subjectKeyIdentifier, octets(rootId)),
    ],
  });
  const certificate = writeCertificate({
    ...signed,
    subject: hosts[0] ?? "",
    publicKey: leaf.publicKey,
    extensions: [
      extension(OID.basicConstraints, sequence(), "critical"),
      extension(OID.keyUsage, bits(Buffer.of(0x80), 7), "critical"), // digitalSignature
      extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth))),
      extension(OID.subjectAltName, sequence(...hosts.map((host) => tagged(DNS_NAME, host)))),
      extension(OID.subjectKeyIdentifier, octets(leafId)),
      extension(OID.authorityKeyIdentifier, sequence(tagged(KEY_IDENTIFIER, rootId))),
    ],
  });
  const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
  return { authority, certificate, key };
}

interface CertificateText {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly issuerKey: KeyObject;
  readonly now: number;
  readonly extensions: readonly Buffer[];
}

/** Writes a certificate as RFC 5280, section 4.1, says. */
function writeCertificate({ subject, publicKey, issuerKey, now, extensions }: CertificateText): string {
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const serial = randomBytes(16);
  serial[0] = 0x40 | ((serial[0] ?? 0) & 0x3f); // positive, and of full length
  const body = sequence(
    tagged(VERSION, integer(Buffer.of(2))),
    integer(serial),
    algorithm,
    writeName(ISSUER),
    // The certificate is valid since an hour ago, because the clock of a container may be a little behind.
    sequence(writeTime(now - HOUR_MS), writeTime(now + LIFETIME_MS)),
    writeName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(EXTENSIONS, sequence(...extensions)),
  );
  const signature = sign("sha256", body, { key: issuerKey, dsaEncoding: "der" });
  const text = sequence(body, algorithm, bits(signature, 0)).toString("base64").replace(/.{64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${text.trimEnd()}\n-----END CERTIFICATE-----\n`;
}

function identify(key: KeyObject): Buffer {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
}

function extension(id: string, value: Buffer, weight?: "critical"): Buffer {
  return sequence(oid(id), ...(weight === "critical" ? [TRUE] : []), octets(value));
}

function writeName(commonName: string): Buffer {
  const name = sequence(oid(OID.commonName), tagged(0x0c, commonName)); // UTF8String
  return sequence(tagged(0x31, name)); // a set of one
}

/** Writes a time as a UTCTime, which RFC 5280 wants before 2050. */
function writeTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]|\..*/g, "");
  return tagged(0x17, `${digits.slice(2)}Z`);
}

// The part of DER that these two certificates need: X.690, section 8.

const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const DNS_NAME = 0x82;
const KEY_IDENTIFIER = 0x80;

function tagged(tag: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return Buffer.concat([Buffer.of(tag), writeLength(bytes.length), bytes]);
}

function writeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  return length < 0x100 ? Buffer.of(0x81, length) : Buffer.of(0x82, length >> 8, length & 0xff);
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

const TRUE = tagged(0x01, Buffer.of(0xff));

function integer(bytes: Uint8Array): Buffer {
  return tagged(0x02, bytes);
}

function octets(bytes: Uint8Array): Buffer {
  return tagged(0x04, bytes);
}

function bits(bytes: Uint8Array, unused: number): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.of(unused), bytes]));
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(writeArc)]));
}

/** Writes a number with seven bits in each byte. All bytes but the last have the top bit set. */
function writeArc(arc: number): number[] {
  const bytes = [arc & 0x7f];
  for (let left = arc >> 7; left > 0; left >>= 7) bytes.unshift(0x80 | (left & 0x7f));
  return bytes;
}
