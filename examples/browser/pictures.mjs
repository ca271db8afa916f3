// Takes the pictures of the README and of the pages. Arguments: a link, a directory.
import { join } from "node:path";
import { browser, done, enter, live } from "./browser.mjs";

const [link, docs] = process.argv.slice(2);
const base = new URL(link).origin;
const context = await browser({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
const page = await enter(context, link);
const mission = await page.evaluate(() => fetch("/v1/missions?all=true").then((answer) => answer.json())).then((said) => said.missions[0].id);
const asking = await page.evaluate(() => fetch("/v1/sessions?all=true").then((answer) => answer.json())).then((said) => said.sessions.find((one) => one.name === "api-auth").id);
const paths = { "needs-you": "/", sessions: "/sessions?all=true", session: `/sessions/${asking}`, mission: `/missions/${mission}`, cost: "/cost?by=agent" };
for (const [name, path] of Object.entries(paths)) {
  await page.goto(base + path);
  await live(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(docs, `dashboard-${name}.png`) });
}
await page.setViewportSize({ width: 360, height: 740 });
await page.goto(base + "/");
await live(page);
await page.screenshot({ path: join(docs, "dashboard-phone.png") });
await done(context);
