// Finds the sections that have all words: in their titles first, then in their texts.
const box = document.getElementById("search");
const results = document.getElementById("results");
const folded = sections.map(s => ({ ...s, inTitle: (s.page + " " + s.title).toLowerCase(), inText: s.text.toLowerCase() }));

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(w => w !== "");
  if (words.length === 0) return [];
  return folded
    .filter(s => words.every(w => s.inTitle.includes(w) || s.inText.includes(w)))
    .map(s => ({ section: s, score: words.filter(w => s.inTitle.includes(w)).length }))
    .sort((a, b) => b.score - a.score)
    .slice(0, 12)
    .map(r => r.section);
}

box.addEventListener("input", () => {
  const found = find(box.value);
  results.replaceChildren(...found.map(s => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = document.body.dataset.up + s.address;
    link.textContent = s.title;
    const where = document.createElement("small");
    where.textContent = s.page;
    item.append(link, where);
    return item;
  }));
  if (found.length === 0 && box.value.trim() !== "") {
    const none = document.createElement("li");
    none.textContent = "Nothing found";
    results.append(none);
  }
  results.hidden = box.value.trim() === "";
});
