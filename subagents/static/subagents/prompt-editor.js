// Keeps the size under a prompt current and says before saving that a text is too long.

import { characters, fill, grouped, tokens } from './prompt-size.js';

const PAUSE_MS = 150; // counting a large text at every key would be felt
const UNREADABLE = 5; // times the longest text: the server would not even read a request that large

export function followPrompts(root = document) {
  for (const field of root.querySelectorAll('[data-prompt-editor]')) follow(field);
}

function follow(field) {
  const shown = field.parentElement.querySelector('[data-prompt-size]');
  const longest = Number(field.dataset.longest);
  let timer = 0;
  const measure = () => {
    const count = characters(field.value);
    const excess = count - longest;
    const facts = { characters: grouped(count), longest: grouped(longest), tokens: grouped(tokens(field.value)) };
    shown.textContent = fill(field.dataset.size, facts);
    shown.classList.toggle('sa-too-long', excess > 0);
    field.setCustomValidity(excess > 0 ? fill(field.dataset.tooLong, { characters: grouped(excess) }) : '');
    if (excess > 0) shown.append(document.createElement('br'), field.validationMessage);
  };
  field.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(measure, PAUSE_MS);
  });
  field.addEventListener('change', measure);
  field.form?.addEventListener('submit', (event) => {
    if (field.value.length <= UNREADABLE * longest) return;
    event.preventDefault();
    measure();
    field.focus();
  });
  measure();
}
