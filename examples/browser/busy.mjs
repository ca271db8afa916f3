// The page of an agent that says much, followed for a while in bounded memory. Arguments: a link, the session.
import { measured } from "./unwatched.mjs";

const BUSY_MS = 30_000;
const [link, busy] = process.argv.slice(2);
const base = new URL(link).origin;
const { wrong, within, done } = await measured(link);

await within("busy", async (browser, look) => {
  await browser.go(`${base}/sessions/${busy}`);
  const last = () => browser.run(`document.querySelector("#activity").lastElementChild.id`);
  const first = await last();
  let [most, changes, seen] = [0, 0, first];
  for (const end = Date.now() + BUSY_MS; Date.now() < end; ) {
    await new Promise((over) => setTimeout(over, 200));
    most = Math.max(most, await browser.run(`document.querySelectorAll("#activity .item").length`));
    const now = await last();
    if (now !== seen) [changes, seen] = [changes + 1, now];
    if (changes % 20 === 0) await look();
  }
  if (most > 200) wrong.push(`${most} deeds on one page`);
  if (changes < 20) wrong.push(`the page of a busy agent changed ${changes} times`);
  return `${changes} changes, ${most} deeds`;
});
done();
