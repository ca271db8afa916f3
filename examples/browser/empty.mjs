// What a page says when there is nothing, and what can be read without JavaScript.
// Arguments: a link for an empty dashboard, a link for the same without scripts, a directory for pictures.
import { browser, done, enter, inspect, open, wrong } from "./browser.mjs";

const [link, plain, pictures] = process.argv.slice(2);
const base = new URL(link).origin;
const context = await browser();
const page = await enter(context, link);
const paths = { home: "/", sessions: "/sessions", missions: "/missions", search: "/search", found: "/search?text=oauth", cost: "/cost", tickets: "/tickets", campaigns: "/campaigns", machine: "/machine" };
await inspect(page, base, paths, pictures);
const said = { home: "Nobody is waiting for you.", sessions: "No sessions here yet.", missions: "No missions under way.", search: "to the word.", found: "Nothing found in 0 sessions.", cost: "No usage recorded.", tickets: "No tickets.", campaigns: "No campaigns yet", machine: "no keeper" };

// Links and text are enough to read everything.
const still = await browser({ javaScriptEnabled: false });
const reader = await open(still, plain);
await reader.waitForURL(base + "/");
for (const [name, path] of Object.entries(paths)) {
  await page.goto(base + path);
  await reader.goto(base + path);
  for (const there of [page, reader]) {
    if (!(await there.textContent("#main")).includes(said[name])) wrong.push(`${name} does not say "${said[name]}"`);
  }
  const dead = await reader.locator("#main button:visible:not(.copy), #main input:visible").count();
  if (dead > 0) wrong.push(`${name} shows ${dead} things that do nothing without a script`);
}
await reader.goto(base + "/");
await reader.click(".rail a[href='/cost']");
if (reader.url() !== base + "/cost") wrong.push("a link does nothing without a script");
if (!(await reader.textContent("#link")).includes("reload")) wrong.push("nobody is told that the page stands still");

await done(context, still);
