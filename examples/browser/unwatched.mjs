// A browser whose memory is a person's: nothing records what it loads. Whoever drives it through playwright has each
// answer kept inside of the page's own process, for somebody who may want to see it later.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = process.env.CHROMIUM || "/usr/bin/chromium";
const WORDS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--remote-debugging-pipe"];
const MOST_MB = 120; // That a page's own process holds.
const WAIT_MS = 60_000;
const ANSWER_MS = 1_000;
const pause = (ms) => new Promise((over) => setTimeout(over, ms));

// With what it remembers in a directory, such as who was let in.
async function unwatched(profile) {
  const child = spawn(PROGRAM, [...WORDS, `--user-data-dir=${profile}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const ended = new Promise((over) => child.once("exit", over));
  const asked = new Map();
  let [half, last] = ["", 0];
  child.stdio[4].setEncoding("utf8").on("data", (text) => {
    const whole = (half + text).split("\0");
    half = whole.pop();
    for (const { id, result, error } of whole.map((line) => JSON.parse(line))) {
      const { answer, refuse } = asked.get(id) || {};
      asked.delete(id);
      if (error) refuse?.(new Error(error.message)); else answer?.(result);
    }
  });
  const ask = (method, params = {}, sessionId) => new Promise((answer, refuse) => {
    asked.set(++last, { answer, refuse });
    child.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId }) + "\0");
  });

  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  const run = async (expression) => {
    const { result, exceptionDetails } = await ask("Runtime.evaluate", { expression, returnByValue: true }, sessionId);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  };
  // While one page gives way to another there is nobody to ask, and whoever asks may never hear anything.
  const soon = (expression) => Promise.race([run(expression).catch(() => false), pause(ANSWER_MS)]);
  const until = async (what, expression) => {
    for (const end = Date.now() + WAIT_MS; Date.now() < end; await pause(20)) {
      if (await soon(expression)) return;
    }
    throw new Error(`waited for ${what} at ${await soon("location.href")}`);
  };
  const SHOWN = `document.readyState === "complete" && !!document.querySelector(".link.live, .link.fixed")`;

  return {
    run,
    go: async (address) => { await ask("Page.navigate", { url: address }, sessionId); await until(address, SHOWN); },
    // Follows a link of the page as a click does; false where there is none.
    click: async (selector) => {
      // Later: a page that is left while it answers does not.
      const to = await run(`{ const link = document.querySelector(${JSON.stringify(selector)}); setTimeout(() => link?.click()); link?.href }`);
      if (!to) return false;
      await until(to, `location.href === ${JSON.stringify(to)} && ${SHOWN}`);
      return true;
    },
    // Pages that were left are thrown away when the browser thinks fit: later where there is much memory.
    collect: () => ask("HeapProfiler.collectGarbage", {}, sessionId),
    // What the pages' own processes have for themselves, the largest of them; libraries are everybody's.
    megabytes: async () => {
      const { processInfo } = await ask("SystemInfo.getProcessInfo");
      const own = (id) => { try { return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1] || 0) / 1024; } catch { return 0; } };
      return Math.max(...processInfo.filter(({ type }) => type === "renderer").map(({ id }) => own(id)));
    },
    close: async () => {
      await ask("Browser.close").catch(() => {});
      await ended;
    },
  };
}

// Lets somebody in by a link, who then does one thing after another, each in a browser that was just started: how much
// it takes for what, and whether that is too much.
export async function measured(link) {
  const [profile, wrong] = [mkdtempSync(join(tmpdir(), "ostler-browser-")), []];
  const first = await unwatched(profile);
  await first.go(link);
  await first.close();
  async function within(name, something) {
    const browser = await unwatched(profile);
    let [held, most] = [0, 0];
    const look = async () => {
      most = Math.max(most, await browser.megabytes());
      await browser.collect();
      held = Math.max(held, await browser.megabytes());
    };
    const said = await something(browser, look);
    await look();
    await browser.close();
    if (held > MOST_MB) wrong.push(`${name}: ${Math.round(held)} MB are held, more than ${MOST_MB}`);
    console.log(`${name}: ${Math.round(held)} MB held at most, ${Math.round(most)} MB with what was left, ${said}`);
  }
  function done() {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    for (const line of wrong) console.error(line);
    process.exitCode = wrong.length > 0 ? 1 : 0;
  }
  return { wrong, within, done };
}
