// One socket for all that a page watches; it comes back by itself, and misses nothing.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;

/** The address of our socket: of those that the page was told, the one on the host it is of. */
function address() {
  const told = (document.body.dataset.sockets || "").split(" ").filter(Boolean);
  const found = told.find((each) => new URL(each).hostname === location.hostname);
  return found ? `${found}/live` : null;
}

/** Watches streams; `state` is told "open" and "away". */
export class Live {
  #watched = new Map();
  #socket = null;
  #pause = FIRST_PAUSE;
  #state;
  #number = 0;

  constructor(state = () => {}) {
    this.#state = state;
  }

  /**
   * Call `update` with each update of the stream from after this timestamp on, and with the
   * message that brought it. Without a stream: those of all streams, as they come.
   */
  watch(object, stream, after, update) {
    const id = String(this.#number++);
    this.#watched.set(id, { object, stream, after, update, event: null });
    if (this.#socket === null) this.#open();
    else if (this.#socket.readyState === WebSocket.OPEN) this.#subscribe(id);
  }

  #open() {
    const where = address();
    if (where === null) {
      this.#state("away");
      return;
    }
    const socket = new WebSocket(where);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#pause = FIRST_PAUSE;
      this.#state("open");
      for (const id of this.#watched.keys()) this.#subscribe(id);
    });
    socket.addEventListener("message", (message) => this.#hear(JSON.parse(message.data)));
    socket.addEventListener("close", () => {
      this.#state("away");
      setTimeout(() => this.#again(), this.#pause * (0.5 + Math.random() / 2));
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
    });
  }

  /** Open it once more, unless nobody is signed in any more; by asking that a session is renewed. */
  async #again() {
    const answer = await fetch(`${document.body.dataset.root}/session`).catch(() => null);
    if (answer !== null && answer.status === 401) location.reload();
    else this.#open();
  }

  #subscribe(id) {
    const { object, stream, after, event } = this.#watched.get(id);
    const from = event === null ? (after === null ? {} : { after }) : { last: event };
    const what = stream === null ? { serviceObject: object } : { serviceObject: object, stream, ...from };
    this.#socket.send(JSON.stringify({ do: "subscribe", id, ...what }));
  }

  #hear(said) {
    const watched = this.#watched.get(said.id);
    if (watched === undefined) return;
    if (said.event) watched.event = said.event;
    if (said.update) watched.update(said.update, said);
    if (said.is === "ended") setTimeout(() => this.#subscribe(said.id), FIRST_PAUSE);
  }
}
