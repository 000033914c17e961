// What a stream was, asked of the API: single updates where they are few, else buckets.

const MOST_SINGLE = 1000;
const BUCKETS = 600;
const SECONDS_BELOW = 100_000_000_000;
const AWAY = [502, 503, 504];

/** How many units of a stream's timestamps are a second: nobody scales them but pages. */
export function unitsPerSecond(timestamp) {
  return timestamp < SECONDS_BELOW ? 1 : 1000;
}

/** Nothing answers just now: the same, asked again later, may be answered. */
export class Away extends Error {
  constructor() {
    super("The platform does not answer just now.");
  }
}

async function asked(path) {
  const answer = await fetch(`${document.body.dataset.root}/api/${path}`).catch(() => null);
  if (answer === null || AWAY.includes(answer.status)) throw new Away();
  if (answer.status === 401) location.reload();
  const body = await answer.json().catch(() => null);
  if (body === null) throw new Away(); // it broke off
  if (!answer.ok) throw new Error(body.detail || body.message);
  return { body, hasMore: (answer.headers.get("Link") ?? "").includes('rel="next"') };
}

/** Asks for one stream. */
export class History {
  #path;

  constructor(object, stream) {
    this.#path = `${encodeURIComponent(object)}/streams/${encodeURIComponent(stream)}`;
  }

  /** The timestamps of the first and the last update; null where there is none. */
  async ends() {
    const [first, last] = await Promise.all(["asc", "desc"].map((order) =>
      asked(`${this.#path}/updates?limit=1&order=${order}`)));
    if (first.body.data.length === 0) return null;
    return [first.body.data[0].lastUpdate, last.body.data[0].lastUpdate];
  }

  /** Put the channel's values of this span into points: what was derived says whether it was revised. */
  async fill(points, channel, from, to, units, isDerived) {
    const span = `from=${Math.floor(from * units)}&to=${Math.ceil(to * units)}`;
    const single = await asked(`${this.#path}/updates?${span}&limit=${MOST_SINGLE}`);
    if (!single.hasMore) {
      points.clear();
      for (const update of single.body.data) {
        const value = update.channels[channel]?.["current-value"];
        if (typeof value === "number") {
          points.add(update.lastUpdate / units, value, { isRevised: isDerived && update.revision !== undefined });
        }
      }
      return;
    }
    const bucket = Math.max(1, Math.ceil(((to - from) * units) / BUCKETS));
    const query = `channel=${encodeURIComponent(channel)}&bucket=${bucket}&functions=min,max,mean,count&${span}`;
    const { body } = await asked(`${this.#path}/aggregates?${query}`);
    points.clear();
    for (const { start, mean, min, max, count } of body.data) {
      if (count > 0) points.addBucket(start / units, mean, min, max, count);
    }
  }

  /** How computations have ended so far. */
  async status() {
    return (await asked(`${this.#path}/status`)).body;
  }
}
