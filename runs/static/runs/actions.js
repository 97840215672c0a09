// Requests that do something. Each resolves to { ok, … }; none throws, and none loses what a person typed.

import { t } from './strings.js';

let csrfToken = '';

export function useToken(token) { csrfToken = token; }

/** POST JSON. Answers { ok, status, body, message }; `message` is a sentence for the person when it is not ok. */
export async function post(url, body = {}) {
  let answer;
  try {
    answer = await fetch(url, {
      method: 'POST', credentials: 'same-origin', body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', 'Accept': 'application/json', 'X-CSRFToken': csrfToken },
    });
  } catch {
    return { ok: false, status: 0, body: {}, message: t('not_sent') };
  }
  const content = await answer.json().catch(() => ({}));
  return { ok: answer.ok, status: answer.status, body: content, message: answer.ok ? '' : refusal(answer.status, content) };
}

function refusal(status, content) {
  if (status === 401) return t('signed_out');
  if (status === 403) return t('forbidden');
  return content.detail || t('action_failed');
}
