import assert from 'node:assert/strict';
import { test } from 'node:test';

import { currentStep, elapsedSeconds, reduceTask, taskFace } from '../../runs/static/runs/task-state.js';
import { Log } from './frames.js';

const build = (log, frames) => frames.reduce(reduceTask, undefined);
const at = (log, seconds) => Date.parse(log.at(seconds));

test('a tool step is running until its result comes, and the result finds its call', () => {
  const log = new Log();
  const frames = [log.task('t', 'c'), log.frame('task.started', { task: 't', attempt: 1, worker: 'w' }),
    log.frame('task.step', { task: 't', turn: 1, kind: 'tool', call: 'a', tool: 'grep', text: 'x' }),
    log.frame('task.step', { task: 't', turn: 1, kind: 'tool', call: 'b', tool: 'bash', text: 'ls' }),
    log.frame('task.step', { task: 't', turn: 1, kind: 'tool_result', call: 'a', tool: 'grep', text: 'bad pattern', failed: true })];
  const task = build(log, frames);
  assert.deepEqual(task.steps.map((step) => [step.tool, step.endedAt !== null, step.failed]), [['grep', true, true], ['bash', false, false]]);
  assert.equal(currentStep(task).tool, 'bash');
  assert.equal(task.steps[0].answer, 'bad pattern');
});

test('a card holds the newest steps and counts the rest', () => {
  const log = new Log();
  const steps = Array.from({ length: 75 }, (_, n) => log.frame('task.step', { task: 't', turn: n, kind: 'text', text: String(n) }));
  const task = build(log, [log.task('t', 'c'), ...steps]);
  assert.deepEqual([task.steps.length, task.droppedSteps, task.steps.at(-1).text], [60, 15, '74']);
});

test('every status has its shape and word', () => {
  const log = new Log();
  const base = build(log, [log.task('t', 'c')]);
  const face = (change) => { const { word, kind } = taskFace({ ...base, ...change }, at(log, 5)); return [word, kind]; };
  assert.deepEqual(face({}), ['queued', 'idle']);
  assert.deepEqual(face({ status: 'running' }), ['running', 'run']);
  assert.deepEqual(face({ status: 'success' }), ['done', 'ok']);
  assert.deepEqual(face({ status: 'success', stopReason: 'turn_capped' }), ['cut_short', 'warn']);
  assert.deepEqual(face({ status: 'error' }), ['failed', 'bad']);
  assert.deepEqual(face({ status: 'timeout' }), ['timed_out', 'bad']);
  assert.deepEqual(face({ status: 'interrupted' }), ['interrupted', 'cut']);
  assert.deepEqual(face({ status: 'cancelled', cancelledBy: 'lin' }), ['cancelled_by', 'cut']);
  assert.deepEqual(face({ status: 'cancelled', cancelledBy: 'parent' }), ['cancelled', 'cut']);
  assert.deepEqual(face({ status: 'something new' }), ['unknown', 'idle']);
});

test('a task is quiet after a minute without a step, or after three times its longest pause', () => {
  const log = new Log();
  const task = build(log, [log.task('t', 'c'), log.frame('task.started', { task: 't', attempt: 1 })]);
  assert.equal(taskFace(task, at(log, 2 + 60)).word, 'running');
  assert.deepEqual(taskFace(task, at(log, 2 + 130)), { word: 'quiet', kind: 'warn', quietSeconds: 130 });
  const patient = { ...task, longestPauseSeconds: 100 };
  assert.equal(taskFace(patient, at(log, 2 + 130)).word, 'running');
});

test('elapsed counts waiting, then execution, and in the end what the server measured', () => {
  const log = new Log();
  const queued = build(log, [log.task('t', 'c')]);
  assert.equal(elapsedSeconds(queued, at(log, 11)), 10);
  const running = reduceTask(queued, log.frame('task.started', { task: 't', attempt: 1 }));
  assert.equal(elapsedSeconds(running, at(log, 11)), 9);
  assert.equal(elapsedSeconds(reduceTask(running, log.frame('task.ended', { task: 't', status: 'success', seconds: 7.5 })), at(log, 99)), 7.5);
});

test('a second attempt keeps the time of the first start', () => {
  const log = new Log();
  const task = build(log, [log.task('t', 'c'), log.frame('task.started', { task: 't', attempt: 1, worker: 'a' }), log.frame('task.started', { task: 't', attempt: 2, worker: 'b' })]);
  assert.deepEqual([task.startedAt, task.attempt, task.worker], [log.at(2), 2, 'b']);
});

test('tokens that are not reported stay what they were', () => {
  const log = new Log();
  const task = build(log, [log.task('t', 'c'), log.frame('task.step', { task: 't', kind: 'text', turn: 1, total_tokens: 5 }), log.frame('task.ended', { task: 't', status: 'error' })]);
  assert.equal(task.tokens, 5);
});
