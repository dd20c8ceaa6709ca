// Tests ordinary turns: nothing that a user or a tool does on purpose is called a miss.

import { describe, expect, test } from "bun:test";
import { DIALECT_NAMES, SECOND, Session } from "./session.ts";
import { type Conversation, goOn, openConversation, textOf } from "../../harness/conversation.ts";
import { openDice } from "../../harness/random.ts";

interface Agent {
  readonly name: string | null;
  talk: Conversation;
  at?: number;
}

/** The steps of an agent's user. Every step is one request. */
class Work {
  readonly session: Session;
  readonly #random: (below: number) => number;
  readonly #id: string;
  #agents: Agent[] = [];
  #count = 0;

  constructor(session: Session, id: string, random: (below: number) => number) {
    this.session = session;
    this.#id = id;
    this.#random = random;
    this.#agents.push({ name: null, talk: this.#begin("main") });
  }

  #text(most: number): string {
    this.#count += 1;
    return textOf(40 + this.#random(most), `${this.#id} ${this.#count}`);
  }

  #begin(kind: string): Conversation {
    return openConversation(`${this.#id} ${kind}`, this.#text(3000), "gemini-2.5-pro");
  }

  step(): void {
    const agent = this.#agents[this.#random(this.#agents.length)]!;
    const { talk } = agent;
    const choice = this.#random(100);
    this.session.now += this.#random(30) * SECOND;
    if (choice < 70) goOn(talk, this.#text(2000), this.#text(4000));
    else if (choice < 76) this.#retry();
    else if (choice < 82) this.#editLast(talk);
    else if (choice < 86) this.#compact(agent);
    else if (choice < 92 && this.#agents.length < 5) this.#startAgent();
    else if (choice < 97) return this.#askBeside(agent);
    else if (agent.name !== null) this.#agents = this.#agents.filter((each) => each !== agent);
    this.#ask(agent);
  }

  /** Sends an agent's request. Only an agent that waited too long for the others has a miss, because its cache is lost. */
  #ask(agent: Agent): void {
    const idle = this.session.now + 20 * SECOND - (agent.at ?? Infinity);
    const miss = this.session.ask(agent.talk, { agent: agent.name }, this.#id);
    if (miss === null || idle < 300 * SECOND) expect(miss).toBeNull();
    else expect(miss.because).toBe("lifetime_passed");
    agent.at = this.session.now;
  }

  /** Changes nothing, so that the same request is sent once more. */
  #retry(): void {}

  /** Replaces the last question: the user goes back to it and asks another one. */
  #editLast({ turns }: Conversation): void {
    turns.at(-1)!.text = this.#text(3000);
  }

  #compact(agent: Agent): void {
    const { turns } = agent.talk;
    if (turns.length < 13) return goOn(agent.talk, this.#text(1000), this.#text(1000));
    agent.talk = { ...agent.talk, turns: [{ role: "user", text: this.#text(300) }, ...turns.slice(-2)] };
  }

  #startAgent(): void {
    const name = `agent-${(this.#count += 1)}`;
    const agent = { name, talk: this.#begin(this.#random(2) === 0 ? "main" : name) };
    this.#agents.push(agent);
    this.#ask(agent);
  }

  /** Sends a request for a title or a suggestion: it has another system prompt, no tools, and a smaller model. */
  #askBeside({ name }: Agent): void {
    const talk: Conversation = {
      ...openConversation(`${this.#id} beside`, this.#text(600), "flash-2.5"),
      tools: [],
    };
    this.#ask({ name, talk });
  }
}

describe.each(DIALECT_NAMES)("ordinary turns in the dialect %s", (dialect) => {
  test("320 generated turns of sessions with agents in parallel raise no false alarm", () => {
    const session = new Session(dialect);
    const dice = openDice(7);
    const random = (below: number): number => Math.floor(dice() * below);
    for (let project = 0; project < 8; project += 1) {
      const work = new Work(session, `s${project}`, random);
      for (let step = 0; step < 40; step += 1) work.step();
    }
  });
});
