// Starts the page. The code of a sign-in link is behind the #: it is taken out of the address at once.

import { render } from "preact";
import { App } from "./app.tsx";
import { createFeed } from "./state/live.ts";
import { FeedContext } from "./state/use.ts";

const CODE = /^#code=([\w-]+)$/;

const code = CODE.exec(location.hash)?.[1] ?? null;
// A link that is opened in the tab of this page changes only what is behind the #.
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
