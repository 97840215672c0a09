// The chat page: one state, fed by the thread's log, painted at most once per animation frame.

import { post, useToken } from './actions.js';
import { Composer, keep } from './composer.js';
import { Conversation } from './conversation.js';
import { Dock, Strip, runWords } from './dock.js';
import { setAttribute, setText, useIcons } from './dom.js';
import { moment } from './format.js';
import { agreed, startFrame } from './frame.js';
import { activeRun, activeTasks, emptyState, reduce } from './state.js';
import { SteerBox } from './steer-box.js';
import { t, useWords } from './strings.js';
import { faceText, tile } from './task-card.js';
import { taskFace } from './task-state.js';
import { followThread } from './thread-socket.js';

const BANNER_AFTER_MS = 3_000;
const RAIL_EVERY_MS = 20_000;
const RAIL_OLDER_MS = 5_000; // what began while the page was on its way is not in its list yet
const NEAR_END_PIXELS = 120;
const STANDING_EVERY_MS = 2_500;

const page = JSON.parse(document.getElementById('page').textContent);
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const log = document.getElementById('log');
const skew = Date.parse(page.now) - Date.now();
const serverNow = () => Date.now() + skew;
const openedAt = Date.parse(page.now);

useWords(page.strings, page.language);
useIcons(document.body.dataset.icons);
useToken(document.body.dataset.csrf);
startFrame();

let state = emptyState();
let scheduled = false;
let bannerTimer = 0;
let standing = {}; // run id → why it has not begun

const act = async (path, body) => {
  const answer = await post(`${page.urls.thread}${path}`, body);
  tell(answer.ok ? '' : answer.message);
  return answer;
};
const onRun = (verb) => async (runId) => {
  const { ok, body } = await act(`runs/${runId}/${verb}`);
  if (ok && body.done === false) tell(t('already_ended'));
  return ok;
};

async function stopRun(runId) {
  const { ok, body } = await act(`runs/${runId}/cancel`);
  if (ok) sayStopped(body);
  return ok;
}

async function steer(runId, text) {
  return (await act(`runs/${runId}/steer`, { text })).ok;
}

/** What was told to stop, by name: a person who stops something shall see that it was that and nothing else. */
function sayStopped({ what = [] }) {
  const names = what.map(({ kind, agent, title }) => (kind === 'task' ? `${agent}: ${title}` : t(`stopped_${kind}`)));
  const words = names.length ? t('stopped', { what: names.join(' · ') }) : t('already_ended');
  tell(words);
  setText(part('announce'), words);
}

/** Who answers in a run: the subagent whose thread this is, or the agent it was sent to. */
const speakerOf = (run) => page.speaker || page.agents[run?.agent]?.label || (!run?.agent || run.agent === page.lead ? t('lead_agent') : run.agent);
const conversation = new Conversation(part('messages'), {
  cancel: stopRun, steer, goOn: onRun('continue'), sendNow: onRun('send-now'), remove: onRun('remove'),
  pageOf: (threadId) => `${page.urls.chat}${threadId}/`, speakerOf,
});
const strip = part('strip') && new Strip(part('strip'));
const steerBox = part('steer') && new SteerBox(part('steer'), part('steer-instead'), { steer, stop: stopRun });
const dock = new Dock(document.getElementById('dock'), {
  maxTotal: page.max_total, maxConcurrent: page.max_concurrent, speakerOf, onChoose: showTask,
});

// --- Painting ---------------------------------------------------------------------------------------------------

function schedule() {
  if (scheduled) return;
  scheduled = true;
  // A hidden page gets no animation frames, but its title and its announcements still count.
  if (document.hidden) setTimeout(paint, 200);
  else requestAnimationFrame(paint);
}

function paint() {
  scheduled = false;
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PIXELS;
  const now = serverNow();
  conversation.paint(state, now);
  paintAround(now);
  if (atEnd && state.order.length > 0) log.scrollTop = log.scrollHeight; // the welcome is read from its beginning
}

function paintAround(now) {
  const run = activeRun(state);
  strip?.paint(state, now);
  steerBox?.paint(run);
  dock.paint(state, now);
  const waiting = part('waiting');
  const speaking = Object.values(state.messages).some((message) => message.streaming);
  waiting.hidden = run === null || speaking || activeTasks(state).length > 0;
  if (run) setText(waiting.firstElementChild, (run.status === 'pending' && standing[run.id]) || runWords(run));
  const beyond = log.scrollHeight - log.scrollTop - log.clientHeight;
  part('to-end').hidden = state.order.length === 0 || beyond < 2 * NEAR_END_PIXELS; // the welcome has no end to be at
}

function tick() {
  if (document.hidden || (activeRun(state) === null && activeTasks(state).length === 0)) return;
  const now = serverNow();
  conversation.tick(now);
  paintAround(now);
}

function showTask(id) {
  const card = document.getElementById(`task-${id}`);
  card?.scrollIntoView({ block: 'center', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  card?.focus({ preventScroll: true });
}

function tell(message) {
  const node = part('tell');
  setText(node, message);
  node.hidden = !message;
}

// --- The log ----------------------------------------------------------------------------------------------------

function onFrame(frame) {
  const before = state;
  state = reduce(state, frame);
  announce(before, frame);
  if (state.applied > before.applied && Date.parse(frame.at) >= openedAt - RAIL_OLDER_MS && /^run\.(started|ended)$/.test(frame.type)) refreshRail();
  schedule();
}

/** Said aloud: changes of a task's status and finished answers, never the words as they come. */
function announce(before, frame) {
  if (Date.parse(frame.at) < openedAt || frame.seq <= before.applied) return;
  if (frame.type === 'task.started' || frame.type === 'task.ended') {
    const task = state.tasks[frame.task];
    const status = faceText(taskFace(task, serverNow()), task);
    setText(part('announce'), t('task_announcement', { name: task.name, title: task.title, status }));
  } else if (frame.type === 'run.ended') {
    setText(part('announce'), frame.status === 'success' ? t('answer_finished') : frame.why || t('run_failed'));
  }
}

function onState(kind, reason) {
  document.documentElement.dataset.connection = kind;
  // Attempts follow each other quickly at first; only the first loss starts the clock.
  if (kind === 'lost') { bannerTimer ||= setTimeout(() => showBanner('reconnecting'), BANNER_AFTER_MS); return; }
  clearTimeout(bannerTimer);
  bannerTimer = 0;
  if (kind === 'open') part('banner').hidden = true;
  else showBanner(kind === 'polling' ? 'polling' : reason);
}

function showBanner(key) {
  part('banner').hidden = false;
  setText(part('banner'), t(key));
}

async function refreshRail() {
  const answer = await fetch(`${page.urls.rail}?current=${page.thread ?? ''}`, { credentials: 'same-origin' }).catch(() => null);
  if (!answer?.ok) return;
  const list = part('threads');
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
  list.innerHTML = await answer.text(); // a template of ours, escaped by the server
  showMoments();
  if (focused) list.querySelector(`a[href="${focused}"]`)?.focus();
}

/** Ask why what waits waits, as long as something does; a place in line is no event of the log. */
async function askStanding() {
  const runs = [activeRun(state), ...activeTasks(state)].filter((item) => item?.status === 'pending').map((item) => item.id);
  if (!page.thread || document.hidden || runs.length === 0) return conversation.stand({});
  const answer = await fetch(`${page.urls.thread}standing`, { credentials: 'same-origin' }).catch(() => null);
  if (!answer?.ok) return undefined;
  const { runs: standings } = await answer.json();
  conversation.stand(standings);
  standing = standings;
  return schedule();
}

function showMoments() {
  for (const node of document.querySelectorAll('time[datetime]')) setText(node, moment(node.dateTime, serverNow(), page.language));
}

// --- What a person does -----------------------------------------------------------------------------------------

const form = part('composer');
const composer = form && new Composer(form, {
  key: page.thread ?? 'new', maxCharacters: page.max_text, onSend: page.thread ? say : start,
  agents: page.agents, agent: page.agent, delegation: page.delegation, onAgent: showRoster,
});

/** Of the subagents on the welcome page, those that the chosen agent may call. */
function showRoster(name) {
  const callables = new Set(page.agents[name]?.callables ?? []);
  for (const place of document.querySelectorAll('[data-part="roster"] > li')) place.hidden = !callables.has(place.dataset.name);
  const title = part('roster-title');
  if (title) title.hidden = callables.size === 0;
}

async function say(message) {
  const answer = await act('messages', message);
  tell(''); // the composer says it beside the box
  if (answer.ok) log.scrollTop = log.scrollHeight;
  return answer;
}

async function start(message) {
  const answer = await post(page.urls.start, message);
  if (!answer.ok) return answer;
  keep('draft:new', '');
  composer.remembered();
  location.assign(answer.body.url);
  return answer;
}

part('stop-answer')?.addEventListener('click', () => { const run = activeRun(state); if (run) stopRun(run.id); });
part('stop-all')?.addEventListener('click', async () => {
  const { ok, body } = await act('stop-all');
  if (ok) sayStopped(body);
});
part('rename')?.addEventListener('click', async () => {
  const field = document.getElementById('new-title');
  field.value = part('title').textContent.trim();
  if (!(await agreed('rename-dialog'))) return;
  const { ok, body } = await act('rename', { title: field.value });
  if (!ok) return;
  setText(part('title'), body.title);
  refreshRail();
});
part('delete')?.addEventListener('click', async () => {
  if (!(await agreed('delete-dialog'))) return;
  const { ok, body } = await act('delete');
  if (ok) location.assign(body.url);
});
part('to-end').addEventListener('click', () => { log.scrollTop = log.scrollHeight; });
log.addEventListener('scroll', () => paintAround(serverNow()), { passive: true });
for (const place of document.querySelectorAll('.tile-for')) place.replaceWith(tile(place.dataset.name));
for (const example of document.querySelectorAll('[data-part="example"]')) {
  example.addEventListener('click', () => composer.put(example.textContent.trim()));
}

if (page.thread) {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const following = followThread({
    socketUrl: `${scheme}://${location.host}${page.urls.socket}`, eventsUrl: `${page.urls.thread}events`,
    cursor: () => state.seq, onFrame, onState,
  });
  addEventListener('online', following.retryNow);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) { following.retryNow(); schedule(); } });
  addEventListener('pagehide', following.stop);
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload(); });
}
showMoments();
schedule();
setInterval(tick, 1_000);
setInterval(askStanding, STANDING_EVERY_MS);
setInterval(() => { if (!document.hidden) refreshRail(); }, RAIL_EVERY_MS);
setAttribute(document.documentElement, 'data-ready', 'true');
