// Looks at every page as a person would, and answers an approval while somebody else looks on.
// Arguments: two links, a session that asks for leave, a mission, a directory for pictures.
import { browser, done, enter, inspect, live, wrong } from "./browser.mjs";

const [link, other, session, mission, pictures] = process.argv.slice(2);
const base = new URL(link).origin;
const ann = await browser();
const page = await enter(ann, link);
if (page.url() !== base + "/") wrong.push(`the secret stays in the address: ${page.url()}`);

const own = `/sessions/${session}`;
await inspect(page, base, {
  home: "/", sessions: "/sessions", grouped: "/sessions?group=campaign", session: own, diff: `${own}/diff`, usage: `${own}/usage`,
  messages: `${own}/messages`, sandbox: `${own}/sandbox`, chain: `${own}/chain`, missions: "/missions?all=true",
  mission: `/missions/${mission}`, report: `/missions/${mission}/report`, search: "/search?text=agent", cost: "/cost", tickets: "/tickets",
  board: "/tickets?view=board", campaigns: "/campaigns", campaign: "/campaigns/shop", machine: "/machine", nowhere: "/sessions/nobody",
}, pictures);
// The last one is not there, and the browser says so.
wrong.splice(0, wrong.length, ...wrong.filter((line) => !line.includes("404")));

await page.setViewportSize({ width: 360, height: 800 });
await page.goto(base + "/machine");
const broken = await page.$$eval("td:first-child:is(.good, .warn, .bad)", (cells) => cells.filter((cell) => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  return words.getClientRects().length > 1;
}).length);
if (broken > 0) wrong.push(`${broken} words of the machine are broken in two`);
await page.goto(base + "/cost");
if (await page.$eval(".drawing", (days) => days.scrollLeft === 0)) wrong.push("today is out of sight");
await page.goto(base + "/");
await live(page);
for (const button of await page.locator(".card footer :is(.allow, .deny, .more summary)").all()) {
  const box = await button.boundingBox();
  if (box.height < 48 || box.width < 48) wrong.push(`a button is ${box.width} × ${box.height} pixels large`);
}
// The first four pages are in the bar, and who needs somebody wherever one is.
for (const [path, whole] of [["/", 4], ["/machine", 1]]) {
  await page.goto(base + path);
  await live(page);
  for (const item of (await page.locator(".rail a").all()).slice(0, whole)) {
    const [box, words] = [await item.boundingBox(), await item.textContent()];
    const cut = await item.evaluate((link) => link.scrollWidth > link.clientWidth);
    if (box.x < 0 || box.x + box.width > 360 || cut) wrong.push(`of the bar's ${words} a part is out of sight on ${path}`);
  }
}
await page.goto(base + "/");
await live(page);
await page.waitForTimeout(700);
const [deny, allow] = [await page.locator("[data-key=d]").first().boundingBox(), await page.locator("[data-key=a]").first().boundingBox()];
if (deny.x >= allow.x) wrong.push("deny does not stand left of allow");

// Two people, each let in by a link of their own: one answers, the other sees it and has no buttons any more.
const bob = await browser();
const looks = await enter(bob, other);
await page.waitForTimeout(700); // Buttons do nothing for 600 ms after they appeared: this is what is tried.
await page.click("[data-card] [data-key=a]");
await looks.waitForSelector("article.settled");
console.log((await looks.textContent("article.settled .word")).trim());
if ((await looks.locator("article.settled [data-key]").count()) > 0) wrong.push("what was answered can be answered again");

// What an agent says is added to a page that is open, once, and as text.
await page.goto(base + own);
await live(page);
await page.fill("#composer textarea", '{"steps":[{"repeat":5,"every_ms":50,"steps":[{"say":"tick {i} <b>not bold</b>"}]}]}');
await page.click("#composer button");
await page.waitForFunction(() => document.querySelectorAll("#activity > li.say").length >= 6);
const ids = await page.$$eval("#activity li[id]", (items) => items.map((item) => item.id));
if (new Set(ids).size !== ids.length) wrong.push("something is there twice");
if ((await page.locator("#activity b").count()) > 0) wrong.push("an agent's text became a tag");

await done(ann, bob);
