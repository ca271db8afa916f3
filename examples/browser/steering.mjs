// Steers agents while they are busy: what changes all the time must stay usable.
// Arguments: a link, a busy session, one that asks for leave, one that asks a question, a directory for pictures.
import { createServer } from "node:http";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { accessible, browser, done, enter, live, open, wrong } from "./browser.mjs";

const [link, busy, asks, question, pictures] = process.argv.slice(2);
const base = new URL(link).origin;
mkdirSync(pictures, { recursive: true });
const context = await browser();

// The link, clicked on a page of another site: localhost and 127.0.0.1 are two.
const elsewhere = createServer((_, answer) => { answer.setHeader("content-type", "text/html"); answer.end(`<a href="${link}">the dashboard</a>`); });
await new Promise((listening) => elsewhere.listen(0, "127.0.0.1", listening));
const page = await open(context, `http://localhost:${elsewhere.address().port}/`);
await page.click("a");
await page.waitForURL(base + "/");
await live(page);
elsewhere.close();

// On a page that changes several times a second, a button works at the first click.
const dialog = page.locator("#ask");
await page.goto(`${base}/sessions/${busy}`);
await live(page);
await page.waitForFunction(() => document.querySelectorAll("#activity .item").length > 20);
await page.waitForTimeout(700);
const press = (word) => page.locator(".actions button", { hasText: word }).first().click();
const reads = (word) => page.waitForFunction((word) => [...document.querySelectorAll(".actions button")].some((button) => button.textContent.includes(word) && !button.disabled), word);
await page.evaluate(() => scrollTo(0, 0));
// Nobody follows to the end from here: the page stands still although the list below grows.
await page.waitForTimeout(700);
await press("Pause");
await reads("Resume");
// It is another button by now, and not a dead one.
await page.waitForTimeout(700);
await press("Resume");
await reads("Pause");

// Calls that fail open by themselves, also when they were folded while they ran; what somebody folds stays so.
await page.waitForFunction(() => [...document.querySelectorAll("#activity .failed details")].some((fold) => fold.open));
const id = await page.locator("#activity .failed details[open]").last().getAttribute("id");
await page.locator(`#${id} summary`).click();
const last = await page.locator("#activity .item").last().getAttribute("id");
await page.waitForFunction((last) => [...document.querySelectorAll("#activity .item")].at(-1).id !== last, last);
if (await page.locator(`#${id}`).evaluate((fold) => fold.open)) wrong.push("what was folded by hand opened again");

// While somebody points at a row nothing takes its place: who is new waits to be asked for.
const post = (path, body) => page.evaluate(([path, body]) => fetch(path, { method: "POST", headers: { "content-type": "application/json", "x-ostler-csrf": document.querySelector("meta[name=csrf]").content }, body: JSON.stringify(body) }).then((answer) => answer.json()), [path, body]);
await page.goto(`${base}/sessions`);
await live(page);
const row = page.locator(`#row-${busy}`);
const place = async () => (await row.boundingBox()).y;
await row.hover();
const stood = await place();
const fresh = await post("/v1/sessions", { campaign: "shop", provider: "script", prompt: '{"steps":[{"sleep_ms":600000}]}' });
await page.waitForSelector(".moved");
await page.check(`input[data-pick][value="${busy}"]`);
await page.waitForSelector("#picked b");
await page.waitForTimeout(700);
await page.screenshot({ path: join(pictures, "waiting.png") });
if ((await page.textContent(".moved")) !== "1 new, show") wrong.push(`of one new session is said: ${await page.textContent(".moved")}`);
if ((await page.locator(`#row-${fresh.id}`).count()) > 0) wrong.push("a new row came while another was pointed at");
if ((await place()) !== stood) wrong.push(`what somebody points at went from ${stood} to ${await place()}`);
await accessible(page, "a list with what waits to be shown");
await page.click(".moved");
await page.waitForSelector(`#row-${fresh.id}`);
await post(`/v1/sessions/${fresh.id}/stop`, {});

// Many at once, with their number.
await page.goto(`${base}/sessions`);
await live(page);
await page.check(`input[data-pick][value="${busy}"]`);
await page.screenshot({ path: join(pictures, "picked.png") });
await page.locator("#picked button", { hasText: "Pause" }).click();
if (!(await dialog.textContent()).includes("Pause 1 session?")) wrong.push("nobody is told how many are paused");
await page.screenshot({ path: join(pictures, "sure.png") });
await accessible(page, "the question before many are paused");
await dialog.locator("[data-go]").click();
await page.waitForSelector(`#row-${busy} .sign.cool`);

// A form shows the command line that it stands for.
await page.click("#new summary");
await page.fill("#new-form [name=prompt]", "it's late");
const line = await page.textContent("#new-form .cli-line");
if (!line.includes("ostler run -d -C shop") || !line.endsWith("'it'\\''s late'")) wrong.push(`the command line is ${line}`);
// It does whatever happens meanwhile, since what was typed stays too.
const other = page.locator(`#row-${busy} .sign.cool`);
await page.evaluate((busy) => fetch(`/v1/sessions/${busy}/resume`, { method: "POST", headers: { "content-type": "application/json", "x-ostler-csrf": document.querySelector("meta[name=csrf]").content }, body: "{}" }), busy);
await other.waitFor({ state: "detached" });
if ((await page.textContent("#new-form .cli-line")) !== line) wrong.push(`the command line became ${await page.textContent("#new-form .cli-line")}`);

// The rule is shown before it is stored.
await page.goto(base + "/");
await live(page);
await page.waitForTimeout(700);
const card = page.locator("article", { hasText: "make all" });
await card.focus();
await page.keyboard.press("A");
await dialog.waitFor({ state: "visible" });
const shown = await dialog.textContent();
if (!shown.includes("allow run make all") || !shown.includes("ostler allow --always")) wrong.push(`before "always" is stored it says: ${shown}`);
await page.screenshot({ path: join(pictures, "always.png") });
await dialog.locator("[data-close]").click();
// Denied, with words that the agent reads.
await page.waitForTimeout(700);
await card.focus();
await page.keyboard.press("d");
const lineBelow = () => dialog.locator(".cli-line").textContent();
if (!/^\$ ostler deny \w+$/.test(await lineBelow())) wrong.push(`before anything is said, deny's line is ${await lineBelow()}`);
await dialog.locator("textarea").fill("it's late");
if (!/^\$ ostler deny \w+ -m 'it'\\''s late'$/.test(await lineBelow())) wrong.push(`deny's line has no words: ${await lineBelow()}`);
await dialog.locator("textarea").fill("not today");
await dialog.locator("[data-go]").click();
await page.waitForSelector("article.settled");
// One fewer needs somebody: also where the pages are listed.
await page.waitForFunction(() => document.querySelector('#counts a[href="/"] b').textContent === "1");
const rail = () => page.locator(".rail .needs").textContent();
if ((await rail()) !== "Needs you1") wrong.push(`one needs somebody, and the list of pages says ${await rail()}`);

// A question is answered by one of its choices.
await page.waitForTimeout(700);
await page.locator(`article[data-href="/sessions/${question}"] button`, { hasText: "drop it" }).click();
await page.waitForFunction(() => document.querySelectorAll("article.settled").length === 2);
await page.waitForFunction(() => document.querySelector('#counts a[href="/"] b').textContent === "0");
if ((await rail()) !== "Needs you") wrong.push(`nobody needs anybody, and the list of pages says ${await rail()}`);

// What a form starts does what the line in it would: it lives on when its turn has ended.
await page.goto(`${base}/sessions`);
await live(page);
await page.click("#new summary");
await page.fill("#new-form [name=provider]", "script");
await page.fill("#new-form [name=prompt]", '{"steps":[{"say":"first"}]}');
const asked = page.waitForRequest((request) => request.method() === "POST" && request.url() === `${base}/v1/sessions`);
await page.click("#new-form button[type=submit]");
if ((await asked).postDataJSON().keep !== true) wrong.push("what a form starts ends with its turn");
await page.waitForURL(`${base}/sessions/*`);
await page.waitForSelector("#activity .item.say");
await page.waitForTimeout(1500);
const begun = await page.evaluate(() => fetch("/v1" + location.pathname).then((answer) => answer.json()));
if (begun.outcome !== null) wrong.push(`what a form started ended: ${begun.outcome}`);

// What can be done, by a key.
await page.goto(`${base}/sessions/${asks}`);
await live(page);
await page.keyboard.press(".");
await page.waitForSelector("#actions[open] .copy");
await accessible(page, "what can be done");
await page.keyboard.press("Escape");

// Halting by a key wants to be meant too, and is taken back where it is shown.
await page.focus(".halt");
await page.keyboard.press("Enter");
await page.waitForTimeout(300);
if (await page.locator("#counts strong").count()) wrong.push("one key has halted everything");
await page.keyboard.down("Enter");
await page.waitForSelector("#counts strong");
await page.keyboard.up("Enter");
await page.screenshot({ path: join(pictures, "halted.png") });
await page.waitForTimeout(700);
await page.click("#counts button");
await page.waitForFunction(() => !document.querySelector("#counts strong"));

await done(context);
