import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  activeRun, activeTasks, emptyState, endedTasks, queuedRuns, reduce, tasksOfLatestRun, totalTokens,
} from '../../runs/static/runs/state.js';
import { Log } from './frames.js';

const after = (frames, from = emptyState()) => frames.reduce(reduce, from);

test('the cursor is the newest seq, whatever the frame was', () => {
  const log = new Log();
  assert.equal(after([log.frame('message', { id: 'a', role: 'human', text: 'x' }), log.frame('made.up', { x: 1 })]).seq, 2);
});

test('an odd frame breaks nothing', () => {
  const odd = [null, 5, 'x', [], {}, { type: 'message' }, { seq: 'x', type: 'task.step' }, { seq: 3, type: 'delta', blocks: 7 }, { seq: 4, type: 'toString' },
    { seq: 5, type: 'message', calls: [null, 3] }, { seq: 6, type: 'run.ended' }, { seq: 7, type: 'task.ended', task: 5 }, { seq: 8, type: 'task.step', task: 't' }];
  assert.equal(after(odd).seq, 8);
});

test('a frame that comes twice is applied once', () => {
  const log = new Log();
  const frames = [log.task('t', 'c'), log.frame('task.step', { task: 't', turn: 1, kind: 'text', text: 'hm' })];
  assert.equal(after([...frames, ...frames]).tasks.t.steps.length, 1);
});

test('pieces of a reply become its settled blocks and the open one, and the message replaces them', () => {
  const log = new Log();
  const first = log.frame('delta', { id: 'm', first_block: 0, blocks: ['<p>1</p>'], open_html: '<p>2</p>' });
  const second = log.frame('delta', { id: 'm', first_block: 1, blocks: ['<p>2</p>'], open_html: '<p>3</p>' });
  const writing = after([first, second]).messages.m;
  assert.deepEqual([writing.blocks, writing.open, writing.streaming], [['<p>1</p>', '<p>2</p>'], '<p>3</p>', true]);
  const state = after([first, second, log.answer('m')]);
  assert.deepEqual([state.messages.m.html, state.messages.m.streaming, state.order], ['<p>m</p>', false, ['message:m']]);
});

test('a reply without a word and what only the model reads are no part of the conversation', () => {
  const log = new Log();
  const said = [log.answer('empty', [], ''), log.frame('message', { id: 's', role: 'system', text: 'summary' }), log.answer('m')];
  assert.deepEqual(after(said).order, ['message:m']);
});

test('a reply that is written anew takes the place of what had been shown of it', () => {
  const log = new Log();
  const first = log.frame('delta', { id: 'm', first_block: 0, blocks: ['<p>1</p>'], open_html: '<p>2</p>' });
  const anew = log.frame('delta', { id: 'm', first_block: 0, blocks: [], open_html: '<p>other</p>' });
  const writing = after([first, anew]).messages.m;
  assert.deepEqual([writing.blocks, writing.open], [[], '<p>other</p>']);
});

test('after a drop the whole reply so far takes the place of what was shown', () => {
  const log = new Log();
  const before = after([log.frame('delta', { id: 'm', first_block: 0, blocks: ['<p>1</p>'], open_html: '<p>old</p>' })]);
  const again = { ...log.frame('delta', { id: 'm', first_block: 0, blocks: ['<p>1</p>', '<p>2</p>'], open_html: '<p>new</p>' }), seq: 1 };
  assert.deepEqual(reduce(before, again).messages.m.blocks, ['<p>1</p>', '<p>2</p>']);
  assert.equal(reduce(before, again).messages.m.open, '<p>new</p>');
});

test('after a rewind only what is on the line is shown, and what was left can come back', () => {
  const log = new Log();
  const say = (id, fields = {}) => log.frame('message', { id, role: 'human', text: id, ...fields });
  const frames = [say('a'), log.answer('b', ['c1']), log.frame('message', { id: 'r', role: 'tool', call: 'c1', text: 'found' }), say('d')];
  const forked = after([...frames, log.frame('thread.rewound', { to: 2, line: [[1, 2]] }), say('e')]);
  assert.deepEqual(forked.order, ['message:a', 'message:b', 'note:rewound:5', 'message:e']);
  assert.equal(forked.results.c1, undefined);
  const back = after([log.frame('thread.rewound', { to: 4, line: [[1, 4]] })], forked);
  assert.deepEqual([back.order, back.results.c1.text], [['message:a', 'message:b', 'message:d', 'note:rewound:7'], 'found']);
});

test('a message that was put in the place of another leaves again when the thread goes back to before it', () => {
  const log = new Log();
  const say = (text) => log.frame('message', { id: 'a', role: 'human', text });
  const edited = after([say('old'), log.frame('thread.rewound', { to: 0, line: [] }), say('new')]);
  assert.equal(edited.messages.a.text, 'new');
  assert.equal(after([log.frame('thread.rewound', { to: 1, line: [[1, 1]] })], edited).messages.a.text, 'old');
});

test('a run that was rolled back is gone with its tasks and its ending', () => {
  const log = new Log();
  const of = (run, frame) => ({ ...frame, run_id: run });
  const frames = [
    of('one', log.frame('message', { id: 'a', role: 'human', text: 'a' })), of('one', log.frame('run.ended', { status: 'cancelled' })),
    of('two', log.frame('run.queued', {})), of('two', log.frame('message', { id: 'b', role: 'human', text: 'b' })),
    of('two', log.task('t', 'c')), of('two', log.frame('run.ended', { status: 'interrupted' })),
    of('two', log.frame('thread.rewound', { to: 3, line: [[1, 3]], forget: true })),
  ];
  const state = after(frames);
  assert.deepEqual(state.order, ['message:a', 'note:ended:one', 'note:rewound:7']);
  assert.deepEqual([Object.keys(state.runs), state.runOrder, Object.keys(state.tasks)], [['one'], ['one'], []]);
});

test('a piece that comes after its finished message changes nothing', () => {
  const log = new Log();
  const state = after([log.answer('m'), log.frame('delta', { id: 'm', first_block: 0, blocks: [], open_html: '<p>late</p>' })]);
  assert.equal(state.messages.m.html, '<p>m</p>');
});

test('what a lost worker was writing goes when another one continues', () => {
  const log = new Log();
  const state = after([
    log.frame('run.started', { attempt: 1, worker: 'a' }),
    log.frame('delta', { id: 'lost', first_block: 0, blocks: [], open_html: '<p>x</p>' }),
    log.frame('run.started', { attempt: 2, worker: 'b' }),
  ]);
  assert.deepEqual(state.order, ['note:continued:run-1:2']);
  assert.equal(state.messages.lost, undefined);
});

test('a reply cut off by the end of its run stays as far as it came', () => {
  const log = new Log();
  const state = after([
    log.frame('delta', { id: 'm', first_block: 0, blocks: [], open_html: '<p>half</p>' }),
    log.frame('run.ended', { status: 'cancelled', why: 'Cancelled by lin.' }),
  ]);
  assert.deepEqual([state.messages.m.partial, state.messages.m.streaming, state.messages.m.open], [true, false, '<p>half</p>']);
  assert.deepEqual(state.order, ['message:m', 'note:ended:run-1']);
});

test('a run that simply finished says nothing more, every other ending does', () => {
  const ending = (fields) => after([new Log().frame('run.ended', fields)]).order.length;
  assert.equal(ending({ status: 'success' }), 0);
  for (const status of ['error', 'timeout', 'cancelled', 'interrupted']) assert.equal(ending({ status }), 1);
  assert.equal(ending({ status: 'success', stop_reason: 'turn_capped' }), 1);
});

test('a message behind a running answer waits, goes on top when its turn comes, or is taken out', () => {
  const log = new Log();
  const waiting = [
    log.frame('run.queued', { agent: 'lead_agent' }), log.frame('run.started', { attempt: 1 }),
    log.frame('run.queued', { agent: 'lead_agent', behind: 'run-1', text: 'And then?' }, 'run-2'),
  ];
  assert.deepEqual(queuedRuns(after(waiting)).map((run) => run.text), ['And then?']);
  assert.equal(activeRun(after(waiting)).id, 'run-1');
  const removed = after([...waiting, log.frame('run.ended', { status: 'cancelled' }, 'run-2')]);
  assert.deepEqual([queuedRuns(removed).length, removed.notes['ended:run-2'].kind], [0, 'removed']);
  const started = after([...waiting, log.frame('run.ended', { status: 'success' }), log.frame('run.started', { attempt: 1 }, 'run-2')]);
  assert.deepEqual([queuedRuns(started).length, activeRun(started).id], [0, 'run-2']);
});

test('a run nobody has claimed yet is the active one', () => {
  assert.equal(activeRun(after([new Log().frame('run.queued', { agent: 'lead_agent' })])).status, 'pending');
  assert.equal(activeRun(emptyState()), null);
});

test('a task belongs to the message whose call made it', () => {
  const log = new Log();
  const state = after([log.answer('m', ['c1', 'c2']), log.task('t1', 'c1'), log.task('t2', 'c2')]);
  assert.deepEqual([state.taskOfCall, state.order], [{ c1: 't1', c2: 't2' }, ['message:m']]);
});

test('a task whose call was never seen is shown on its own', () => {
  const log = new Log();
  const state = after([log.task('t1', 'c1'), log.task('t2', 'c2')]);
  assert.deepEqual([state.order, state.strayTasks], [['tasks:run-1'], { 'run-1': ['t1', 't2'] }]);
});

test('a message changes its identity when its task or its result does, and no other message does', () => {
  const log = new Log();
  const before = after([log.answer('m1', ['c1']), log.answer('m2', ['c2']), log.task('t', 'c1')]);
  const step = reduce(before, log.frame('task.step', { task: 't', turn: 1, kind: 'text', text: 'x' }));
  assert.ok(step.messages.m1 !== before.messages.m1);
  assert.ok(step.messages.m2 === before.messages.m2);
  const result = reduce(step, log.frame('message', { id: 'r', role: 'tool', call: 'c2', tool: 'task', text: 'no', failed: true }));
  assert.ok(result.messages.m2 !== step.messages.m2);
  assert.deepEqual([result.results.c2.failed, result.order.length], [true, 2]);
});

test('tokens are the sum of what was reported, and unknown is not zero', () => {
  const log = new Log();
  const frames = [log.task('t', 'c'), log.frame('task.ended', { task: 't', status: 'success' })];
  assert.equal(totalTokens(after(frames)), null);
  const counted = [...frames, log.task('u', 'd'), log.frame('task.step', { task: 'u', kind: 'text', turn: 1, total_tokens: 40 }),
    log.frame('run.ended', { status: 'success', total_tokens: 2 })];
  assert.equal(totalTokens(after(counted)), 42);
});

test('tasks are active until they ended, and count for the run that made them', () => {
  const log = new Log();
  const state = after([
    log.frame('run.started', { attempt: 1 }), log.task('t', 'c'), log.frame('task.ended', { task: 't', status: 'error' }),
    log.frame('run.ended', { status: 'success' }), log.frame('run.started', { attempt: 1 }, 'run-2'), log.frame('task.created', { task: 'u', tool_call_id: 'd' }, 'run-2'),
  ]);
  assert.deepEqual([activeTasks(state).map((task) => task.id), endedTasks(state).map((task) => task.id)], [['u'], ['t']]);
  assert.deepEqual(tasksOfLatestRun(state).map((task) => task.id), ['u']);
});

test('reducing never changes the state it was given', () => {
  const log = new Log();
  const before = after([log.answer('m', ['c']), log.task('t', 'c')]);
  const copy = JSON.stringify(before);
  after([log.frame('task.started', { task: 't', attempt: 1 }), log.frame('task.step', { task: 't', kind: 'tool', turn: 1, call: 'x' }),
    log.frame('delta', { id: 'n', first_block: 0, blocks: [], open_html: 'x' }), log.frame('run.ended', { status: 'error' })], before);
  assert.equal(JSON.stringify(before), copy);
});

test('what a run notes of itself stands in the conversation, and an odd note does not', () => {
  const log = new Log();
  const state = after([log.frame('run.noted', { lines: ['Delegation is off.', 5, ''] }), log.frame('run.noted', { lines: 'x' })]);
  assert.deepEqual(Object.values(state.notes).map((note) => [note.kind, note.lines]), [['noted', ['Delegation is off.']]]);
  assert.equal(state.order.length, 1);
});
