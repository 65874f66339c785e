// Conversations in the browser's database, and a copy in memory where there is none.
import type { Conversation, Head } from './types';

const kHeads = 'heads';
const kBodies = 'conversations';

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('The database request failed.'));
  });
}

/** The commit is asked for at once, so that it is on its way even if the page goes away next. */
function finished(transaction: IDBTransaction): Promise<void> {
  transaction.commit();
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error('The database refused the write.'));
  });
}

function headOf({ id, title, created, updated }: Conversation): Head {
  return { id, title, created, updated };
}

export class Store {
  /** Called when another tab has changed a conversation. */
  onForeignChange: (id: string) => void = () => undefined;
  private readonly memory = new Map<string, Conversation>();
  private readonly channel = new BroadcastChannel('hearth');

  private constructor(private readonly database: IDBDatabase | null) {
    this.channel.onmessage = (event: MessageEvent<unknown>) => {
      if (typeof event.data === 'string') this.onForeignChange(event.data);
    };
  }

  /** Never fails: without a database (private windows of some browsers) conversations last as long as the page. */
  static async open(): Promise<Store> {
    try {
      const request = indexedDB.open('hearth', 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore(kHeads, { keyPath: 'id' });
        request.result.createObjectStore(kBodies, { keyPath: 'id' });
      };
      return new Store(await done(request));
    } catch {
      return new Store(null);
    }
  }

  get persistent(): boolean {
    return this.database !== null;
  }

  /** Heads of all conversations, the last changed first. */
  async list(): Promise<Head[]> {
    const heads = this.database
      ? await done<Head[]>(this.database.transaction(kHeads).objectStore(kHeads).getAll())
      : Array.from(this.memory.values(), headOf);
    return heads.sort((a, b) => b.updated - a.updated);
  }

  async load(id: string): Promise<Conversation | undefined> {
    if (!this.database) return this.memory.get(id);
    return done<Conversation | undefined>(this.database.transaction(kBodies).objectStore(kBodies).get(id));
  }

  /** Fails when the browser gives no more space. */
  async save(conversation: Conversation): Promise<void> {
    if (this.database) {
      const transaction = this.database.transaction([kHeads, kBodies], 'readwrite');
      transaction.objectStore(kHeads).put(headOf(conversation));
      transaction.objectStore(kBodies).put(conversation);
      await finished(transaction);
    } else {
      this.memory.set(conversation.id, conversation);
    }
    this.channel.postMessage(conversation.id);
  }

  async remove(id: string): Promise<void> {
    if (this.database) {
      const transaction = this.database.transaction([kHeads, kBodies], 'readwrite');
      transaction.objectStore(kHeads).delete(id);
      transaction.objectStore(kBodies).delete(id);
      await finished(transaction);
    }
    this.memory.delete(id);
    this.channel.postMessage(id);
  }

  /** Gives every conversation to `visit` until it returns false; one at a time, so that memory stays small. */
  async visit(visit: (conversation: Conversation) => boolean): Promise<void> {
    if (!this.database) {
      for (const conversation of this.memory.values()) if (!visit(conversation)) return;
      return;
    }
    const request = this.database.transaction(kBodies).objectStore(kBodies).openCursor();
    await new Promise<void>((resolve, reject) => {
      request.onerror = () => reject(request.error ?? new Error('The database could not be read.'));
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor || !visit(cursor.value as Conversation)) resolve();
        else cursor.continue();
      };
    });
  }
}
