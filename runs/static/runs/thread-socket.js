// Follows a thread's log: resumes from the last seq, and asks over plain HTTP where sockets are blocked.
// Knows nothing of the DOM.

const FIRST_DELAY_MS = 400;
const LAST_DELAY_MS = 5_000;
const OPEN_WITHIN_MS = 8_000; // some proxies swallow the handshake and never answer
const FAILURES_BEFORE_ASKING = 3;
const SOCKET_AGAIN_MS = 60_000;
const FINAL_CODES = { 4401: 'signed_out', 4403: 'no_longer_allowed', 4404: 'no_such_thread' };
const FINAL_STATUSES = { 401: 'signed_out', 403: 'no_longer_allowed', 404: 'no_such_thread' };

/**
 * onFrame(frame) for each event; onState('open' | 'lost' | 'polling' | 'closed', reason).
 * Returns { stop, retryNow }.
 */
export function followThread({ socketUrl, eventsUrl, cursor, onFrame, onState }) {
  let stopped = false;
  let socket = null;
  let timer = 0;
  let delay = FIRST_DELAY_MS;
  let failures = 0; // sockets in a row that never opened
  let answers = 0; // polls that got through since then
  let triedAt = 0;

  const finish = (reason) => { stopped = true; clearTimeout(timer); onState('closed', reason); };

  const again = (action) => {
    timer = setTimeout(action, delay * (0.5 + Math.random())); // jitter: a restart must not meet all pages at once
    delay = Math.min(delay * 2, LAST_DELAY_MS);
  };

  function open() {
    if (stopped) return;
    let opened = false;
    triedAt = Date.now();
    const current = socket = new WebSocket(`${socketUrl}?after=${cursor()}`);
    const patience = setTimeout(() => current.close(), OPEN_WITHIN_MS);
    current.onopen = () => {
      clearTimeout(patience);
      [opened, failures, answers, delay] = [true, 0, 0, FIRST_DELAY_MS];
      onState('open');
    };
    current.onmessage = ({ data }) => {
      const frame = parsed(data);
      if (frame) onFrame(frame);
    };
    current.onclose = ({ code }) => {
      clearTimeout(patience);
      if (stopped) return;
      if (FINAL_CODES[code]) { finish(FINAL_CODES[code]); return; }
      failures = opened ? 0 : failures + 1;
      if (answers < 2) onState('lost');
      again(failures >= FAILURES_BEFORE_ASKING ? poll : open);
    };
  }

  async function poll() {
    if (stopped) return;
    let answer;
    try {
      answer = await fetch(`${eventsUrl}?after=${cursor()}&wait=${answers < 2 ? 0 : 20}`, { headers: { Accept: 'application/json' }, credentials: 'same-origin' });
      if (FINAL_STATUSES[answer.status]) { finish(FINAL_STATUSES[answer.status]); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      (await answer.json()).frames.forEach(onFrame);
    } catch {
      answers = 0;
      onState('lost');
      again(poll);
      return;
    }
    answers += 1;
    delay = FIRST_DELAY_MS;
    // The first answer may mean that the server is back, so a socket is due; only if that fails too are they blocked.
    if (answers === 1 || Date.now() - triedAt > SOCKET_AGAIN_MS) { open(); return; }
    onState('polling');
    poll();
  }

  open();
  return {
    stop() { stopped = true; clearTimeout(timer); socket?.close(); },
    /** Somebody is looking again, or the network is back: do not wait for the timer. */
    retryNow() {
      if (stopped || socket?.readyState !== WebSocket.CLOSED || failures >= FAILURES_BEFORE_ASKING) return;
      clearTimeout(timer);
      open();
    },
  };
}

function parsed(data) {
  try { return JSON.parse(data); } catch { return null; }
}
