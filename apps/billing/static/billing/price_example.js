// Says what a request would cost while the price is typed: a slip of units shows at once.
const box = document.getElementById("price-example");
const read = (name) => Number(document.getElementById(`id_${name}`)?.value || 0);
const money = (amount) => amount.toLocaleString(undefined, { maximumFractionDigits: 12 });

function show() {
  const currency = document.getElementById("id_currency")?.value || "";
  const input = (read("input_per_million") * 1000) / 1e6;
  const output = (read("output_per_million") * 500) / 1e6;
  const values = {
    input: `${money(input)} ${currency}`,
    total: `${money(input + output + read("per_request"))} ${currency}`,
  };
  box.textContent = box.dataset.text.replace(/{(\w+)}/g, (_, name) => values[name]);
}

if (box) {
  box.closest("form").addEventListener("input", show);
  show();
}
