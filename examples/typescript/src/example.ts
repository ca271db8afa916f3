// Lists sessions, starts one with the scripted agent, and follows it to its end.
//
//   npm start -- CAMPAIGN ["a prompt"]

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Ostler, Refused, type Session } from "./ostler.js";

async function main(): Promise<number> {
  const [named, prompt = JSON.stringify({ steps: [{ say: "hello from TypeScript" }] })] = process.argv.slice(2);
  if (!named) {
    console.error('npm start -- CAMPAIGN ["a prompt"]');
    return 2;
  }
  // The daemon does not know where this program runs: a path must be whole.
  const isDirectory = statSync(named, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const campaign = isDirectory ? resolve(named) : named;
  const ostler = new Ostler(process.env.OSTLER);
  try {
    const listed = await ostler.call<{ sessions: Session[] }>("SessionService", "ListSessions", { limit: 10 });
    console.log(`${listed.sessions.length} sessions`);
    const { session } = await ostler.change<{ session: Session }>("SessionService", "CreateSession", {
      campaign,
      provider: "script",
      initial_message: prompt,
      ends_with_turn: true,
    });
    console.log(`started ${session.id}`);
    for await (const event of ostler.events(session.id)) {
      const body = JSON.parse(event.body) as { text?: string; outcome?: string };
      console.log(event.seq, event.kind, body.text ?? "");
      if (event.kind === "SESSION_STOPPED" || event.kind === "SESSION_FAILED") {
        console.log(`ended ${body.outcome}`);
        return body.outcome === "done" ? 0 : 1;
      }
    }
    return 1;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(`error: ${error.message}`);
    return 1;
  } finally {
    ostler.close();
  }
}

process.exitCode = await main();
