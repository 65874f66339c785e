// What the page knows of its server: reachable or not, its models, the size of the context.
import { ApiError, healthy, models, properties } from './api';

const kRetryMs = 3000;

export class Server {
  reachable = true;
  models: string[] = [];
  contextTokens: number | undefined;
  onChange: () => void = () => undefined;
  /** Asks the user for a key; resolves to false when there is none. */
  askKey: () => Promise<boolean> = async () => false;
  private timer = 0;

  /** Reads models and properties, and tries again by itself while the server cannot be reached. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    try {
      this.models = await models();
      this.reachable = true;
      const read = await properties().catch(() => ({ contextTokens: undefined, model: undefined }));
      this.contextTokens = read.contextTokens;
      if (!this.models.length && read.model) this.models = [read.model];
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.onChange();
        if (await this.askKey()) return this.refresh();
        return;
      }
      // A server that still loads its model answers 503.
      this.reachable = error instanceof ApiError && error.status !== 0 && error.status !== 503;
      if (!this.reachable) this.waitForIt();
    }
    this.onChange();
  }

  private waitForIt(): void {
    this.timer = window.setTimeout(async () => {
      if (!document.hidden && (await healthy())) await this.refresh();
      else this.waitForIt();
    }, kRetryMs);
  }

  /** The model that answers when `wanted` is what the settings say. */
  modelFor(wanted: string): string {
    return this.models.includes(wanted) ? wanted : this.models[0] ?? '';
  }
}
