// Brings the page up to date where it stands: nothing is reloaded, and nothing moves below who reads or marks something.
"use strict";
const EVERY_MS = 5000;
const link = document.getElementById("link");
let lost = null;

async function renew() {
  if (document.hidden || String(getSelection())) return;
  try {
    const answer = await fetch("/", { cache: "no-store" });
    // Whose key was taken back sees that it was.
    if (!answer.ok) return location.reload();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    document.querySelector("main").replaceWith(fresh);
    lost = null;
    link.textContent = "";
  } catch {
    lost ||= new Date();
    link.textContent = `The hub is away since ${lost.toTimeString().slice(0, 5)}; this is how it was then.`;
  }
}
setInterval(renew, EVERY_MS);
document.addEventListener("visibilitychange", renew);
