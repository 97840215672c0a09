// What the page knows, computed from the log alone: reduce(state, frame) → state. No DOM, no clock, no network.
// An entry that a frame does not touch keeps its identity, so that whoever paints can skip it.

import { reduceTask } from './task-state.js';

export const ENDED = new Set(['success', 'error', 'timeout', 'interrupted', 'cancelled']);

export function emptyState() {
  return {
    seq: 0, // the newest seen: where to resume
    applied: 0, // the newest that is no delta: older ones are repetitions
    order: [], // keys of what the conversation shows, oldest first: "message:<id>", "note:<key>", "tasks:<run>"
    messages: {}, // by id
    said: {}, // by seq: every finished message and tool result, those that a rewind has left too
    notes: {}, // by key: one line between messages
    results: {}, // tool call id → { text, failed, at }
    callOwner: {}, // tool call id → id of the message that made it
    tasks: {}, // by the child run's id
    taskOfCall: {}, // tool call id → task id
    strayTasks: {}, // run id → task ids whose call was never seen
    runs: {}, // by id
    runOrder: [],
  };
}

const handlers = {
  'message': onMessage,
  'delta': onDelta,
  'run.queued': onRunQueued,
  'run.started': onRunStarted,
  'run.noted': onRunNoted,
  'run.waiting': onRunWaiting,
  'run.steered': onRunSteered,
  'run.steer_read': onRunSteerRead,
  'run.ended': onRunEnded,
  'state.updated': onStateUpdated,
  'thread.rewound': onRewound,
  'graph.part': onGraphPart,
  'task.created': onTask,
  'task.started': onTask,
  'task.step': onTask,
  'task.steered': onTask,
  'task.steer_read': onTask,
  'task.ended': onTask,
};

/** The event types this page knows; a test compares them with the server's. */
export const KNOWN_TYPES = Object.keys(handlers);

/** The state after one frame. A frame of an unknown type or an odd shape only moves the cursor. */
export function reduce(state, frame) {
  if (frame === null || typeof frame !== 'object') return state;
  const seq = Number.isSafeInteger(frame.seq) ? frame.seq : 0;
  // A delta may be shown again after a reconnect; everything else is applied once.
  if (frame.type !== 'delta' && seq !== 0 && seq <= state.applied) return state;
  const handler = Object.hasOwn(handlers, frame.type) ? handlers[frame.type] : null;
  const next = handler ? handler(state, frame) : state;
  const applied = frame.type === 'delta' ? next.applied : Math.max(next.applied, seq);
  return { ...next, seq: Math.max(next.seq, seq), applied };
}

const text = (value) => (typeof value === 'string' ? value : '');

function appended(state, key) {
  return state.order.includes(key) ? state.order : [...state.order, key];
}

function onMessage(state, frame) {
  const role = text(frame.role);
  if (role === 'tool') return onToolResult(state, frame);
  const id = text(frame.id) || `seq-${frame.seq}`;
  const calls = Array.isArray(frame.calls) ? frame.calls.filter((call) => call && typeof call === 'object') : [];
  const message = {
    id, role, seq: frame.seq, runId: frame.run_id, at: frame.at, kind: text(frame.kind), text: text(frame.text), html: text(frame.html), calls, streaming: false,
  };
  const callOwner = calls.length ? { ...state.callOwner } : state.callOwner;
  for (const call of calls) callOwner[call.id] = id;
  return {
    ...state,
    callOwner,
    said: { ...state.said, [frame.seq]: message },
    messages: { ...state.messages, [id]: message },
    order: saysNothing(message) ? state.order : appended(state, `message:${id}`),
  };
}

/** A summary or instruction for the model, or a reply without a word and without a call, which is asked for again. */
function saysNothing({ role, html, calls }) {
  return role === 'system' || (role === 'ai' && html === '' && calls.length === 0);
}

function onToolResult(state, frame) {
  const call = text(frame.call);
  const result = { text: text(frame.text), failed: frame.failed === true, tool: text(frame.tool), at: frame.at };
  const said = { ...state.said, [frame.seq]: { role: 'tool', call, result } };
  return touchOwner({ ...state, said, results: { ...state.results, [call]: result } }, call);
}

/** A message shows its calls' tasks and results, so it changes with them. */
function touchOwner(state, callId) {
  const owner = state.messages[state.callOwner[callId]];
  return owner ? { ...state, messages: { ...state.messages, [owner.id]: { ...owner } } } : state;
}

function onDelta(state, frame) {
  const id = text(frame.id);
  const known = state.messages[id];
  if (!id || (known && !known.streaming)) return state; // the finished message came first
  const first = Number.isInteger(frame.first_block) ? frame.first_block : 0;
  const settled = Array.isArray(frame.blocks) ? frame.blocks : [];
  const blocks = [...(known?.blocks ?? []).slice(0, first), ...settled];
  const message = {
    id, role: 'ai', runId: frame.run_id, at: known?.at ?? frame.at, text: '', html: '', calls: [],
    streaming: true, blocks, open: text(frame.open_html),
  };
  return { ...state, messages: { ...state.messages, [id]: message }, order: appended(state, `message:${id}`) };
}

function withRun(state, id, change) {
  const known = state.runs[id];
  const run = { id, status: 'pending', waitingFor: '', attempt: 0, ...known, ...change };
  return {
    ...state,
    runs: { ...state.runs, [id]: run },
    runOrder: known ? state.runOrder : [...state.runOrder, id],
  };
}

function onRunQueued(state, frame) {
  return withRun(state, frame.run_id, {
    status: 'pending', behind: text(frame.behind), text: text(frame.text), agent: text(frame.agent), queuedAt: frame.at,
  });
}

function onRunStarted(state, frame) {
  const attempt = Number.isInteger(frame.attempt) ? frame.attempt : 1;
  const run = state.runs[frame.run_id];
  let next = withRun(state, frame.run_id, {
    status: 'running', waitingFor: '', attempt, worker: text(frame.worker), startedAt: run?.startedAt ?? frame.at,
  });
  if (attempt > 1) {
    next = withNote(dropUnfinished(next, frame.run_id), `continued:${frame.run_id}:${attempt}`, {
      kind: 'continued', runId: frame.run_id, attempt, at: frame.at,
    });
  }
  return next;
}

/** The reply that a lost worker was writing will be written again under another id. */
function dropUnfinished(state, runId) {
  const lost = Object.values(state.messages).filter((message) => message.streaming && message.runId === runId);
  if (lost.length === 0) return state;
  const messages = { ...state.messages };
  for (const message of lost) delete messages[message.id];
  const gone = new Set(lost.map((message) => `message:${message.id}`));
  return { ...state, messages, order: state.order.filter((key) => !gone.has(key)) };
}

function onRunNoted(state, frame) {
  const lines = Array.isArray(frame.lines) ? frame.lines.map(text).filter(Boolean) : [];
  return lines.length ? withNote(state, `noted:${frame.run_id}`, { kind: 'noted', runId: frame.run_id, lines, at: frame.at }) : state;
}

function onRunWaiting(state, frame) {
  return withRun(state, frame.run_id, { waitingFor: text(frame.waiting_for) });
}

/** On a task's own page: the message waits here until the transcript has it, with the receipt that says since when. */
function onRunSteered(state, frame) {
  return withNote(state, `steer:${text(frame.id)}`, {
    kind: 'steered', runId: frame.run_id, text: text(frame.text), by: text(frame.by), at: frame.at, turn: 0, read: false,
  });
}

function onRunSteerRead(state, frame) {
  const key = `steer:${text(frame.id)}`;
  const known = state.notes[key];
  if (!known) return state;
  const read = { ...known, read: true, turn: Number.isInteger(frame.turn) ? frame.turn : 0 };
  return { ...state, notes: { ...state.notes, [key]: read } };
}

function onRunEnded(state, frame) {
  const before = state.runs[frame.run_id];
  const next = withRun(state, frame.run_id, {
    status: text(frame.status), waitingFor: '', endedAt: frame.at, stopReason: text(frame.stop_reason),
    errorCode: text(frame.error_code), error: text(frame.error), why: text(frame.why),
    offer: frame.offer && typeof frame.offer === 'object' ? frame.offer : null, cancelledBy: text(frame.cancelled_by), turns: frame.model_calls ?? 0, tokens: frame.total_tokens ?? null,
  });
  return withEnding(settleUnfinished(next, frame.run_id), frame, before);
}

/** Replies stay as far as they came, and calls nobody answered are no longer running. */
function settleUnfinished(state, runId) {
  const messages = { ...state.messages };
  for (const message of Object.values(messages)) {
    if (message.runId !== runId) continue;
    if (message.streaming) messages[message.id] = { ...message, streaming: false, partial: true };
    else if (message.calls.some((call) => !state.results[call.id])) messages[message.id] = { ...message };
  }
  return { ...state, messages };
}

function withEnding(state, frame, before) {
  const run = state.runs[frame.run_id];
  if (run.status === 'success' && !run.stopReason) return state;
  const neverStarted = !before?.startedAt && before?.text;
  return withNote(state, `ended:${frame.run_id}`, {
    kind: neverStarted ? 'removed' : 'ended', runId: frame.run_id, run, at: frame.at,
  });
}

/** Values for programs; a conversation shows nothing of them. */
function onStateUpdated(state) {
  return state;
}

/** For who streams the run: what the graph says comes as messages too. */
function onGraphPart(state) {
  return state;
}

/** The thread goes on from an earlier step: what was left is no longer shown, what is taken up again is. */
function onRewound(state, frame) {
  const line = Array.isArray(frame.line) ? frame.line.filter((ends) => Array.isArray(ends)) : [];
  const stays = (seq) => line.some(([first, last]) => first <= seq && seq <= last);
  const said = Object.keys(state.said).map(Number).filter(stays).sort((a, b) => a - b).map((seq) => state.said[seq]);
  const messages = {}, results = {}, again = [];
  for (const one of said) {
    if (one.role === 'tool') results[one.call] = one.result;
    else messages[one.id] = { ...one };
  }
  const runs = new Set(Object.values(messages).map((message) => message.runId));
  const order = state.order.filter((key) => {
    const id = key.slice(key.indexOf(':') + 1);
    if (key.startsWith('message:')) return Object.hasOwn(messages, id);
    if (key.startsWith('note:rewound:')) return stays(Number(id.slice('rewound:'.length)) + 1);
    return runs.has(key.startsWith('note:') ? state.notes[id]?.runId : id);
  });
  for (const message of Object.values(messages)) {
    if (!saysNothing(message) && !order.includes(`message:${message.id}`)) again.push(`message:${message.id}`);
  }
  const next = { ...state, messages, results, order: [...order, ...again] };
  return withNote(frame.forget === true ? withoutRun(next, frame.run_id) : next, `rewound:${frame.seq}`, {
    kind: 'rewound', runId: frame.run_id, at: frame.at,
  });
}

/** A run that was rolled back does not exist any more, nor do its tasks. */
function withoutRun(state, id) {
  const { [id]: gone, ...runs } = state.runs;
  const tasks = Object.fromEntries(Object.entries(state.tasks).filter(([, task]) => task.runId !== id));
  return { ...state, runs, tasks, runOrder: state.runOrder.filter((runId) => runId !== id) };
}

function withNote(state, key, note) {
  return { ...state, notes: { ...state.notes, [key]: note }, order: appended(state, `note:${key}`) };
}

function onTask(state, frame) {
  const id = text(frame.task);
  if (!id) return state;
  const task = reduceTask(state.tasks[id], frame);
  let next = { ...state, tasks: { ...state.tasks, [id]: task } };
  if (frame.type === 'task.created') next = placed(next, task);
  return touchOwner(next, task.callId);
}

function placed(state, task) {
  const next = { ...state, taskOfCall: { ...state.taskOfCall, [task.callId]: task.id } };
  if (state.callOwner[task.callId]) return next;
  const stray = [...(state.strayTasks[task.runId] ?? []).filter((id) => id !== task.id), task.id];
  return {
    ...next,
    strayTasks: { ...state.strayTasks, [task.runId]: stray },
    order: appended(state, `tasks:${task.runId}`),
  };
}

// --- Questions -------------------------------------------------------------------------------------------------

/** The lead's run that is executing now, if any. */
export function activeRun(state) {
  return state.runOrder.map((id) => state.runs[id]).findLast((run) => run.status === 'running')
    ?? state.runOrder.map((id) => state.runs[id]).find((run) => run.status === 'pending' && !run.behind) ?? null;
}

/** Messages that wait behind the running answer, first in line first. */
export function queuedRuns(state) {
  return state.runOrder.map((id) => state.runs[id]).filter((run) => run.status === 'pending' && run.behind && run.text);
}

export function activeTasks(state) {
  return Object.values(state.tasks).filter((task) => !ENDED.has(task.status));
}

export function endedTasks(state) {
  return Object.values(state.tasks).filter((task) => ENDED.has(task.status));
}

/** Tokens of the whole conversation: the leads' runs and the tasks, each counted once. null: none was reported. */
export function totalTokens(state) {
  const counts = [...Object.values(state.runs), ...Object.values(state.tasks)].map((item) => item.tokens);
  const reported = counts.filter((count) => Number.isFinite(count));
  return reported.length ? reported.reduce((sum, count) => sum + count, 0) : null;
}

/** Tasks of the newest run: what counts towards the limit of delegations per run. */
export function tasksOfLatestRun(state) {
  const latest = activeRun(state)?.id ?? state.runOrder.at(-1);
  return Object.values(state.tasks).filter((task) => task.runId === latest);
}
