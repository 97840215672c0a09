// Follows a thread's log: resumes from the last seq, and asks over plain HTTP where sockets are blocked.
// Knows nothing of the DOM.

const FIRST_DELAY_MS = 400;
const LAST_DELAY_MS = 10_000;
const FAILURES_BEFORE_POLLING = 3; // in a row, none of which ever opened
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
  let failures = 0;

  const finish = (reason) => { stopped = true; clearTimeout(timer); onState('closed', reason); };

  const again = (action) => {
    timer = setTimeout(action, delay * (0.5 + Math.random())); // jitter: a restart must not meet all pages at once
    delay = Math.min(delay * 2, LAST_DELAY_MS);
  };

  function open() {
    if (stopped) return;
    let opened = false;
    socket = new WebSocket(`${socketUrl}?after=${cursor()}`);
    socket.onmessage = ({ data }) => {
      // Only now is it sure that frames get through; some proxies accept and then stay silent.
      [opened, delay, failures] = [true, FIRST_DELAY_MS, 0];
      const frame = parsed(data);
      if (frame) onFrame(frame);
    };
    socket.onopen = () => { opened = true; delay = FIRST_DELAY_MS; failures = 0; onState('open'); };
    socket.onclose = ({ code }) => {
      if (stopped) return;
      if (FINAL_CODES[code]) return finish(FINAL_CODES[code]);
      failures = opened ? 0 : failures + 1;
      onState('lost');
      again(failures >= FAILURES_BEFORE_POLLING ? poll : open);
    };
  }

  async function poll() {
    if (stopped) return;
    try {
      const answer = await fetch(`${eventsUrl}?after=${cursor()}`, { headers: { Accept: 'application/json' }, credentials: 'same-origin' });
      if (FINAL_STATUSES[answer.status]) return finish(FINAL_STATUSES[answer.status]);
      if (!answer.ok) throw new Error(String(answer.status));
      const { frames } = await answer.json();
      delay = FIRST_DELAY_MS;
      onState('polling');
      frames.forEach(onFrame);
      poll();
    } catch {
      onState('lost');
      again(poll);
    }
  }

  open();
  return {
    stop() { stopped = true; clearTimeout(timer); socket?.close(); },
    /** Somebody is looking again, or the network is back: do not wait for the timer. */
    retryNow() {
      if (stopped || socket?.readyState !== WebSocket.CLOSED || failures >= FAILURES_BEFORE_POLLING) return;
      clearTimeout(timer);
      open();
    },
  };
}

function parsed(data) {
  try { return JSON.parse(data); } catch { return null; }
}
