// Asks before a page with changed fields is left; a form that is being sent asks nothing.

export function guardForm(form) {
  const unsaved = form.hasAttribute('data-unsaved'); // the server gave back what was typed: nothing of it is stored
  const before = contents(form);
  let sending = false;
  form.addEventListener('submit', (event) => { sending = !event.defaultPrevented; });
  addEventListener('pageshow', () => { sending = false; });
  addEventListener('beforeunload', (event) => {
    if (!sending && (unsaved || contents(form) !== before)) event.preventDefault();
  });
}

function contents(form) {
  return JSON.stringify([...new FormData(form)].filter(([name]) => name !== 'csrfmiddlewaretoken'));
}
