/** The search field of the guide. It loads the index when the field gets the focus. */
import MiniSearch from './minisearch.js';

const field = document.querySelector('#search');
const results = document.querySelector('#results');
const base = new URL('.', import.meta.url);
let index;

async function loadIndex() {
  const answer = await fetch(new URL('search.json', base));
  return MiniSearch.loadJSON(await answer.text(), {
    fields: ['title', 'text'],
    storeFields: ['title', 'text'],
  });
}

function excerpt({ text, terms }) {
  const at = Math.max(0, text.toLowerCase().indexOf(terms[0] ?? '') - 40);
  return `${at > 0 ? '…' : ''}${text.slice(at, at + 140)}…`;
}

function toItem(found) {
  const link = document.createElement('a');
  link.href = new URL(found.id, base);
  link.textContent = found.title;
  const text = document.createElement('p');
  text.textContent = excerpt(found);
  const item = document.createElement('li');
  item.append(link, text);
  return item;
}

async function search() {
  index ??= loadIndex();
  const loaded = await index;
  const wanted = field.value.trim();
  const options = { prefix: true, fuzzy: 0.1, boost: { title: 4 }, combineWith: 'AND' };
  const found = wanted === '' ? [] : loaded.search(wanted, options).slice(0, 12);
  const nothing = document.createElement('li');
  nothing.textContent = 'Nothing found.';
  results.replaceChildren(...(found.length === 0 ? [nothing] : found.map(toItem)));
  results.hidden = wanted === '';
}

field.addEventListener('focus', () => {
  index ??= loadIndex();
});
field.addEventListener('input', search);
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
  if (event.key === 'Escape') {
    field.value = '';
    results.hidden = true;
  }
});
