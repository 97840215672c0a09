// The page that shows a new key: select it by a click, copy it by the button where the browser allows that.
const field = document.getElementById("made-key");
const button = document.getElementById("copy-key");

field.addEventListener("focus", () => field.select());
if (navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(field.value);
    button.textContent = button.dataset.done;
  });
}
