// Completes what is written: names of streams and groups, and of the channels that they have.

import { letters } from "./marking.js";

const SHOWN = 8;
const LOOKED_AT = 300;
/** A channel, where code has begun to name one: `iot.value(air, 'ce`. */
const CHANNEL = /\(\s*([\w$]+)\s*,\s*(["'])([^"'\n]*)$/;
/** The beginning of a name, or of a whole reference of the other dialect. */
const WORD = /(\{\$[\w.-]*|[A-Za-z_$][\w$]*)$/;

/** What may stand at the end of this text: `{ text, shown }`, and how much of the end it takes the place of. */
export function candidates(before, names) {
  const end = before.slice(-LOOKED_AT);
  const channel = CHANNEL.exec(end);
  if (channel !== null) {
    const [, of, , begun] = channel;
    const found = names.filter((each) => each.of === of && each.channel.startsWith(begun) && each.channel);
    return { found: found.map((each) => ({ text: each.channel, shown: each.channel })), taken: begun.length };
  }
  const word = WORD.exec(end)?.[0] ?? "";
  if (word === "") return { found: [], taken: 0 };
  const begins = names.filter((each) => each.text.startsWith(word));
  const of = names.filter((each) => each.channel.startsWith(word) && !begins.includes(each));
  const found = [...begins, ...of].map(({ text }) => ({ text, shown: text }));
  return { found: found.length === 1 && found[0].text === word ? [] : found, taken: word.length };
}

/** The names that an element has as options. */
export function namesOf(list) {
  return Array.from(list?.querySelectorAll("option") ?? [], (each) => (
    { text: each.value, of: each.dataset.of ?? "", channel: each.dataset.channel ?? "" }
  ));
}

/** Put it in the place of so much before the cursor, so that it can be undone. */
export function putIn(text, taken, word) {
  text.focus();
  text.setSelectionRange(text.selectionStart - taken, text.selectionEnd);
  if (!document.execCommand("insertText", false, word)) {
    text.setRangeText(word, text.selectionStart, text.selectionEnd, "end");
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Offers names while somebody writes. Arrows choose, Enter or Tab takes, Escape closes. */
export class Completing {
  #text;
  #list = document.createElement("ul");
  #told = document.createElement("p");
  #names;
  #found = [];
  #taken = 0;
  #at = 0;

  constructor(text, names) {
    this.#text = text;
    this.#names = names;
    Object.assign(this.#list, { id: "completions", className: "completions", hidden: true });
    this.#list.setAttribute("role", "listbox");
    this.#list.setAttribute("aria-label", "Names that fit");
    this.#told.className = "unseen";
    this.#told.setAttribute("role", "status");
    text.after(this.#list, this.#told);
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", "completions");
    text.addEventListener("input", (event) => {
      if (event.inputType?.startsWith("insert")) this.#offer();
      else this.close();
    });
    text.addEventListener("keydown", (event) => this.#press(event));
    for (const name of ["blur", "scroll", "click"]) text.addEventListener(name, () => this.close());
    window.addEventListener("resize", () => this.close()); // its place would be another one
    this.#list.addEventListener("mousedown", (event) => {
      const option = event.target.closest("[role=option]");
      event.preventDefault(); // the text keeps the focus
      if (option !== null) this.#take(Number(option.dataset.number));
    });
  }

  /** Offer these from now on. */
  know(names) {
    this.#names = names;
  }

  #offer() {
    const before = this.#text.value.slice(0, this.#text.selectionStart);
    const { found, taken } = candidates(before, this.#names);
    this.#found = found.slice(0, SHOWN);
    this.#taken = taken;
    this.#at = 0;
    if (this.#found.length === 0) {
      this.close();
      return;
    }
    this.#list.replaceChildren(...this.#found.map(({ shown }, number) => {
      const option = document.createElement("li");
      option.id = `completion-${number}`;
      option.dataset.number = String(number);
      option.setAttribute("role", "option");
      option.textContent = shown;
      return option;
    }));
    this.#list.hidden = false;
    this.#place(before);
    this.#choose(0);
    const count = found.length === 1 ? "1 name fits" : `${found.length} names fit`;
    this.#told.textContent = `${count}: arrows choose, Enter takes, Escape closes`;
  }

  #place(before) {
    const { width, height, left, top } = letters(this.#text);
    const lines = before.split("\n");
    const column = Array.from(lines[lines.length - 1]).length - this.#taken;
    const x = left + column * width - this.#text.scrollLeft;
    const widest = Math.max(0, this.#text.clientWidth - this.#list.offsetWidth);
    this.#list.style.left = `${Math.max(0, Math.min(x, widest))}px`;
    this.#list.style.top = `${top + lines.length * height - this.#text.scrollTop}px`;
  }

  #choose(number) {
    this.#at = (number + this.#found.length) % this.#found.length;
    for (const [index, option] of Array.from(this.#list.children).entries()) {
      option.setAttribute("aria-selected", String(index === this.#at));
    }
    this.#text.setAttribute("aria-activedescendant", `completion-${this.#at}`);
  }

  #press(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.#offer();
      return;
    }
    if (this.#list.hidden || event.isComposing) return;
    const does = {
      ArrowDown: () => this.#choose(this.#at + 1),
      ArrowUp: () => this.#choose(this.#at - 1),
      Enter: () => this.#take(this.#at),
      Tab: () => this.#take(this.#at),
      Escape: () => this.close(),
    }[event.key];
    if (does === undefined || event.shiftKey) {
      if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) this.close();
      return;
    }
    event.preventDefault();
    does();
  }

  #take(number) {
    const { text } = this.#found[number];
    const taken = this.#taken;
    this.close();
    putIn(this.#text, taken, text);
    this.close();
  }

  /** Offer nothing until something more is written. */
  close() {
    this.#list.hidden = true;
    this.#told.textContent = "";
    this.#text.removeAttribute("aria-activedescendant");
  }
}
