// A client of Ostler in TypeScript: the protocol comes from `ostler api descriptor`, so nothing is generated.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";

import * as grpc from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer } from "@grpc/proto-loader";
import protobuf from "protobufjs";

export interface Session {
  id: string;
  name: string;
  status: string;
}

/** One recorded fact. `seq` is its place in the log and the only order; `body` is JSON. */
export interface Event {
  seq: number;
  session_id?: string;
  kind: string;
  body: string;
}

/** The daemon's answer, with the stable reason that docs/errors.md lists. */
export class Refused extends Error {
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(`${message} [${reason}]`);
  }
}

type Fields = Record<string, unknown>;
type Stub = Record<string, (...args: unknown[]) => unknown>;

const NUMBERS_OF_64_BITS_AS = Number;

/** Where the daemon listens: its own file says so, else it is at its usual place. */
export function controlSocket(): string {
  const env = process.env;
  const home = env.OSTLER_HOME;
  const state = home ? join(home, "state") : join(env.XDG_STATE_HOME || join(homedir(), ".local/state"), "ostler");
  const run = home ? join(home, "run") : join(env.XDG_RUNTIME_DIR || `/run/user/${userInfo().uid}`, "ostler");
  const file = join(state, "daemon.json");
  if (!existsSync(file)) return join(run, "control.sock");
  return (JSON.parse(readFileSync(file, "utf8")) as { socket: string }).socket;
}

export class Ostler {
  private readonly services: grpc.GrpcObject;
  private readonly stubs = new Map<string, Stub>();

  constructor(
    program = "ostler",
    private readonly socket = controlSocket(),
  ) {
    const described = execFileSync(program, ["api", "descriptor"], { maxBuffer: 64 << 20 });
    const definition = loadFileDescriptorSetFromBuffer(described, {
      keepCase: true,
      longs: NUMBERS_OF_64_BITS_AS,
      enums: String,
      defaults: true,
    });
    const loaded = grpc.loadPackageDefinition(definition) as { ostler: { v1: grpc.GrpcObject } };
    this.services = loaded.ostler.v1;
  }

  private stub(service: string): Stub {
    let stub = this.stubs.get(service);
    if (!stub) {
      const Service = this.services[service] as grpc.ServiceClientConstructor;
      stub = new Service(`unix:${this.socket}`, grpc.credentials.createInsecure()) as unknown as Stub;
      this.stubs.set(service, stub);
    }
    return stub;
  }

  /** Asks, and returns the answer. */
  call<T>(service: string, method: string, fields: Fields): Promise<T> {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + 60_000;
      const done = (error: grpc.ServiceError | null, answer: T) => (error ? reject(refusal(error)) : resolve(answer));
      this.stub(service)[method]!(fields, { deadline }, done);
    });
  }

  /** Asks for a change. It carries an id of its own, so that asking again does it once. */
  async change<T>(service: string, method: string, fields: Fields): Promise<T> {
    const request = { request_id: requestId(), ...fields };
    for (const wait of [100, 500, 2_000]) {
      try {
        return await this.call<T>(service, method, request);
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        await pause(wait);
      }
    }
    return this.call<T>(service, method, request);
  }

  /** All events of a session, then those to come. A daemon that restarts in between is asked on from the cursor. */
  async *events(session: string, after = 0): AsyncGenerator<Event> {
    for (;;) {
      const watched = this.stub("EventService").WatchEvents!({
        filter: { session },
        after,
      }) as grpc.ClientReadableStream<{ events: Event[]; seen: number }>;
      try {
        for await (const answer of watched) {
          yield* answer.events as Event[];
          after = Math.max(after, answer.seen);
        }
        return;
      } catch (error) {
        if (!isConnectionLost(error)) throw refusal(error as grpc.ServiceError);
        await pause(200);
      } finally {
        watched.cancel();
      }
    }
  }

  close(): void {
    for (const stub of this.stubs.values()) (stub as unknown as grpc.Client).close();
  }
}

/** What the details of a status are made of; of google.rpc only this is needed. */
const { root: rpc } = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
`);

interface Details {
  details: { typeUrl: string; value: Uint8Array }[];
}

/** The refusal that a status carries; a status without one is about the connection. */
function refusal(error: grpc.ServiceError): Error {
  const bytes = error.metadata?.get("grpc-status-details-bin")[0];
  if (!(bytes instanceof Buffer)) return error;
  const { details } = rpc.lookupType("Status").decode(bytes) as unknown as Details;
  for (const { typeUrl, value } of details) {
    if (!typeUrl.endsWith("/google.rpc.ErrorInfo")) continue;
    const info = rpc.lookupType("ErrorInfo").decode(value) as unknown as { reason: string; domain: string };
    if (info.domain === "ostler") return new Refused(info.reason, error.details);
  }
  return error;
}

function isConnectionLost(error: unknown): boolean {
  return (error as grpc.ServiceError).code === grpc.status.UNAVAILABLE;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** `req_` and a ULID: 48 bits of time and 80 of chance, in Crockford's letters. */
function requestId(): string {
  let number = (BigInt(Date.now()) << 80n) | BigInt(`0x${randomBytes(10).toString("hex")}`);
  let text = "";
  for (let place = 0; place < 26; place++, number >>= 5n) {
    text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Number(number & 31n)]! + text;
  }
  return `req_${text}`;
}
