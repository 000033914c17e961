// Asks the server what it thinks of a text while it is written, and shows that beside it.

const PAUSE = 700;
const AGAIN = 5000;

/** Asks about a form's text, one question at a time; `told` gets each answer, as elements. */
export class Checking {
  #form;
  #told;
  #timer = 0;
  #asked = null;
  #isAsking = false;

  constructor(form, told) {
    this.#form = form;
    this.#told = told;
    this.#wait(0);
  }

  /** The text has changed: ask as soon as nobody writes for a moment. */
  changed() {
    this.#wait(PAUSE);
  }

  #wait(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), milliseconds);
  }

  async #ask() {
    const body = new FormData(this.#form);
    const text = body.get("text");
    if (this.#isAsking || text === this.#asked) return;
    this.#isAsking = true;
    const answer = await fetch(this.#form.dataset.check, { method: "POST", body }).catch(() => null);
    this.#isAsking = false;
    if (answer === null || answer.status === 429 || answer.status >= 500) {
      this.#wait(AGAIN);
      return;
    }
    if (!answer.ok || answer.redirected) return; // whoever may not, or is signed out, is told by a button
    this.#asked = text;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").body.firstElementChild;
    const now = new FormData(this.#form).get("text");
    if (now === text) this.#told(found);
    else this.#wait(PAUSE);
  }
}
