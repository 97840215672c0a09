// Shows whom an agent could call if what stands in the form were saved. The server answers: it alone knows the rule.

const FIELDS = ['subagent_enabled', 'allowed_subagents-choice', 'allowed_subagents', 'allowed_subagents-other'];
const PAUSE_MS = 150;

export function followScope(place) {
  const form = place.closest('form');
  const list = place.querySelector('[data-reach-list]');
  let timer = 0;
  let newest = 0;
  const refresh = async () => {
    newest += 1;
    const mine = newest;
    const answer = await fetch(`${place.dataset.reach}?${queryOf(form)}`, { credentials: 'same-origin' }).catch(() => null);
    // An answer that was overtaken by a later one says nothing any more.
    if (mine !== newest || !answer?.ok || answer.redirected) return;
    list.innerHTML = await answer.text(); // a template of ours, escaped by the server
  };
  form.addEventListener('input', ({ target }) => {
    if (!FIELDS.includes(target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, PAUSE_MS);
  });
}

function queryOf(form) {
  return new URLSearchParams([...new FormData(form)].filter(([name, value]) => FIELDS.includes(name) && value !== ''));
}
