// A real browser, what is wrong with what it shows, and pictures of it. Shared by the scripts beside it.
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const WIDTHS = [1280, 360];
export const wrong = [];

const PROGRAM = {
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
};

// A browser of its own: nobody else's cookies are in it.
export const browser = (options = {}) => chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "ostler-browser-")), { ...PROGRAM, ...options });

export async function open(context, address) {
  const page = await context.newPage();
  // What the policy of a page forbids is said on its console.
  page.on("console", (message) => message.type() === "error" && wrong.push(`${address}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`${address}: ${error.message}`));
  await page.goto(address);
  return page;
}

// Follows a link as a person does, and stands on the page that it leads to.
export async function enter(context, link) {
  const page = await open(context, link);
  await page.waitForFunction(() => !location.pathname.startsWith("/open/"));
  await live(page);
  return page;
}

export const live = (page) => page.waitForSelector(".link.live");

// As those who do not see it, or use no mouse, find it.
export async function accessible(page, name) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const found of violations) {
    const where = found.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary.replaceAll("\n", " ")}`).join(" | ");
    wrong.push(`${name}: ${found.id}: ${found.help}: ${where}`);
  }
}

// Looks at a page at every width, and keeps a picture of each.
export async function inspect(page, base, paths, pictures, ready = ".link.live, .link.fixed") {
  mkdirSync(pictures, { recursive: true });
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    for (const [name, path] of Object.entries(paths)) {
      await page.goto(base + path);
      await page.waitForSelector(ready);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wrong.push(`${name} is ${over} pixels wider than ${width}`);
      const hidden = await page.evaluate(() => [...document.querySelectorAll(".scroll:has(table), .tabs")].map((box) => box.scrollWidth - box.clientWidth));
      if (hidden.some((pixels) => pixels > 0)) wrong.push(`${name} at ${width}: columns are out of sight`);
      await accessible(page, `${name} at ${width}`);
      await page.screenshot({ path: join(pictures, `${name}-${width}.png`) });
    }
  }
}

export async function done(...contexts) {
  for (const context of contexts) await context.close();
  for (const line of wrong) console.error(line);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
