// What runs, at a glance: the strip over the composer, and the column with sums, timeline and tasks.

import { arrange, el, setAttribute, setText } from './dom.js';
import { clock, tokens } from './format.js';
import { ENDED, activeRun, activeTasks, endedTasks, queuedRuns, tasksOfLatestRun, totalTokens } from './state.js';
import { many, t } from './strings.js';
import { currentStep, elapsedSeconds, taskFace } from './task-state.js';
import { faceText, tile } from './task-card.js';

const WAITING = { children: 'waiting_children', slot: 'waiting_slot', person: 'waiting_person',
  model: 'waiting_model', retry: 'waiting_retry' };

/** What the lead itself is doing, in words. */
export function runWords(run) {
  if (run.status === 'pending') return t('waiting_worker');
  return t(WAITING[run.waitingFor] ?? 'working');
}

export class Strip {
  constructor(root) {
    this.root = root;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
  }

  paint(state, now) {
    const run = activeRun(state);
    const tasks = activeTasks(state);
    this.root.hidden = run === null && tasks.length === 0;
    if (this.root.hidden) return;
    const queued = queuedRuns(state).length;
    const running = tasks.filter((task) => task.status === 'running').length;
    setText(this.part('what'), running ? many('tasks_running', running) : runWords(run ?? tasks[0]));
    setText(this.part('waiting-tasks'), running < tasks.length ? t('n_queued', { n: tasks.length - running }) : '');
    setText(this.part('queued'), queued ? many('messages_queued', queued) : '');
    const longest = Math.max(0, ...tasks.map((task) => elapsedSeconds(task, now)));
    setText(this.part('longest'), tasks.length ? t('longest', { time: clock(longest) }) : clock(sinceStart(run, now)));
    const used = totalTokens(state);
    setText(this.part('tokens'), used === null ? '' : t('tokens', { n: tokens(used) }));
    this.part('stop-answer').hidden = run === null;
  }
}

function sinceStart(run, now) {
  return run ? (now - Date.parse(run.startedAt ?? run.queuedAt)) / 1000 : 0;
}

export class Dock {
  constructor(root, { maxTotal, maxConcurrent, speakerOf, onChoose }) {
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    Object.assign(this, { maxTotal, maxConcurrent, speakerOf, onChoose });
    this.rows = new Map();
    this.lanes = new Map();
  }

  paint(state, now) {
    const active = activeTasks(state);
    const ended = endedTasks(state).sort((a, b) => Date.parse(b.endedAt) - Date.parse(a.endedAt));
    setText(this.part('tokens'), tokens(totalTokens(state)));
    setText(this.part('used'), t('used_of', { n: tasksOfLatestRun(state).length, limit: this.maxTotal || '–' }));
    setText(this.part('at-once'), t('used_of', { n: active.filter((task) => task.status === 'running').length, limit: this.maxConcurrent || '–' }));
    arrange(this.part('active'), active.length ? active.map((task) => this.row(task, now)) : [this.nothing('no_active')]);
    arrange(this.part('ended'), ended.length ? ended.map((task) => this.row(task, now)) : [this.nothing('no_ended')]);
    this.paintTimeline(state, now);
  }

  nothing(key) {
    if (!this.rows.has(key)) this.rows.set(key, el('p', { class: 'muted small' }, t(key)));
    return this.rows.get(key);
  }

  row(task, now) {
    if (!this.rows.has(task.id)) this.rows.set(task.id, this.newRow(task));
    const row = this.rows.get(task.id);
    const [, title, badge, line] = row.children;
    const face = taskFace(task, now);
    setText(title, task.title || task.name);
    setAttribute(badge, 'class', `st num ${face.kind}`);
    setText(badge, clock(elapsedSeconds(task, now)));
    setAttribute(badge, 'title', faceText(face, task));
    setText(line, [faceText(face, task), ...rowFacts(task)].filter(Boolean).join(' · '));
    return row;
  }

  newRow(task) {
    return el('button', { class: 'mini', type: 'button', 'data-task': task.id, onclick: () => this.onChoose(task.id) },
      tile(task.subagent || task.name), el('b'), el('span'), el('span', { class: 'n' }));
  }

  paintTimeline(state, now) {
    const run = activeRun(state) ?? state.runs[state.runOrder.at(-1)];
    const section = this.part('timeline');
    section.hidden = !run?.startedAt;
    if (section.hidden) return;
    const tasks = tasksOfLatestRun(state);
    const ends = [run, ...tasks].map((item) => (item.endedAt ? Date.parse(item.endedAt) : now));
    const scale = { from: Date.parse(run.startedAt), until: Math.max(...ends) };
    const lanes = [this.lane(run.id, this.speakerOf(run), run, scale, now), ...tasks.map((task) => this.lane(task.id, task.subagent || task.name, task, scale, now))];
    arrange(this.part('lanes'), lanes);
    const [zero, middle, full] = this.part('axis').children;
    const length = (scale.until - scale.from) / 1000;
    setText(zero, clock(0));
    setText(middle, clock(length / 2));
    setText(full, clock(length));
  }

  lane(id, name, item, scale, now) {
    if (!this.lanes.has(id)) {
      this.lanes.set(id, el('div', { class: 'ln' }, tile(name), el('div', { class: 'tr' }, el('i', { class: 'q' }), el('i'))));
    }
    const lane = this.lanes.get(id);
    const [waited, ran] = lane.lastElementChild.children;
    const began = item.startedAt ? Date.parse(item.startedAt) : null;
    const end = item.endedAt ? Date.parse(item.endedAt) : now;
    place(waited, scale, Date.parse(item.createdAt ?? item.startedAt), began ?? end);
    waited.hidden = item.createdAt === undefined;
    ran.hidden = began === null;
    if (began !== null) place(ran, scale, began, end);
    setAttribute(ran, 'class', laneKind(item));
    return lane;
  }
}

function laneKind(item) {
  if (!ENDED.has(item.status)) return 'run';
  if (item.status === 'success') return item.stopReason ? 'warn' : 'ok';
  return item.status === 'cancelled' || item.status === 'interrupted' ? 'idle' : 'bad';
}

function place(bar, { from, until }, start, end) {
  const whole = Math.max(1, until - from);
  const left = Math.min(99, Math.max(0, ((start - from) / whole) * 100));
  bar.style.setProperty('--a', `${left.toFixed(2)}%`);
  bar.style.setProperty('--w', `${Math.min(100 - left, Math.max(0.8, ((end - start) / whole) * 100)).toFixed(2)}%`);
}

function rowFacts(task) {
  if (task.endedAt !== null) return [task.turn ? many('turns', task.turn) : '', task.tokens === null ? '' : t('tokens', { n: tokens(task.tokens) })];
  const step = currentStep(task);
  return [step?.tool ?? '', task.maxTurns && task.turn ? t('turn_of', { n: task.turn, limit: task.maxTurns }) : ''];
}
