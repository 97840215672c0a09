// Keeps an open page current. It asks whether anything changed; when something did, it fetches the page anew and
// puts the marked parts in place. What a person types, ticks or unfolds is not touched.

const PACE_MS = 1400; // with the time an answer takes, a change shows within two seconds

const followed = document.querySelector('[data-follow]');
if (followed) follow(followed.dataset.follow, followed.dataset.signature);

function follow(address, signature) {
  let shown = signature;
  const look = async () => {
    if (!document.hidden) shown = await refresh(address, shown).catch(() => shown);
    setTimeout(look, PACE_MS);
  };
  setTimeout(look, PACE_MS);
  document.addEventListener('visibilitychange', async () => {
    if (!document.hidden) shown = await refresh(address, shown).catch(() => shown);
  });
}

async function refresh(address, shown) {
  const answer = await fetch(`${address}?signature=${encodeURIComponent(shown)}`, { headers: { Accept: 'application/json' } });
  if (answer.status !== 200) return shown;
  const { signature } = await answer.json();
  const page = await fetch(location.href, { headers: { Accept: 'text/html' } });
  if (!page.ok || page.redirected) {
    reveal('rows');
    return signature;
  }
  take(new DOMParser().parseFromString(await page.text(), 'text/html'));
  return signature;
}

function take(fresh) {
  const parts = new Map([...fresh.querySelectorAll('[data-live]')].map((part) => [part.dataset.live, part]));
  const here = [...document.querySelectorAll('[data-live]')];
  for (const part of here) {
    const newer = parts.get(part.dataset.live);
    if (newer && newer.innerHTML !== part.innerHTML) replace(part, newer);
  }
  const rows = (names) => [...names].filter((name) => name.startsWith('state-')).sort().join();
  if (rows(parts.keys()) !== rows(here.map((part) => part.dataset.live))) reveal('rows');
  const [mine, stored] = [document, fresh].map((page) => page.querySelector('form[data-guarded] [name=version]'));
  if (mine && stored && mine.value !== stored.value) reveal('version');
}

function replace(part, newer) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : '';
  part.replaceChildren(...newer.childNodes);
  if (focused) document.getElementById(focused)?.focus();
}

function reveal(name) {
  const note = document.querySelector(`[data-news="${name}"]`);
  if (note) note.hidden = false;
}
