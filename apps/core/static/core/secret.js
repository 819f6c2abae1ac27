// Copies the secret on the page that shows it once.
const field = document.getElementById("secret");
const button = document.getElementById("copy");
field.addEventListener("focus", () => field.select());
button.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = button.dataset.copied;
  } catch {
    field.focus(); // no clipboard without https: the text is marked, to be copied by hand
  }
});
