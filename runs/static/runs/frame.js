// What every page has: the drawer with conversations, the theme switch, the keys, the help dialog.

import { setAttribute } from './dom.js';

const FIELDS = 'input, textarea, select, [contenteditable]';

export function startFrame() {
  startDrawer();
  startTheme();
  startHelp();
}

/** Ask in a dialog of the page; whether the person said yes. Esc and every other button say no. */
export function agreed(id) {
  const dialog = document.getElementById(id);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

function startDrawer() {
  const button = document.querySelector('[data-part="menu"]');
  const rail = document.getElementById('rail');
  if (!button || !rail) return;
  const veil = document.querySelector('[data-part="veil"]');
  const set = (open) => {
    rail.classList.toggle('drawn', open);
    veil.hidden = !open;
    setAttribute(button, 'aria-expanded', String(open));
    if (open) rail.querySelector('a, button')?.focus();
    else if (rail.contains(document.activeElement)) button.focus();
  };
  button.addEventListener('click', () => set(!rail.classList.contains('drawn')));
  veil.addEventListener('click', () => set(false));
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && rail.classList.contains('drawn')) set(false);
    if (event.key === 'Tab' && rail.classList.contains('drawn')) keepInside(rail, event);
  });
}

function keepInside(rail, event) {
  const stops = [...rail.querySelectorAll('a, button, summary, select')].filter((node) => node.offsetParent !== null);
  const [first, last] = [stops[0], stops.at(-1)];
  const leaving = event.shiftKey ? document.activeElement === first : document.activeElement === last;
  if (!leaving && rail.contains(document.activeElement)) return;
  event.preventDefault();
  (event.shiftKey ? last : first)?.focus();
}

function startTheme() {
  const form = document.querySelector('[data-part="theme"]');
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    form.elements.theme.value = root.dataset.theme;
    fetch(form.action, { method: 'POST', body: new FormData(form), credentials: 'same-origin', redirect: 'manual' });
  });
}

function startHelp() {
  const help = document.getElementById('help');
  const menus = document.querySelectorAll('details.menu');
  for (const opener of document.querySelectorAll('[data-part="help"]')) opener.addEventListener('click', () => help?.showModal());
  document.addEventListener('click', ({ target }) => {
    for (const menu of menus) if (!menu.contains(target)) menu.open = false;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') leave(menus);
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(FIELDS) || document.querySelector('dialog[open]')) return;
    if (event.key === '?') { event.preventDefault(); help?.showModal(); }
    if (event.key === 'n' || event.key === 'N') { event.preventDefault(); document.querySelector('[data-part="new"]')?.click(); }
  });
}

function leave(menus) {
  for (const menu of menus) menu.open = false;
  if (document.activeElement?.matches(FIELDS) && !document.querySelector('dialog[open]')) document.activeElement.blur();
}
