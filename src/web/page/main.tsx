// Starts the page, and removes the sign-in code from the address.

import { render } from "preact";
import { App } from "./app.tsx";
import { createFeed } from "./state/live.ts";
import { FeedContext } from "./state/use.ts";

const CODE = /^#code=([\w-]+)$/;

const code = CODE.exec(location.hash)?.[1] ?? null;
// In an open page, a sign-in link changes only what follows the #.
addEventListener("hashchange", () => {
  if (CODE.test(location.hash)) location.reload();
});
if (code !== null) history.replaceState(null, "", location.pathname + location.search);

const page = document.getElementById("page");
if (page !== null) {
  render(
    <FeedContext.Provider value={createFeed()}>
      <App code={code} />
    </FeedContext.Provider>,
    page,
  );
}
