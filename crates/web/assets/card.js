// The script of one approval's page: sends the answer, and shows what became of it.
"use strict";

const QUIET_MS = 600; // A button that has just appeared below a finger does nothing.
const shown = Date.now();
const csrf = document.querySelector("meta[name=csrf]").content;
const told = document.querySelector("#told");
document.body.classList.add("scripted");

async function answer(button) {
  if (Date.now() - shown < QUIET_MS) return;
  const body = { allow: button.dataset.allow === "true" };
  const message = document.querySelector("#message").value;
  if (message) body.message = message;
  const buttons = document.querySelectorAll("button[data-allow]");
  for (const one of buttons) one.disabled = true;
  try {
    const said = await fetch(button.dataset.to, {
      method: "POST",
      headers: { "content-type": "application/json", "x-ostler-csrf": csrf },
      body: JSON.stringify(body),
    });
    if (said.ok) return location.reload();
    const error = (await said.json().catch(() => ({}))).error || { message: said.statusText };
    told.textContent = [error.message, error.why].filter(Boolean).join(" — ");
  } catch (error) {
    told.textContent = error.message;
  }
  for (const one of buttons) one.disabled = false;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-allow]");
  if (button) answer(button);
});
