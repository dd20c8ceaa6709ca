// Asks a channel for its models, to see whether it is there: free of charge, and
// through the same door as real traffic.

import type { Channel } from "../config/catalog.ts";
import type { Gateway } from "./gateway.ts";

export async function probeChannel(channel: Channel, gateway: Gateway): Promise<void> {
  await gateway.lists.ofChannel(channel, gateway.catalog.vendor);
}
