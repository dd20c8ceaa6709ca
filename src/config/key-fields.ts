// Where a client's key may be, for all who read, drop or mask it.

/** Header fields, in the order of the search. */
export const KEY_FIELDS = ["authorization", "x-api-key", "x-{vendor}-api-key"] as const;
/** `query`: the parameter `key` of the URL. */
export const KEY_SOURCES = [...KEY_FIELDS, "query"] as const;
export type KeySource = (typeof KEY_SOURCES)[number];
/** If a request has this field, no other counts. */
export const OWN_KEY_FIELD = "x-gateway-key";
/** Matches these fields, and providers' names for them. */
export const KEY_FIELD = new RegExp(`authorization|api-?key$|^(?:${KEY_FIELDS.join("|")})$`, "i");

export const nameField = (field: string, vendor: string): string => field.replace("{vendor}", vendor);
