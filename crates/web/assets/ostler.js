// The dashboard's script: follows the page, sends what is clicked, listens to keys. Reading works without it.
"use strict";

const $ = (selector, within) => (within || document).querySelector(selector);
const $$ = (selector, within) => [...(within || document).querySelectorAll(selector)];
const csrf = $("meta[name=csrf]").content;
const QUIET_MS = 600; // A button that has just appeared below a finger does nothing.
document.body.classList.add("scripted");

// --- telling -------------------------------------------------------------------------------------------------
let toastTimer;
function toast(text, bad) {
  const box = $("#toast");
  box.textContent = text;
  box.className = "toast shown" + (bad ? " bad" : "");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.className = "toast"; }, bad ? 9000 : 3000);
}

// --- sending -------------------------------------------------------------------------------------------------
const post = (path, body) => exchange(path, {
  method: "POST",
  headers: { "content-type": "application/json", "x-ostler-csrf": csrf },
  body: JSON.stringify(body),
});
const look = (path) => exchange(path, {});

async function exchange(path, request) {
  const answer = await fetch(path, request);
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = said.error || { message: answer.statusText };
    const hint = (error.hint || []).map((h) => h.command).join(" · ");
    throw new Error([error.message, error.why, hint].filter(Boolean).join(" — "));
  }
  return said;
}

// Asks for what an action wants before it is done: a look at what it would do, a word, or only that it is meant.
// Answers with what was written, or null when nobody wants it any more.
function wanted({ title, detail, field, value, cli, before, isList, word }) {
  const dialog = $("#ask");
  $("h2", dialog).textContent = title;
  const [about, box, line, go] = [$("pre", dialog), $("textarea", dialog), $(".cli-line", dialog), $("[data-go]", dialog)];
  about.textContent = detail || ""; about.hidden = !detail;
  box.value = value || ""; box.hidden = !field; box.setAttribute("aria-label", field || ""); box.placeholder = field || "";
  const told = () => { line.textContent = cli ? "$ " + lineOf(cli, before, field ? box.value : "", isList) : ""; };
  told(); line.hidden = !cli;
  go.textContent = word || "Go on";
  dialog.showModal();
  (field ? box : go).focus();
  return new Promise((answer) => {
    const agreed = () => { answer(field ? box.value : ""); dialog.close(); };
    go.addEventListener("click", agreed);
    box.addEventListener("input", told);
    dialog.addEventListener("close", () => { go.removeEventListener("click", agreed); box.removeEventListener("input", told); answer(null); }, { once: true });
  });
}

// The command line of an action, with what was written for it.
function lineOf(cli, before, said, isList) {
  if (!said.trim() || !before) return cli;
  return [before, ...(isList ? linesOf(said) : [said]).map(quoted)].join(" ");
}
const linesOf = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

const NAMED = 8; // More names than these are counted.
const few = (names) => names.length > NAMED + 1 ? `${names.slice(0, NAMED).join(", ")} and ${names.length - NAMED} more` : names.join(", ");

// What an action would do, as the answer to a preview says it.
function foreseen(answer) {
  if (answer.rules) return answer.rules.length ? "Stored from now on:\n" + answer.rules.join("\n") : "No new rule is needed.";
  if (answer.runs) return [answer.goes_on.length && `Goes on with ${few(answer.goes_on)}.`, `Runs ${few(answer.runs) || "nothing"}: ${answer.price.words}.`].filter(Boolean).join("\n");
  if (answer.lines) return answer.lines.join("\n") || "Nothing would be different.";
  if (answer.files) return answer.files.map((file) => `${file.status} ${file.path}`).join("\n") || "No file would change.";
  return "";
}

const wordOf = (button) => (button.firstElementChild || button).textContent.trim();
const busy = new WeakSet(); // Their answer is not there yet.

async function act(button) {
  if (busy.has(button) || Date.now() - (appeared.get(button)?.at || 0) < QUIET_MS) return;
  const set = button.dataset;
  const body = JSON.parse(set.body || "{}");
  const isList = set.askAs === "which" || set.askAs === "settings";
  busy.add(button);
  button.disabled = true;
  const over = () => { busy.delete(button); button.disabled = false; };
  try {
    let detail = "";
    if (set.preview) {
      const answer = set.previewBody ? await post(set.preview, JSON.parse(set.previewBody)) : await look(set.preview);
      detail = foreseen(answer);
    }
    if (set.preview || set.confirm || set.ask) {
      const said = await wanted({ title: set.confirm || set.ask || wordOf(button), detail, field: set.ask, value: set.value, cli: set.cli, before: set.askLine, isList, word: wordOf(button).replace("…", "") });
      if (said === null) return over();
      if (said) body[set.askAs] = isList ? linesOf(said) : said;
    }
    const answer = await post(set.post, body);
    // With what was said it can be longer than what a toast has room for.
    toast("done: " + (set.ask ? wordOf(button).replace("…", "") : set.cli || wordOf(button)));
    if (set.then) location.href = set.then.replace("{id}", encodeURIComponent(answer.id));
    // What it was good for is over; the page says so in a moment.
    setTimeout(over, QUIET_MS);
  } catch (error) {
    toast(error.message, true);
    over();
  }
}

async function send(form) {
  const body = JSON.parse(form.dataset.body || "{}");
  for (const [name, value] of new FormData(form)) {
    const [outer, inner] = name.split(/\.(.*)/);
    if (value === "") continue;
    if (inner) (body[outer] ||= {})[inner] = value;
    else body[name] = form.dataset.lists?.split(" ").includes(name) ? value.split("\n").filter(Boolean) : value;
  }
  const button = $("button[type=submit]", form);
  if (button) button.disabled = true;
  try {
    const said = await post(form.dataset.post, body);
    form.reset();
    if (form.dataset.cli) tell(form);
    if (form.dataset.then) location.href = form.dataset.then.replace("{id}", encodeURIComponent(said.id));
    else toast("sent");
  } catch (error) {
    toast(error.message, true);
  } finally {
    if (button) button.disabled = false;
  }
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.get) location.href = form.dataset.get + "?" + new URLSearchParams(new FormData(form));
  else if (form.dataset.set) change(form);
  else if (form.dataset.post) send(form);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button && button.dataset.copy) {
    navigator.clipboard.writeText(button.dataset.copy).then(() => toast("copied: " + button.dataset.copy));
  } else if (button && "close" in button.dataset) {
    button.closest("dialog").close();
  } else if (button && button.dataset.bulk) {
    bulk(button);
  } else if (button && button.dataset.post && !button.dataset.hold) {
    act(button);
  } else if (event.target.closest("summary")) {
    chosen.add(event.target.closest("details"));
  } else if (event.target.closest("[data-at]")) {
    comment(event.target.closest("[data-at]"));
  } else if (!event.target.closest("a, button, input, textarea, select, summary, label")) {
    const row = event.target.closest("tr[data-href]");
    if (row && !String(getSelection())) location.href = row.dataset.href;
  }
});

// Halting wants to be meant: the button is held, by a finger or by a key.
for (const button of $$("[data-hold]")) {
  let timer;
  const begin = () => {
    if (button.classList.contains("holding")) return;
    button.classList.add("holding");
    timer = setTimeout(() => { button.classList.remove("holding"); act(button); }, Number(button.dataset.hold));
  };
  const end = () => { button.classList.remove("holding"); clearTimeout(timer); };
  button.addEventListener("pointerdown", begin);
  button.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") begin(); });
  for (const name of ["pointerup", "pointerleave", "pointercancel", "keyup", "blur"]) button.addEventListener(name, end);
}

// --- many at once --------------------------------------------------------------------------------------------
const picked = () => $$("input[data-pick]:checked");
const quoted = (word) => (/^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");

function count() {
  const bar = $("#picked");
  if (!bar) return;
  bar.hidden = picked().length === 0;
  $("b", bar).textContent = picked().length;
}

async function bulk(button) {
  const rows = picked().map((box) => ({ id: box.value, short: box.dataset.pick, name: box.dataset.name }));
  const verb = button.dataset.bulk;
  const title = `${wordOf(button)} ${rows.length} ${rows.length === 1 ? "session" : "sessions"}?`;
  const said = await wanted({ title, detail: rows.map((row) => `${row.short} ${row.name}`).join("\n"), cli: `ostler ${verb} ${rows.map((row) => row.short).join(" ")}`, word: wordOf(button) });
  if (said === null) return;
  const refused = [];
  for (const row of rows) await post(`/v1/sessions/${row.id}/${verb}`, {}).catch((error) => refused.push(`${row.short}: ${error.message}`));
  for (const box of picked()) box.checked = false;
  count();
  toast(`${verb}: ${rows.length - refused.length} of ${rows.length}` + (refused.length ? " — " + refused.join(" · ") : ""), refused.length > 0);
}

document.addEventListener("change", (event) => {
  if (event.target.matches("input[data-pick]")) count();
  if (event.target.matches("select[data-go-to]")) location.href = event.target.value;
});

// A policy is changed after a look at what becomes different.
async function change(form) {
  const settings = linesOf(new FormData(form).get("settings"));
  try {
    const detail = foreseen(await post(form.dataset.set, { settings, dry_run: true }));
    const cli = `${form.dataset.cli} ${settings.map(quoted).join(" ")}`;
    if ((await wanted({ title: "Change the policy?", detail, cli, word: "Change" })) === null) return;
    await post(form.dataset.set, { settings });
    form.reset();
    toast("done: " + cli);
  } catch (error) { toast(error.message, true); }
}

// A line of a difference, and what somebody says about it, become a message.
async function comment(line) {
  const patch = line.closest(".patch");
  const said = await wanted({ title: `About ${line.dataset.at}`, detail: line.textContent, field: "what the agent is told", cli: `ostler send ${patch.dataset.short} "…"`, word: "Send" });
  if (!said) return;
  post(patch.dataset.to, { text: `${line.dataset.at}:\n> ${line.textContent}\n\n${said}` }).then(() => toast("sent"), (error) => toast(error.message, true));
}

// The command line that a form stands for, as it is filled in.
function tell(form) {
  const words = [form.dataset.cli];
  for (const field of $$("[data-flag]", form)) if (field.value) words.push(field.dataset.flag, quoted(field.value));
  for (const field of $$("[data-parameter]", form)) if (field.value) words.push("-p", quoted(`${field.dataset.parameter}=${field.value}`));
  for (const field of $$("[data-word]", form)) words.push(field.value ? quoted(field.value) : '"…"');
  const line = $(".cli-line", form);
  if (line) line.textContent = "$ " + words.filter(Boolean).join(" ");
}
document.addEventListener("input", (event) => { const form = event.target.closest("form[data-cli]"); if (form) tell(form); });

// --- changing the page in place ------------------------------------------------------------------------------
const chosen = new WeakSet(); // Folds that somebody has opened or closed: theirs from then on.
const isKept = (element) => element === document.activeElement && /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);

// What is fresh is used up by it: nothing is there twice.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (isKept(old)) return;
  if (old.nodeType !== Node.ELEMENT_NODE || old.tagName !== fresh.tagName || old.id !== fresh.id) return old.replaceWith(fresh);
  // Whoever waits for an answer stays as it is, unless it means something else by now.
  if (busy.has(old) && old.dataset.post !== fresh.dataset.post) busy.delete(old);
  const stays = (name) => (name === "open" && (old.tagName !== "DETAILS" || chosen.has(old))) || (name === "disabled" && busy.has(old)) || (name === "hidden" && old.id === "picked");
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !stays(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && !stays(name)) old.setAttribute(name, value);
  }
  if (/^(TEXTAREA|INPUT|SELECT)$/.test(old.tagName)) return;
  const byId = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const known = wanted.id && byId.get(wanted.id);
    if (known) {
      if (known !== place) old.insertBefore(known, place); else place = place.nextSibling;
      morph(known, wanted);
    } else if (place && !place.id && !wanted.id && place.nodeType === wanted.nodeType && place.nodeName === wanted.nodeName) {
      const next = place.nextSibling;
      if (place.nodeType === Node.TEXT_NODE) { if (place.data !== wanted.data) place.data = wanted.data; } else morph(place, wanted);
      place = next;
    } else {
      old.insertBefore(wanted, place);
    }
  }
  while (place) { const next = place.nextSibling; if (!(place.contains && place.contains(document.activeElement) && isKept(document.activeElement))) place.remove(); place = next; }
}

const fragment = (html) => { const made = document.createElement("template"); made.innerHTML = html; return made.content; };
const rowsOf = (root) => $$("tr.row[id], article[id]", root).map((row) => row.id);
let waiting = null;

function isTouched() {
  const focused = document.activeElement;
  return $$("tr.row:hover, article:hover, .moved:hover", $("#main")).length > 0 || !!focused?.closest("#main :is(tr.row, article, .moved)");
}

// How many of these stand elsewhere among the others than before: all but the most that have kept their order.
function displaced(kept, has) {
  const ends = []; // Of rows in order, so many of them: where the last one stands at the earliest.
  for (const place of kept.map((id) => has.indexOf(id))) {
    const longer = ends.findIndex((end) => end > place);
    ends[longer < 0 ? ends.length : longer] = place;
  }
  return kept.length - ends.length;
}

// What would shift a row of the page, in words; nothing where all stay where they are.
function shifts(had, has) {
  // A card without its question is of no use to anybody, however long somebody points at it.
  const gone = had.filter((id) => !has.includes(id) && id.startsWith("row-")).length;
  const moved = displaced(had.filter((id) => has.includes(id)), has) + gone;
  const added = had.length > 0 ? has.filter((id) => !had.includes(id)).length : 0;
  return [moved && `${moved} moved`, added && `${added} new`].filter(Boolean).join(", ");
}

function show(html, isWanted) {
  const main = $("#main");
  const fresh = document.createElement("main");
  fresh.append(fragment(html));
  const had = rowsOf(main), has = rowsOf(fresh);
  const shifted = shifts(had, has);
  if (shifted && !isWanted && !turning && isTouched()) {
    waiting = html;
    // Rows change where they stand; their order waits until nobody points at one.
    for (const id of had) {
      const [row, now] = [document.getElementById(id), fresh.querySelector("#" + CSS.escape(id))];
      if (now) morph(row, now); else if (row.matches("article")) row.remove();
    }
    return bar(shifted);
  }
  waiting = null;
  $(".moved")?.remove();
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const told = new Set($$("#activity .item").map((item) => item.id));
  const places = standing();
  fresh.id = "main"; fresh.tabIndex = -1;
  morph(main, fresh);
  for (const form of $$("form[data-cli]", main)) tell(form);
  // What is older than the page has room for is gone by now: what is new is not told by numbers.
  const added = $$("#activity .item").filter((item) => !told.has(item.id)).length;
  if ($("#activity") && atEnd) scrollTo(0, document.documentElement.scrollHeight); else if (added > 0 && $("#activity")) follow(added);
  stamp(places);
  count();
}

function bar(shifted) {
  let button = $(".moved");
  if (!button) {
    button = document.createElement("button");
    button.className = "moved"; button.type = "button";
    button.addEventListener("click", () => { button.remove(); if (waiting) show(waiting, true); });
    $("#main").prepend(button);
  }
  button.textContent = `${shifted}, show`;
}

let unseen = 0;
function follow(added) {
  unseen += added;
  let button = $(".follow");
  if (!button) {
    button = document.createElement("button");
    button.className = "follow"; button.type = "button";
    button.addEventListener("click", () => { unseen = 0; button.remove(); scrollTo(0, document.documentElement.scrollHeight); });
    document.body.append(button);
  }
  button.textContent = `↓ ${unseen} new`;
}

// When each button came to stand where it stands, meaning what it means: only then is it quiet for a moment.
const appeared = new WeakMap();
const MOVED_PX = 4;

function standing() {
  return new Map($$("button[data-post]").map((button) => [button, button.getBoundingClientRect()]));
}

function stamp(before) {
  const now = Date.now();
  for (const button of $$("button[data-post]")) {
    const means = button.dataset.post + (button.dataset.body || "");
    const [was, is] = [before?.get(button), button.getBoundingClientRect()];
    const moved = was && Math.hypot(was.left - is.left, was.top - is.top) > MOVED_PX;
    if (appeared.get(button)?.means !== means || moved) appeared.set(button, { means, at: now });
  }
}

// --- following -----------------------------------------------------------------------------------------------
const link = $("#link");
function say(state, text) { link.className = "link " + state; $("span", link).textContent = text; }

// A browser keeps pages that were left, and what they hold open with them: it has six connections, and the seventh page
// would wait for ever. Whoever comes back sees what is new since.
let source = null;
addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (event) => { if (event.persisted && source) live(); });

// The next page of a list or a story takes the place of this one, by the stream. As a document of its own each would
// stay in memory until the browser finds time to forget it: megabytes of each.
let turning = null; // Where to, until it is there.
function turn(href) {
  turning = href;
  say("behind", "turning the page");
  source?.close();
  live();
}
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".pages a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  turn(link.href);
});
// Not for a place within the page.
let shownAt = location.pathname + location.search;
addEventListener("popstate", () => { if (shownAt !== location.pathname + location.search) turn(location.href); });

function turned() {
  turning = null;
  unseen = 0;
  $(".follow")?.remove();
  $("#main").focus({ preventScroll: true });
  begin();
}

// Where somebody begins to read: at the end of a story, else at the top.
function begin() {
  shownAt = location.pathname + location.search;
  const at = location.hash && document.getElementById(location.hash.slice(1));
  if (at) {
    const fold = at.closest("details.run");
    if (fold) { chosen.add(fold); fold.open = true; }
    at.scrollIntoView();
  } else {
    const isStory = $("#activity") && !/\b(before|after)=/.test(location.search);
    scrollTo(0, isStory ? document.documentElement.scrollHeight : 0);
  }
}

function live() {
  const page = location.pathname + location.search;
  const stream = source = new EventSource("/live?" + new URLSearchParams({ page, after: document.body.dataset.after }));
  let lostAt = null;
  const well = () => { lostAt = null; if (!turning) say("live", "live"); };
  stream.addEventListener("open", well);
  stream.addEventListener("error", () => {
    // As a document of its own it says what is wrong with it.
    if (turning) return location.assign(turning);
    lostAt ||= new Date();
    say("offline", `offline since ${lostAt.toTimeString().slice(0, 5)}; nothing is lost`);
    // A browser that was turned out sees that it was; a daemon that is away is waited for.
    if (stream.readyState === EventSource.CLOSED) fetch("/v1/status").then((answer) => (answer.status === 401 ? location.reload() : setTimeout(live, 3000)), () => setTimeout(live, 3000));
  });
  stream.addEventListener("behind", (event) => say("behind", `catching up ${event.data}`));
  stream.addEventListener("level", well);
  stream.addEventListener("counts", (event) => {
    const [places, fresh] = [standing(), $("#counts").cloneNode(false)];
    fresh.append(fragment(event.data));
    morph($("#counts"), fresh);
    rail();
    stamp(places);
  });
  stream.addEventListener("title", (event) => { document.title = event.data; });
  stream.addEventListener("main", (event) => {
    const last = () => $$("#activity .item.say").at(-1)?.id;
    const [said, half] = [last(), typing];
    show(event.data);
    typing = "";
    document.body.dataset.after = event.lastEventId;
    if (turning) { turned(); well(); }
    // Nothing has completed it yet.
    else if (half && last() === said) type(half);
    still();
  });
  stream.addEventListener("delta", (event) => type(JSON.parse(event.data)));
}

// Who needs you is counted beside the pages too.
function rail() {
  const [needs, item] = [$('#counts a[href="/"] b').textContent, $(".rail .needs")];
  $("b", item)?.remove();
  if (needs === "0") return;
  item.append(document.createElement("b"));
  item.lastChild.textContent = needs;
}

// What is not there does not change.
function still() {
  if (!$("[data-fixed]")) return false;
  source?.close();
  say("fixed", "nothing to follow");
  return true;
}

// Text that an agent is just writing; the event that completes it takes its place.
const TYPED = 16000; // The end of it is what somebody looks at.
let typing = "";
function type(text) {
  const list = $("#activity");
  if (!list) return;
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  typing = (typing + text).slice(-TYPED);
  let item = $("#typing");
  if (!item) { item = document.createElement("li"); item.id = "typing"; item.className = "say typing"; list.append(item); }
  item.textContent = typing;
  if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
}

// --- keys ----------------------------------------------------------------------------------------------------
let went = 0;
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape") { if (isTyping) event.target.blur(); else if (!$("dialog[open]")) history.back(); return; }
  if (isTyping || $("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const stops = $$("#main [data-card], #main tr.row[data-href], #main .hits a:not(.ask), #main .item summary, #main .patch [data-at]");
  const here = document.activeElement;
  const at = stops.indexOf(here);
  const gone = Date.now() - went < 1200;
  const places = { n: "/", s: "/sessions", m: "/missions", c: "/cost" };
  if (gone && places[event.key]) location.href = places[event.key];
  else if (event.key === "g") { went = Date.now(); return; }
  else if (event.key === "?") $("#help").showModal();
  else if (event.key === "/") location.href = "/search";
  else if (event.key === "j" || event.key === "k") stops[Math.max(0, Math.min(stops.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  else if (event.key === "Enter" && here?.dataset?.at) comment(here);
  else if (event.key === "Enter" && here?.dataset?.href) location.href = here.dataset.href;
  else if (event.key === "r") $("textarea", here?.matches?.("[data-card]") ? here : $("#main"))?.focus();
  else if (event.key === "e") { const fold = here?.closest?.("details") || $("details", here); if (fold) { chosen.add(fold); fold.open = !fold.open; } }
  else if (event.key === ".") actions(here?.matches?.("[data-card]") ? here : $("#main"));
  else if (["a", "A", "d"].includes(event.key) && here?.matches?.("[data-card]")) $(`[data-key=${event.key}]`, here)?.click();
  else return;
  event.preventDefault();
});

// What can be done here, each with its command line to copy.
function actions(scope) {
  const list = $("#actions ul");
  list.replaceChildren(...$$("button[data-cli]", scope).map((button) => {
    const [row, go, copy] = ["li", "button", "button"].map((name) => document.createElement(name));
    go.type = copy.type = "button"; copy.className = "copy";
    go.textContent = wordOf(button); copy.textContent = copy.dataset.copy = button.dataset.cli;
    go.addEventListener("click", () => { $("#actions").close(); button.click(); });
    row.append(go, copy);
    return row;
  }));
  if (list.children.length) $("#actions").showModal(); else toast("nothing can be done here");
}

for (const form of $$("form[data-cli]")) tell(form);
// Of days that have no room, the last are looked at.
for (const days of $$(".drawing[aria-label=days]")) days.scrollLeft = days.scrollWidth;
// On a narrow screen the list of pages is wider than there is room for, and the one that is here stands in it.
if ($(".rail").scrollWidth > $(".rail").clientWidth) $(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
stamp();
if (location.hash || $("#activity")) begin();
if (!still()) live();
