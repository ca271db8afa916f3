// The page of a hub, on which several machines' sessions are.
// Arguments: a link for somebody who looks, a directory for pictures.
import { browser, done, inspect, open, wrong } from "./browser.mjs";

const [link, pictures] = process.argv.slice(2);
const base = new URL(link).origin;
const context = await browser();
const page = await open(context, link);
await page.waitForURL(base + "/");
await inspect(page, base, { hub: "/" }, pictures, "main h1");
// Without room for columns each word says what it is.
const said = await page.evaluate(() => getComputedStyle(document.querySelector("td[data-is=campaign]"), "::before").content);
if (!said.includes("campaign")) wrong.push(`a phone shows words of which nobody knows what they are: ${said}`);

// With room for them no word is broken in two.
await page.setViewportSize({ width: 1280, height: 800 });
const broken = await page.$$eval("th, td:is([data-is=session], [data-is=status], [data-is=provider])", (cells) => cells.filter((cell) => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  return words.getClientRects().length > 1;
}).map((cell) => cell.textContent));
if (broken.length > 0) wrong.push(`broken in two: ${broken.join(", ")}`);

// It stays up to date where it stands.
await page.evaluate(() => { document.querySelector("h1").textContent = "stale"; });
await page.waitForFunction(() => document.querySelector("h1").textContent === "Ostler hub");

await done(context);
