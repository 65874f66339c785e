// What the page knows of its server: reachable or not, its models, the size of the context.
import { ApiError, healthy, type ModelInfo, models, properties, type Properties } from './api';

const kRetryMs = 3000;
const kLoadingMs = 1000;

const kUnknown: Properties = { sampling: {}, thinks: true, takesTools: true };

export class Server {
  reachable = true;
  models: ModelInfo[] = [];
  properties = kUnknown;
  onChange: () => void = () => undefined;
  /** Asks the user for a key; resolves to false when there is none. */
  askKey: () => Promise<boolean> = async () => false;
  private timer = 0;

  /** Reads the models, and does so again by itself while one still loads or the server cannot be reached. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    try {
      this.models = await models();
      this.reachable = true;
      if (this.models.some(({ loading }) => loading)) {
        this.timer = window.setTimeout(() => void this.refresh(), kLoadingMs);
      } else {
        this.properties = await properties().catch(() => kUnknown);
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.onChange();
        if (await this.askKey()) return this.refresh();
        return;
      }
      // A server that starts or stops answers 503.
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

  contextTokens(wanted: string): number | undefined {
    return this.modelFor(wanted)?.contextTokens ?? this.properties.contextTokens;
  }

  /** The model that answers when `wanted` is what the settings say. */
  modelFor(wanted: string): ModelInfo | undefined {
    return this.models.find(({ id }) => id === wanted) ?? this.models[0];
  }
}
