// One delegation, computed from its task.* frames. Pure.

const MAX_STEPS = 60; // on the card; the task's own page has all of them

const text = (value) => (typeof value === 'string' ? value : '');
const count = (value) => (Number.isFinite(value) ? value : null);

/** The task after one frame. Frames may come for a task whose beginning was never seen. */
export function reduceTask(known, frame) {
  const task = known ?? unseen(frame);
  switch (frame.type) {
    case 'task.created': return created(task, frame);
    case 'task.started': return started(task, frame);
    case 'task.step': return stepped(task, frame);
    case 'task.steered': return steered(task, frame);
    case 'task.steer_read': return steerRead(task, frame);
    default: return ended(task, frame);
  }
}

function unseen(frame) {
  return {
    id: frame.task, runId: frame.run_id, callId: '', thread: '', subagent: '', name: '', title: '', prompt: '', model: '',
    maxTurns: null, timeoutSeconds: null, maxTokens: null, status: 'pending', createdAt: frame.at, startedAt: null,
    endedAt: null, attempt: 0, worker: '', turn: 0, tokens: null, steps: [], droppedSteps: 0, lastAt: frame.at,
    longestPauseSeconds: 0, result: '', html: '', why: '', error: '', stopReason: '', cancelledBy: '', seconds: null, offer: null,
  };
}

function created(task, frame) {
  return {
    ...task, runId: frame.run_id, callId: text(frame.tool_call_id), thread: text(frame.thread),
    subagent: text(frame.subagent), name: text(frame.display_name) || text(frame.subagent), title: text(frame.title),
    prompt: text(frame.prompt), model: text(frame.model), maxTurns: count(frame.max_turns),
    timeoutSeconds: count(frame.timeout_seconds), maxTokens: count(frame.max_tokens), createdAt: frame.at,
  };
}

function started(task, frame) {
  return {
    ...task, status: 'running', attempt: count(frame.attempt) ?? 1, worker: text(frame.worker),
    startedAt: task.startedAt ?? frame.at, lastAt: frame.at,
  };
}

function stepped(task, frame) {
  const pause = (Date.parse(frame.at) - Date.parse(task.lastAt)) / 1000;
  const [steps, dropped] = trimmed(frame.kind === 'tool_result' ? answered(task.steps, frame) : [...task.steps, step(frame)]);
  return {
    ...task, steps, droppedSteps: task.droppedSteps + dropped, turn: Math.max(task.turn, count(frame.turn) ?? 0),
    tokens: count(frame.total_tokens) ?? task.tokens, lastAt: frame.at,
    longestPauseSeconds: Math.max(task.longestPauseSeconds, pause || 0),
  };
}

/** A message for the task. Its receipt names the turn that sees it; a receipt without one says that it came too late. */
function steered(task, frame) {
  const message = { key: frame.seq, kind: 'steer', id: text(frame.id), text: text(frame.text), by: text(frame.by), at: frame.at, turn: 0, read: false };
  const [steps, dropped] = trimmed([...task.steps, message]);
  return { ...task, steps, droppedSteps: task.droppedSteps + dropped };
}

function steerRead(task, frame) {
  const id = text(frame.id);
  const read = (item) => (item.kind === 'steer' && item.id === id ? { ...item, turn: count(frame.turn) ?? 0, read: true } : item);
  return { ...task, steps: task.steps.map(read) };
}

function step(frame) {
  return {
    key: frame.seq, call: text(frame.call), kind: text(frame.kind), turn: count(frame.turn) ?? 0, tool: text(frame.tool),
    text: text(frame.text), at: frame.at, failed: frame.failed === true, endedAt: null, answer: '',
  };
}

function answered(steps, frame) {
  const call = text(frame.call);
  const index = steps.findLastIndex((item) => item.kind === 'tool' && item.endedAt === null && item.call === call);
  if (index < 0) return [...steps, { ...step(frame), kind: 'tool', endedAt: frame.at, answer: text(frame.text), text: '' }];
  const open = steps[index];
  const closed = { ...open, endedAt: frame.at, failed: frame.failed === true, answer: text(frame.text) };
  return steps.with(index, closed);
}

function trimmed(steps) {
  const excess = Math.max(0, steps.length - MAX_STEPS);
  return [excess ? steps.slice(excess) : steps, excess];
}

function ended(task, frame) {
  return {
    ...task, status: text(frame.status) || 'error', stopReason: text(frame.stop_reason), error: text(frame.error),
    why: text(frame.why), result: text(frame.result), html: text(frame.html), turn: count(frame.model_calls) ?? task.turn,
    tokens: count(frame.total_tokens) ?? task.tokens, seconds: count(frame.seconds), endedAt: frame.at,
    cancelledBy: text(frame.cancelled_by), offer: frame.offer && typeof frame.offer === 'object' ? frame.offer : null,
    steps: task.steps.map((item) => (item.kind === 'tool' && item.endedAt === null ? { ...item, endedAt: frame.at, open: true } : item)),
  };
}

// --- Presentation that only arithmetic decides ------------------------------------------------------------------

const QUIET_SECONDS = 60;

/** What the card says: a key of the page's words, the badge's kind, and since when it has been quiet. */
export function taskFace(task, now) {
  switch (task.status) {
    case 'pending': return { word: 'queued', kind: 'idle' };
    case 'running': return runningFace(task, now);
    case 'success': return task.stopReason ? { word: 'cut_short', kind: 'warn' } : { word: 'done', kind: 'ok' };
    case 'timeout': return { word: 'timed_out', kind: 'bad' };
    case 'interrupted': return { word: 'interrupted', kind: 'cut' };
    case 'cancelled': return { word: task.cancelledBy && task.cancelledBy !== 'parent' ? 'cancelled_by' : 'cancelled', kind: 'cut' };
    case 'error': return { word: 'failed', kind: 'bad' };
    default: return { word: 'unknown', kind: 'idle' };
  }
}

function runningFace(task, now) {
  const quietSeconds = (now - Date.parse(task.lastAt)) / 1000;
  const patience = Math.max(QUIET_SECONDS, 3 * task.longestPauseSeconds);
  return quietSeconds > patience ? { word: 'quiet', kind: 'warn', quietSeconds } : { word: 'running', kind: 'run' };
}

/** Seconds of execution so far, or of waiting while it has not begun. */
export function elapsedSeconds(task, now) {
  if (task.seconds !== null) return task.seconds;
  const from = Date.parse(task.startedAt ?? task.createdAt);
  const until = task.endedAt ? Date.parse(task.endedAt) : now;
  return Math.max(0, (until - from) / 1000);
}

/** The tool call a running task is in, or its last words. */
export function currentStep(task) {
  const own = task.steps.filter((item) => item.kind !== 'steer');
  return own.findLast((item) => item.kind === 'tool' && item.endedAt === null) ?? own.at(-1) ?? null;
}
