// What every page does: times in the reader's own zone, and buttons that copy.

/** Show each time as the reader's clock would, once the page is there. */
export function localTimes(within = document) {
  for (const each of within.querySelectorAll("time[data-local]")) {
    const at = new Date(each.dateTime);
    if (!Number.isNaN(at.getTime())) each.textContent = at.toLocaleString();
  }
}

/** Make each button copy what it belongs to, and say so to those who listen, too. */
function copying() {
  for (const button of document.querySelectorAll("button[data-copies]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
      const word = button.querySelector("span");
      word.textContent = "Copied";
      button.addEventListener("blur", () => { word.textContent = "Copy"; }, { once: true });
    });
  }
}

localTimes();
copying();
