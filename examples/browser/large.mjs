// A long list, a long transcript and a long text, each in bounded memory.
// Arguments: a link; how many sessions there are; one of a hundred megabytes, whose last message has so many bytes.
import { measured } from "./unwatched.mjs";

const PAGES = 80; // Of a transcript that has hundreds: one that kept those before it would be too large by then.
const [link, rows, long, bytes] = process.argv.slice(2);
const base = new URL(link).origin;
const { wrong, within, done } = await measured(link);
const all = (browser, selector, each) => browser.run(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(${each})`);

// Follows one link of a page after another, to the last or so many.
async function through(browser, look, path, selector, each, most = Infinity) {
  let pages = 0;
  await browser.go(base + path);
  do {
    pages += 1;
    await each();
    await look();
  } while (pages < most && (await browser.click(selector)));
  return `${pages} pages`;
}

await within("a page", async (browser, look) => { await browser.go(base); await look(); return "1 page"; });

await within("list", async (browser, look) => {
  const found = new Set();
  const said = await through(browser, look, "/sessions?all=true&limit=100", ".pages a[rel=next]", async () => {
    for (const id of await all(browser, "tr.row", "(row) => row.id")) found.add(id);
  });
  if (found.size !== Number(rows)) wrong.push(`${found.size} of ${rows} rows are reached`);
  await browser.go(`${base}/sessions?all=true&limit=100000`);
  const shown = (await all(browser, "tr.row", "() => 1")).length;
  if (shown > 200) wrong.push(`${shown} rows on one page`);
  return said;
});

// Backwards from its end, and forwards from there again: nothing is passed over.
let [place, before] = [`/sessions/${long}`, []];
for (const [name, way] of [["transcript", "prev"], ["transcript forwards", "next"]]) {
  await within(name, async (browser, look) => {
    const said = new Set();
    const words = await through(browser, look, place, `.pages a[rel=${way}]`, async () => {
      for (const id of await all(browser, "#activity .item.you", "(item) => Number(item.id.slice(1))")) said.add(id);
    }, PAGES);
    const places = [...said].sort((a, b) => a - b);
    if (places.length < PAGES * 20) wrong.push(`${name}: ${places.length} messages on ${PAGES} pages`);
    const passed = before.filter((id) => id >= places[0] && id <= places.at(-1) && !said.has(id));
    if (passed.length > 0) wrong.push(`${name}: ${passed.length} messages are passed over`);
    [before, place] = [places, await browser.run("location.pathname + location.search")];
    return words;
  });
}

await within("one text", async (browser, look) => {
  await browser.go(`${base}/sessions/${long}?after=0`);
  const first = await browser.run(`document.querySelector("#activity .item.you .text").textContent.slice(0, 6)`);
  if (first !== "0 what") wrong.push(`the first message is "${first}"`);
  await browser.go(`${base}/sessions/${long}`);
  const whole = (await all(browser, ".item.you .whole a", `(link) => link.getAttribute("href")`)).at(-1);
  let read = 0;
  const said = await through(browser, look, whole, ".pages a[rel=next]", async () => {
    read += await browser.run(`new TextEncoder().encode(document.querySelector("pre.whole").textContent).length`);
  });
  if (read !== Number(bytes)) wrong.push(`${read} of ${bytes} bytes are read`);
  return said;
});

done();
