// When the first page is painted, beside one of two letters from the same door. Argument: a link.
// Prints the medians of ten of each, in milliseconds from the beginning of the navigation.
import { browser, enter } from "./browser.mjs";

const TIMES = 10;
const [link] = process.argv.slice(2);
const base = new URL(link).origin;
const context = await browser({ viewport: { width: 1280, height: 800 } });
const page = await enter(context, link);

const painted = () =>
  new Promise((resolve) => {
    const first = () => performance.getEntriesByName("first-contentful-paint")[0];
    if (first()) return resolve(first().startTime);
    new PerformanceObserver((list, observer) => {
      if (!first()) return;
      observer.disconnect();
      resolve(first().startTime);
    }).observe({ type: "paint", buffered: true });
  });

async function median(path) {
  const all = [];
  for (let time = 0; time < TIMES; time++) {
    await page.goto(base + path);
    all.push(await page.evaluate(painted));
  }
  return all.sort((one, other) => one - other)[TIMES / 2];
}

const said = { page: await median("/"), plain: await median("/healthz") };
await context.close();
console.log(JSON.stringify(said));
