// The middle column: messages, groups of task cards, steps of the lead, endings. Patched, never rebuilt.

import { arrange, el, icon, setAttribute, setHtml, setText } from './dom.js';
import { tokens } from './format.js';
import { ENDED, queuedRuns } from './state.js';
import { many, t } from './strings.js';
import { TaskCard, goOnButton, offer, receipt } from './task-card.js';

const LONG_CHARACTERS = 1_500;
const ENDING = {
  error: ['run_failed', 'bad'], timeout: ['run_timed_out', 'bad'], cancelled: ['run_cancelled', 'cut'],
  interrupted: ['run_interrupted', 'cut'], success: ['run_cut_short', 'warn'],
};

export class Conversation {
  /** `actions`: { cancel, goOn, sendNow, remove: (runId), steer(runId, text), pageOf(threadId), speakerOf(run): who answers }. */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    this.shown = new Map(); // key → { node, source, … }
    this.cards = new Map(); // task id → TaskCard
    this.queue = el('div', { class: 'queue', hidden: true });
    this.queued = new Map();
    this.goOns = new Map(); // run id → the button under its ending
    this.standings = {};
  }

  paint(state, now) {
    const nodes = state.order.map((key, index) => this.item(state, key, index, now)).filter(Boolean);
    this.paintQueue(state);
    // Only the newest run of a thread can be gone on from.
    for (const [runId, button] of this.goOns) button.classList.toggle('past', state.runOrder.at(-1) !== runId);
    arrange(this.root, [...nodes, this.queue]);
  }

  /** What changes with time alone. */
  tick(now) {
    for (const card of this.cards.values()) if (card.task.endedAt === null) card.tick(now);
  }

  /** Why runs that have not begun wait: { run id: sentence }. */
  stand(standings) {
    this.standings = standings;
    for (const card of this.cards.values()) card.stand(standings[card.task.id] ?? '');
  }

  item(state, key, index, now) {
    const [kind, ...rest] = key.split(':');
    const id = rest.join(':');
    const source = { message: state.messages, note: state.notes, tasks: state.strayTasks }[kind]?.[id];
    if (!source) return null;
    const known = this.shown.get(key) ?? this.shown.set(key, { node: null, source: null }).get(key);
    if (kind === 'tasks') return this.strayGroup(state, known, source, now);
    if (known.source === source) return known.node;
    known.source = source;
    if (kind === 'note') known.node = this.note(source);
    else if (source.role === 'ai') this.paintAnswer(state, known, source, index, now);
    else if (known.seq !== source.seq) known.node = human(source); // the same message again may say something else
    known.seq = source.seq;
    return known.node;
  }

  strayGroup(state, known, ids, now) {
    known.group ??= new TaskGroup(this);
    known.node ??= el('div', { class: 'msg ai' }, known.group.node);
    known.group.paint(ids.map((id) => state.tasks[id]), now);
    return known.node;
  }

  paintAnswer(state, known, message, index, now) {
    known.node ??= answer(known, message, continues(state, index) ? '' : this.actions.speakerOf(state.runs[message.runId]));
    paintProse(known, message);
    const tasks = message.calls.map((call) => state.tasks[state.taskOfCall[call.id]]).filter(Boolean);
    if (tasks.length) {
      known.group ??= new TaskGroup(this);
      known.group.paint(tasks, now);
    }
    const others = message.calls.filter((call) => !state.taskOfCall[call.id]);
    const lines = others.map((call) => leadStep(known, state, call, message));
    known.steps.hidden = lines.length === 0;
    arrange(known.steps, lines);
    arrange(known.node, [known.by, known.prose, known.steps, known.group?.node].filter(Boolean));
  }

  card(task) {
    if (!this.cards.has(task.id)) {
      this.cards.set(task.id, new TaskCard(task, this.actions));
    }
    return this.cards.get(task.id);
  }

  note(source) {
    if (source.kind === 'continued') return el('div', { class: 'evt' }, t('continued', { n: source.attempt }));
    if (source.kind === 'noted') return el('div', { class: 'noted' }, ...source.lines.map((line) => el('p', {}, line)));
    if (source.kind === 'rewound') return el('div', { class: 'evt' }, t('rewound'));
    if (source.kind === 'removed') return el('div', { class: 'evt' }, t('removed'));
    if (source.kind === 'steered') return steered(source);
    const { run } = source;
    const [headline, kind] = ENDING[run.status] ?? ['unknown', 'idle'];
    const sentence = run.why || run.error;
    const button = goOnButton(run.id, this.actions.goOn);
    offer(button, run.offer);
    this.goOns.set(run.id, button);
    return el('div', { class: `ending ${kind}`, 'data-run': run.id, 'data-status': run.status },
      el('span', { class: `st ${kind}` }, t(headline)),
      sentence ? el('p', {}, sentence) : null,
      run.error && run.why && run.error !== run.why ? el('p', { class: 'muted' }, run.error) : null, button);
  }

  paintQueue(state) {
    const runs = queuedRuns(state);
    this.queue.hidden = runs.length === 0;
    arrange(this.queue, runs.map((run) => {
      if (!this.queued.has(run.id)) this.queued.set(run.id, this.queuedMessage(run));
      return this.queued.get(run.id);
    }));
  }

  queuedMessage(run) {
    const act = (name, words, iconName) => el('button', {
      class: 'btn ghost', type: 'button',
      onclick: async ({ currentTarget }) => {
        currentTarget.disabled = true;
        if (!(await this.actions[name](run.id))) currentTarget.disabled = false;
      },
    }, icon(iconName), t(words));
    return el('div', { class: 'msg user waiting', 'data-run': run.id },
      el('p', {}, run.text),
      el('div', { class: 'chips' }, el('span', { class: 'st idle' }, t('queued_behind')), act('sendNow', 'send_now', 'bolt'), act('remove', 'remove', 'cross')));
  }
}

class TaskGroup {
  constructor(conversation) {
    this.conversation = conversation;
    this.count = el('b');
    this.head = el('div', { class: 'gh' }, this.count);
    this.badges = ['running', 'queued', 'done', 'ended_early'].map((name) => [name, el('span', { class: `st ${BADGE[name]}` })]);
    this.sum = el('span', { class: 'num' });
    this.head.append(...this.badges.map(([, badge]) => badge), this.sum);
    this.node = el('section', { class: 'group' }, this.head);
  }

  paint(tasks, now) {
    setText(this.count, many('subagents', tasks.length));
    setAttribute(this.node, 'aria-label', this.count.textContent);
    const counts = counted(tasks);
    for (const [name, badge] of this.badges) {
      badge.hidden = counts[name] === 0;
      setText(badge, t(`n_${name}`, { n: counts[name] }));
    }
    const used = tasks.map((task) => task.tokens).filter(Number.isFinite);
    setText(this.sum, used.length ? t('tokens', { n: tokens(used.reduce((a, b) => a + b, 0)) }) : '');
    arrange(this.node, [this.head, ...tasks.map((task) => this.painted(task, now))]);
  }

  painted(task, now) {
    const card = this.conversation.card(task);
    if (card.painted !== task) card.paint(task, now);
    card.painted = task;
    return card.node;
  }
}

const BADGE = { running: 'run', queued: 'idle', done: 'ok', ended_early: 'warn' };

/** Tasks by what a group's heading says of them. */
export function counted(tasks) {
  const counts = { running: 0, queued: 0, done: 0, ended_early: 0 };
  for (const task of tasks) {
    if (task.status === 'success' && !task.stopReason) counts.done += 1;
    else if (ENDED.has(task.status)) counts.ended_early += 1;
    else if (task.status === 'running') counts.running += 1;
    else counts.queued += 1;
  }
  return counts;
}

function continues(state, index) {
  const mine = state.messages[state.order[index].slice('message:'.length)];
  const before = state.messages[state.order[index - 1]?.slice('message:'.length)];
  return Boolean(before && before.role === 'ai' && before.runId === mine.runId);
}

function answer(known, message, speaker) {
  known.by = speaker ? el('div', { class: 'by' }, speaker) : null;
  known.prose = el('div', { class: 'prose' });
  known.blocks = [];
  known.openBlock = el('div', { class: 'open' });
  known.steps = el('ul', { class: 'lead-steps', hidden: true });
  known.lines = new Map();
  return el('article', { class: 'msg ai', 'data-message': message.id });
}

function paintProse(known, message) {
  const { prose } = known;
  setAttribute(prose, 'class', message.streaming ? 'prose streaming' : 'prose');
  if (!message.streaming && !message.partial) {
    setHtml(prose, message.html);
    prose.hidden = !message.html;
    return;
  }
  message.blocks.forEach((html, place) => {
    known.blocks[place] ??= el('div', { class: 'block' });
    setHtml(known.blocks[place], html);
  });
  known.blocks.length = message.blocks.length;
  setHtml(known.openBlock, message.open);
  arrange(prose, [...known.blocks, known.openBlock]);
}

function leadStep(known, state, call, message) {
  const result = state.results[call.id];
  const line = known.lines.get(call.id) ?? known.lines.set(call.id, { node: el('li', {}, el('span', { class: 'st' }), el('span', { class: 'tool' }), el('span', { class: 'arg' }), el('span', { class: 'answer' })) }).get(call.id);
  const [badge, tool, argument, reply] = line.node.children;
  const over = !result && ENDED.has(state.runs[message.runId]?.status);
  const [kind, words] = result ? (result.failed ? ['bad', 'failed'] : ['ok', 'done']) : over ? ['cut', 'interrupted'] : ['run', 'running'];
  setAttribute(badge, 'class', `st ${kind}`);
  setText(badge, t(words));
  setText(tool, call.name);
  setText(argument, call.argument);
  setText(reply, result?.failed ? result.text : '');
  return line.node;
}

function human(message) {
  const words = el('p', {}, message.kind ? t(`said_${message.kind}`) : message.text);
  const node = el('article', { class: 'msg user', 'data-message': message.id, 'aria-label': t('you') }, words);
  if (message.text.length <= LONG_CHARACTERS) return node;
  words.classList.add('long');
  node.append(el('button', {
    class: 'btn ghost', type: 'button', 'aria-expanded': 'false',
    onclick: ({ currentTarget }) => {
      const short = words.classList.toggle('long');
      setText(currentTarget, t(short ? 'show_all' : 'show_less'));
      setAttribute(currentTarget, 'aria-expanded', String(!short));
    },
  }, t('show_all')));
  return node;
}

/** A message to a run that works; once the run has read it, its words stand in the conversation at that place. */
function steered(source) {
  const words = source.read && source.turn ? null : el('p', {}, source.text);
  return el('div', { class: 'evt', 'data-steer': '' }, words, el('span', {}, receipt(source)));
}
