// The conversations and what can be done with them. Views listen; nothing here touches the page.
import { Generation } from './generation';
import { hasAnswer, requestBody } from './messages';
import * as preferences from './preferences';
import type { Server } from './server';
import type { Store } from './store';
import { append, find, newConversation, pathTo, removeLeaf, showVersion } from './tree';
import type { Conversation, Head, Message } from './types';

/** A reload in the middle of an answer loses at most this much of it. */
const kSaveEveryMs = 1000;

export class Chats {
  heads: Head[] = [];
  current: Conversation;
  onList: () => void = () => undefined;
  /** Another conversation is shown, or its path has changed. */
  onPath: () => void = () => undefined;
  /** The last answer of the current conversation has grown or ended. */
  onAnswer: () => void = () => undefined;
  onProblem: (text: string) => void = () => undefined;
  private opening = 0;
  private readonly running = new Map<string, { conversation: Conversation; generation: Generation }>();
  private readonly saved = new Map<string, number>();

  constructor(
    private readonly store: Store,
    private readonly server: Server,
  ) {
    this.current = newConversation(preferences.defaultSettings());
    store.onForeignChange = (id) => void this.foreignChange(id);
  }

  get generation(): Generation | undefined {
    return this.running.get(this.current.id)?.generation;
  }

  isRunning(id: string): boolean {
    return this.running.has(id);
  }

  async readList(): Promise<void> {
    this.heads = await this.store.list();
    this.onList();
  }

  /** Shows a conversation, or a new one. False when there is none with this id. */
  async open(id: string | null): Promise<boolean> {
    const request = ++this.opening;
    if (id === this.current.id) return true;
    const conversation =
      id === null
        ? newConversation(preferences.defaultSettings())
        : (this.running.get(id)?.conversation ?? (await this.store.load(id)));
    // Another was chosen while this one was read.
    if (request !== this.opening) return true;
    if (!conversation) return false;
    this.current = conversation;
    this.onPath();
    this.onList();
    return true;
  }

  send(text: string): void {
    if (this.generation) return;
    const { current } = this;
    const last = find(current, current.leaf);
    // A failed try left nothing that an answer could follow.
    if (last?.role === 'assistant' && !hasAnswer(last)) removeLeaf(current, last);
    append(current, current.leaf, 'user', text);
    this.answer();
  }

  sendResults(results: { id: string; text: string }[]): void {
    if (this.generation) return;
    for (const { id, text } of results) append(this.current, this.current.leaf, 'tool', text).toolCallId = id;
    this.answer();
  }

  /** Another version of an answer; one without content is replaced. */
  regenerate(message: Message): void {
    if (this.generation) return;
    const { current } = this;
    if (!hasAnswer(message)) removeLeaf(current, message);
    current.leaf = message.parent;
    this.answer();
  }

  /** Another version of a question, answered anew. */
  edit(message: Message, text: string): void {
    if (this.generation) return;
    append(this.current, message.parent, 'user', text);
    this.answer();
  }

  show(version: Message): void {
    if (this.generation) return;
    showVersion(this.current, version);
    this.onPath();
    void this.save(this.current);
  }

  stop(): void {
    this.generation?.stop();
  }

  private answer(): void {
    const conversation = this.current;
    const path = pathTo(conversation, conversation.leaf);
    const model = this.server.modelFor(conversation.settings.model)?.id ?? '';
    const message = append(conversation, conversation.leaf, 'assistant', '');
    message.model = model;
    const generation = new Generation(message, () => {
      if (conversation === this.current) this.onAnswer();
      this.saveSometimes(conversation);
    });
    this.running.set(conversation.id, { conversation, generation });
    void this.save(conversation);
    this.onPath();
    void this.run(conversation, generation, () => requestBody(conversation.settings, path, model));
  }

  private async run(conversation: Conversation, generation: Generation, body: () => object): Promise<void> {
    const { message } = generation;
    let status = 0;
    try {
      status = await generation.run(body());
    } catch (error) {
      message.ending = 'failed';
      message.error = (error as Error).message;
    }
    this.running.delete(conversation.id);
    if (conversation === this.current) this.onPath();
    await this.save(conversation);
    if (status === 401 && (await this.server.askKey())) {
      void this.server.refresh();
      if (conversation === this.current && conversation.leaf === message.id) this.regenerate(message);
    } else if (message.error) {
      void this.server.refresh();
    }
  }

  async rename(id: string, title: string): Promise<void> {
    const conversation = id === this.current.id ? this.current : await this.store.load(id);
    if (!conversation || !title.trim()) return;
    conversation.title = title.trim().slice(0, 200);
    await this.save(conversation);
    if (conversation === this.current) this.onPath();
  }

  /** Returns what brings the conversation back. */
  async remove(id: string): Promise<() => Promise<void>> {
    const running = this.running.get(id);
    running?.generation.stop();
    const conversation = running?.conversation ?? (id === this.current.id ? this.current : await this.store.load(id));
    this.running.delete(id);
    clearTimeout(this.saved.get(id));
    this.removed.add(id);
    preferences.setDraft(id, '');
    await this.store.remove(id);
    await this.readList();
    return async () => {
      this.removed.delete(id);
      if (conversation) await this.save(conversation);
    };
  }

  /** Ids whose late writes must not bring them back. */
  private readonly removed = new Set<string>();

  async add(conversations: Conversation[]): Promise<void> {
    for (const conversation of conversations) await this.store.save(conversation);
    await this.readList();
  }

  async all(): Promise<Conversation[]> {
    const all: Conversation[] = [];
    await this.store.visit((conversation) => all.push(conversation) > 0);
    return all;
  }

  async load(id: string): Promise<Conversation | undefined> {
    return id === this.current.id ? this.current : this.store.load(id);
  }

  /** Conversations with `text` in their title or messages, each with the passage around it. */
  async search(text: string, signal: AbortSignal): Promise<{ head: Head; passage: string }[]> {
    const wanted = text.toLowerCase();
    const found: { head: Head; passage: string }[] = [];
    await this.store.visit((conversation) => {
      const passage = passageOf(conversation, wanted);
      if (passage !== null) found.push({ head: conversation, passage });
      return !signal.aborted;
    });
    return found.sort((a, b) => b.head.updated - a.head.updated);
  }

  /** Writes now. A conversation without messages is not kept. */
  async save(conversation: Conversation): Promise<void> {
    clearTimeout(this.saved.get(conversation.id));
    this.saved.delete(conversation.id);
    if (!conversation.messages.length || this.removed.has(conversation.id)) return;
    try {
      await this.store.save(conversation);
    } catch (error) {
      const full = error instanceof DOMException && error.name === 'QuotaExceededError';
      this.onProblem(
        full
          ? 'The browser has no space left for this conversation. Export what you need and delete old ones.'
          : `The conversation could not be saved: ${(error as Error).message}`,
      );
    }
    await this.readList();
  }

  /** The page goes away, and with it the connections: answers end here, and are written as they are. */
  leave(): void {
    for (const { generation } of this.running.values()) generation.stop('interrupted');
  }

  private saveSometimes(conversation: Conversation): void {
    if (this.saved.has(conversation.id) || this.removed.has(conversation.id)) return;
    this.saved.set(
      conversation.id,
      window.setTimeout(() => {
        this.saved.delete(conversation.id);
        void this.store.save(conversation).catch(() => undefined);
      }, kSaveEveryMs),
    );
  }

  private async foreignChange(id: string): Promise<void> {
    await this.readList();
    if (id !== this.current.id || this.generation) return;
    const conversation = await this.store.load(id);
    if (!conversation || id !== this.current.id) return;
    this.current = conversation;
    this.onPath();
  }
}

function passageOf(conversation: Conversation, wanted: string): string | null {
  for (const message of conversation.messages) {
    const at = message.content.toLowerCase().indexOf(wanted);
    if (at < 0) continue;
    const start = Math.max(0, at - 30);
    return `${start > 0 ? '…' : ''}${message.content.slice(start, at + wanted.length + 60).replace(/\s+/g, ' ')}`;
  }
  return conversation.title.toLowerCase().includes(wanted) ? '' : null;
}
