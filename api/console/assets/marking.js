// Numbers of lines beside the text that is edited, and marks where something is wrong in it.

/** How large letters are there, and where the first one stands; pixels. */
export function letters(text) {
  const style = getComputedStyle(text);
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${style.fontSize} ${style.fontFamily}`;
  return {
    width: context.measureText("0".repeat(100)).width / 100,
    height: parseFloat(style.lineHeight),
    left: parseFloat(style.paddingLeft) + text.clientLeft,
    top: parseFloat(style.paddingTop) + text.clientTop,
  };
}

function layer(name) {
  const found = document.createElement("div");
  found.className = name;
  found.setAttribute("aria-hidden", "true");
  found.append(document.createElement("div"));
  return found;
}

/** Shows both; the text has to stand alone in its box. */
export class Margin {
  #text;
  #lines = layer("lines");
  #marks = layer("marks");
  #count = 0;

  constructor(text) {
    this.#text = text;
    text.before(this.#lines);
    const over = document.createElement("div");
    over.className = "over";
    text.before(over);
    over.append(text, this.#marks);
    text.parentElement.parentElement.classList.add("numbered");
    text.addEventListener("scroll", () => this.#follow());
    this.number();
  }

  /** Number the lines that there are now. */
  number() {
    const count = this.#text.value.split("\n").length;
    if (count === this.#count) return;
    this.#count = count;
    const numbers = Array.from({ length: count }, (_, line) => line + 1);
    this.#lines.firstChild.textContent = numbers.join("\n");
    this.#lines.style.minWidth = `${String(count).length + 1.5}ch`;
    this.#follow();
  }

  /** Mark these places, each `{ line, column }` from 1 on, and no others. */
  mark(places) {
    const { width, height, left, top } = letters(this.#text);
    const lines = this.#text.value.split("\n");
    this.#marks.firstChild.replaceChildren(...places.map(({ line, column }) => {
      const mark = document.createElement("i");
      const rest = Array.from(lines[line - 1] ?? "").length - column + 1;
      mark.style.left = `${left + (column - 1) * width}px`;
      mark.style.top = `${top + (line - 1) * height}px`;
      mark.style.width = `${Math.max(1, Math.min(rest, 12)) * width}px`;
      mark.style.height = `${height}px`;
      return mark;
    }));
    this.#follow();
  }

  #follow() {
    const { scrollLeft, scrollTop } = this.#text;
    this.#lines.firstChild.style.transform = `translateY(${-scrollTop}px)`;
    this.#marks.firstChild.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  }
}
