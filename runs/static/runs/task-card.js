// One delegation as a card. Built once, patched afterwards: what is open, focused or selected stays so.

import { arrange, el, icon, setAttribute, setHtml, setText } from './dom.js';
import { ago, clock, hue, initials, seconds, tokens } from './format.js';
import { many, t } from './strings.js';
import { currentStep, elapsedSeconds, taskFace } from './task-state.js';

const FRAME = { run: 'live', warn: 'attn', bad: 'dead' };
const WHY = { warn: 'w', bad: 'b', cut: 'n' };
const WHY_HEADLINE = {
  cut_short: 'why_cut_short', failed: 'why_failed', timed_out: 'why_timed_out', cancelled: 'why_cancelled',
  cancelled_by: 'why_cancelled', interrupted: 'why_cancelled',
};

/** The square that stands for a subagent wherever it appears. */
export function tile(name) {
  const node = el('span', { class: 'who', 'aria-hidden': 'true' }, initials(name || '?'));
  node.style.setProperty('--h', hue(name || '?'));
  return node;
}

/** Words of a face: "Quiet for 2:10", "Cancelled by Lin". */
export function faceText(face, task) {
  return t(face.word, { time: clock(face.quietSeconds), who: task.cancelledBy });
}

export class TaskCard {
  /**
   * `cancel`, `steer(taskId, text)` and `goOn` resolve to whether the request got through; `pageOf(threadId)` is the
   * task's own page.
   */
  constructor(task, { cancel, steer, goOn, pageOf }) {
    this.task = task;
    this.stopping = false;
    this.open = false;
    this.steps = new Map();
    Object.assign(this, { onCancel: cancel, onSteer: steer, onGoOn: goOn });
    this.standing = '';
    this.build(task, pageOf);
  }

  build(task, pageOf) {
    const id = `task-${task.id}`;
    this.title = el('span', { class: 'title' });
    this.name = el('small');
    this.badge = el('span', { class: 'st' });
    this.elapsed = el('span', { class: 'el num' });
    this.toggle = el('button', { class: 'btn ghost icon', type: 'button', 'aria-controls': `${id}-details`, onclick: () => this.flip() }, icon('chevron'));
    this.now = el('div', { class: 'now' });
    this.facts = el('div', { class: 'facts num' });
    this.why = el('div', { class: 'why', hidden: true });
    this.result = el('div', { class: 'res prose', hidden: true });
    this.prompt = el('p', { class: 'prompt' });
    this.list = el('ol', { class: 'steps' });
    this.dropped = el('p', { class: 'muted more', hidden: true });
    this.details = el('div', { class: 'details', id: `${id}-details`, hidden: true },
      this.result, el('h4', {}, t('prompt')), this.prompt, el('h4', {}, t('steps')), this.dropped, this.list);
    this.cancel = el('button', { class: 'btn danger', type: 'button', onclick: () => this.askToStop() }, icon('stop'), el('span', {}, t('cancel')));
    this.quickCancel = el('button', { class: 'btn ghost icon', type: 'button', title: t('cancel'), onclick: () => this.askToStop() }, icon('stop'));
    this.page = el('a', { class: 'btn ghost', href: pageOf(task.thread) }, icon('open'), t('open'));
    this.words = el('input', { type: 'text', autocomplete: 'off', maxlength: 20000, placeholder: t('steer_hint') });
    this.steer = el('form', { class: 'steer', onsubmit: (event) => { event.preventDefault(); this.sendSteer(); } },
      this.words, el('button', { class: 'btn ghost', type: 'submit' }, icon('send'), t('steer')));
    this.goOn = goOnButton(task.id, this.onGoOn);
    this.foot = el('footer', {}, this.steer, this.page, el('span', { class: 'sp' }), this.cancel);
    this.node = el('article', { class: 'task', id, 'aria-labelledby': `${id}-name`, tabindex: '-1' },
      el('header', {}, tile(task.subagent || task.name), el('h3', { id: `${id}-name` }, this.name, this.title),
        el('div', { class: 'right' }, this.badge, this.elapsed, this.quickCancel, this.toggle), this.now, this.facts),
      this.why, this.details, this.foot);
  }

  flip(open = !this.open) {
    this.open = open;
    this.paint(this.task, this.paintedAt);
  }

  async askToStop() {
    this.stopping = true;
    this.paint(this.task, this.paintedAt);
    if (await this.onCancel(this.task.id)) return;
    this.stopping = false;
    this.paint(this.task, this.paintedAt);
  }

  async sendSteer() {
    const words = this.words.value.trim();
    if (!words) return;
    this.words.disabled = true;
    const sent = await this.onSteer(this.task.id, words);
    this.words.disabled = false;
    if (sent) this.words.value = '';
    this.words.focus();
  }

  /** Why a task that has not begun waits: a sentence of the server's, or empty. */
  stand(sentence) {
    if (sentence === this.standing) return;
    this.standing = sentence;
    if (this.paintedAt !== undefined) this.tick(this.paintedAt);
  }

  /** Show the task as it is; `now` in milliseconds of the server's clock. */
  paint(task, now) {
    this.task = task;
    setText(this.name, task.name || task.subagent);
    setText(this.title, task.title || task.name);
    setAttribute(this.title, 'title', task.title);
    const running = task.endedAt === null;
    this.foot.hidden = !this.open;
    this.quickCancel.hidden = !running || this.open;
    this.cancel.hidden = !running;
    setText(this.cancel.lastElementChild, t(this.stopping ? 'stopping' : 'cancel'));
    for (const button of [this.cancel, this.quickCancel]) {
      button.disabled = this.stopping;
      setAttribute(button, 'aria-label', t('cancel_task', { title: task.title }));
    }
    this.page.hidden = !task.thread;
    this.steer.hidden = !running || this.stopping;
    setAttribute(this.words, 'aria-label', t('steer_task', { title: task.title }));
    this.paintFacts(task);
    this.paintWhy(task, now);
    this.paintDetails(task);
    this.tick(now);
  }

  /** What changes with time alone: badge, elapsed, age. */
  tick(now) {
    this.paintedAt = now;
    const { task } = this;
    const face = taskFace(task, now);
    setAttribute(this.badge, 'class', `st ${face.kind}`);
    setText(this.badge, this.stopping && task.endedAt === null ? t('stopping') : faceText(face, task));
    setAttribute(this.node, 'class', `task ${FRAME[face.kind] ?? ''}`.trim());
    setAttribute(this.node, 'data-status', face.word);
    setText(this.elapsed, clock(elapsedSeconds(task, now)));
    this.paintNow(task, face, now);
  }

  paintNow(task, face, now) {
    if (task.endedAt !== null) return this.paintSummary(task);
    if (task.status === 'pending') return this.sayNow('', this.standing || t('starting'), '');
    const step = currentStep(task);
    if (step === null) return this.sayNow('', t('thinking'), '');
    const [key, n] = ago((now - Date.parse(step.at)) / 1000);
    const left = face.word === 'quiet' && task.timeoutSeconds ? task.timeoutSeconds - elapsedSeconds(task, now) : null;
    const age = left === null ? t(key, { n }) : t('times_out_in', { time: clock(left) });
    return this.sayNow(step.kind === 'tool' ? step.tool : '', step.text, `· ${age}`);
  }

  paintSummary(task) {
    const said = this.open ? '' : plain(task.html).slice(0, 220);
    this.sayNow('', said, '');
    this.now.classList.toggle('brief', Boolean(said));
  }

  sayNow(tool, argument, age) {
    if (this.now.childElementCount === 0) {
      this.now.append(el('span', { class: 'tool' }), el('span', { class: 'arg' }), el('span', { class: 'num age' }));
    }
    const [toolNode, argumentNode, ageNode] = this.now.children;
    setText(toolNode, tool);
    setText(argumentNode, argument);
    setText(ageNode, age);
    this.now.hidden = !(tool || argument);
  }

  paintFacts(task) {
    const facts = [];
    const running = task.endedAt === null;
    if (running && task.startedAt && task.maxTurns) facts.push(meter(t('turn_of', { n: task.turn, limit: task.maxTurns }), task.turn / task.maxTurns));
    else if (task.turn) facts.push(meter(many('turns', task.turn)));
    if (task.tokens !== null && task.maxTokens) {
      facts.push(meter(t('tokens_of', { n: tokens(task.tokens), limit: tokens(task.maxTokens) }), task.tokens / task.maxTokens, true));
    } else if (task.tokens !== null) facts.push(meter(t('tokens', { n: tokens(task.tokens) })));
    if (task.model) facts.push(meter(task.model));
    if (task.worker) facts.push(meter(t('worker', { worker: task.worker })));
    if (task.attempt > 1) facts.push(meter(t('attempt', { n: task.attempt })));
    this.facts.replaceChildren(...facts);
  }

  paintWhy(task, now) {
    const face = taskFace(task, now);
    const headline = WHY_HEADLINE[face.word];
    this.why.hidden = !headline || task.endedAt === null;
    if (this.why.hidden) return;
    setAttribute(this.why, 'class', `why ${WHY[face.kind] ?? 'n'}`);
    const sentence = task.why || task.error;
    this.why.replaceChildren(icon(face.kind === 'warn' ? 'warning' : face.kind === 'bad' ? 'cross' : 'barred'),
      el('div', {}, sentence ? sentence : el('b', {}, t(headline)), task.error && task.why ? el('p', { class: 'muted' }, task.error) : null, this.goOn));
    offer(this.goOn, task.offer);
  }

  paintDetails(task) {
    this.details.hidden = !this.open;
    setAttribute(this.toggle, 'aria-expanded', String(this.open));
    setAttribute(this.toggle, 'aria-label', t(this.open ? 'hide_details' : 'show_details', { title: task.title }));
    if (!this.open) return;
    this.result.hidden = !task.html;
    setHtml(this.result, task.html);
    setText(this.prompt, task.prompt);
    this.dropped.hidden = task.droppedSteps === 0;
    setText(this.dropped, task.droppedSteps ? many('earlier_steps', task.droppedSteps) : '');
    arrange(this.list, task.steps.length ? task.steps.map((step) => this.stepNode(step)) : [this.noSteps()]);
  }

  stepNode(step) {
    const known = this.steps.get(step.key);
    if (known?.step === step) return known.node;
    const node = el('li', { 'data-turn': step.turn || '' }, ...stepContent(step));
    this.steps.set(step.key, { step, node });
    return node;
  }

  noSteps() {
    this.empty ??= el('li', { class: 'muted' }, t('no_steps'));
    return this.empty;
  }
}

/** The button that goes on from where a run was stopped; `offer` says with which limit. */
export function goOnButton(runId, onGoOn) {
  return el('button', {
    class: 'btn', type: 'button',
    onclick: async ({ currentTarget }) => {
      currentTarget.disabled = true;
      if (!(await onGoOn(runId))) currentTarget.disabled = false;
    },
  }, icon('play'), el('span'));
}

export function offer(button, limits) {
  button.hidden = limits === null;
  const [[name, n] = ['', 0]] = Object.entries(limits ?? {});
  const words = { max_turns: 'go_on_turns', max_tokens: 'go_on_tokens', timeout_seconds: 'go_on_seconds' }[name] ?? 'go_on';
  setText(button.lastElementChild, t(words, { n: name === 'max_tokens' ? tokens(n) : name === 'timeout_seconds' ? clock(n) : n }));
}

/** What became of a message for a run: waits, picked up at a turn, or too late. */
export function receipt(message) {
  if (!message.read) return t('steer_waits');
  return message.turn ? t('steer_read', { n: message.turn }) : t('steer_late');
}

function stepContent(step) {
  if (step.kind === 'steer') {
    return [el('span', { class: 'said' }, el('b', {}, step.by || t('you')), ' ', step.text), el('span', { class: 'd' }, receipt(step))];
  }
  if (step.kind !== 'tool') return [el('p', {}, step.text)];
  const took = step.endedAt ? (Date.parse(step.endedAt) - Date.parse(step.at)) / 1000 : null;
  const state = step.failed ? t('step_failed') : step.open ? '–' : took === null ? t('step_running') : t('seconds', { n: seconds(took) });
  return [
    el('span', { class: 'call' }, el('span', { class: 'tool' }, step.tool), ' ', step.text),
    el('span', { class: step.failed ? 'd num failed' : 'd num' }, state),
    step.failed && step.answer ? el('p', {}, step.answer) : null,
  ].filter(Boolean);
}

function meter(words, share = null, marked = false) {
  if (share === null) return el('span', { class: 'meter' }, words);
  const bar = el('span', { class: `bar${share >= 1 ? ' full' : share >= 0.7 ? ' hot' : ''}`, 'aria-hidden': 'true' }, el('i'), marked ? el('b') : null);
  bar.style.setProperty('--v', `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%`);
  return el('span', { class: 'meter' }, words, bar);
}

function plain(html) {
  const page = new DOMParser().parseFromString(html, 'text/html');
  return page.body.textContent.replace(/\s+/g, ' ').trim();
}
