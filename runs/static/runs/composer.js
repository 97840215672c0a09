// The box a person writes in. It stays usable while runs go on, and what is written survives until it is sent.

import { setAttribute } from './dom.js';
import { t } from './strings.js';

const GROWS_TO_PIXELS = 260;

export class Composer {
  /**
   * `key` names the draft and the choices in local storage; `onSend({ text, options })` resolves to { ok, message }.
   * `agents` are those to choose from, `agent` and `delegation` what the thread's newest message was sent with.
   */
  constructor(form, { key, maxCharacters, agents = {}, agent = '', delegation = true, onSend, onAgent = () => {} }) {
    Object.assign(this, { form, key, maxCharacters, agents, onSend, onAgent });
    this.before = { agent, delegation };
    this.about = form.querySelector('[data-part="about"]');
    this.pick = form.querySelector('[data-part="agent"]');
    this.box = form.querySelector('textarea');
    this.placeholder = this.box.placeholder; // the default lead's, which stands first
    this.button = form.querySelector('[data-part="send"]');
    this.delegation = form.querySelector('[data-part="delegation"]');
    this.fault = form.querySelector('[data-part="fault"]');
    this.sending = false;
    this.restore();
    this.listen();
  }

  restore() {
    // A reload may have brought the browser's own copy back; the newer one is what was saved last.
    this.box.value = recall(`draft:${this.key}`) ?? this.box.value;
    const chosen = recall(`agent:${this.key}`);
    const wanted = Object.hasOwn(this.agents, chosen ?? '') ? chosen : this.before.agent;
    const gone = !Object.hasOwn(this.agents, wanted);
    if (gone) this.pick.selectedIndex = 0;
    else this.pick.value = wanted;
    const switched = recall(`delegation:${this.key}`);
    this.wantsDelegation = switched ? switched === 'on' : this.before.delegation;
    this.showAgent();
    if (gone && this.pick.options.length) this.sayGone(wanted);
    this.grow();
  }

  /** What belongs to the chosen agent. An agent that may call nobody cannot be switched on here. */
  showAgent() {
    const agent = Object.hasOwn(this.agents, this.pick.value) ? this.agents[this.pick.value] : null;
    this.about.hidden = this.pick.closest('[data-part="pick"]').hidden || !agent?.about;
    this.about.textContent = agent?.about ?? '';
    this.about.classList.remove('gone');
    this.delegation.disabled = agent?.off === true;
    this.delegation.checked = this.wantsDelegation && !this.delegation.disabled;
    this.box.placeholder = agent && this.pick.selectedIndex > 0 ? t('ask', { name: agent.label }) : this.placeholder;
    this.onAgent(this.pick.value);
  }

  sayGone(name) {
    this.about.hidden = false;
    this.about.textContent = t('agent_gone', { name });
    this.about.classList.add('gone');
  }

  listen() {
    this.form.addEventListener('submit', (event) => { event.preventDefault(); this.send(); });
    this.box.addEventListener('input', () => { keep(`draft:${this.key}`, this.box.value); this.say(''); this.grow(); });
    this.box.addEventListener('keydown', (event) => {
      // While an input method is composing, Enter chooses a word. keyCode 229 is how Safari says so.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.send();
    });
    this.delegation.addEventListener('change', () => {
      this.wantsDelegation = this.delegation.checked;
      keep(`delegation:${this.key}`, this.wantsDelegation ? 'on' : 'off');
    });
    this.pick.addEventListener('change', () => { keep(`agent:${this.key}`, this.pick.value); this.showAgent(); });
  }

  put(text) {
    this.box.value = text;
    this.box.dispatchEvent(new Event('input', { bubbles: true }));
    this.box.focus();
  }

  options() {
    const options = { subagent_enabled: this.wantsDelegation };
    return this.pick.value ? { ...options, agent_name: this.pick.value } : options;
  }

  async send() {
    const text = this.box.value;
    if (this.sending) return;
    const fault = this.faultOf(text);
    if (fault) { this.say(fault); return; }
    this.setSending(true);
    const { ok, message } = await this.onSend({ text, options: this.options() });
    this.setSending(false);
    if (!ok) { this.say(message); return; }
    // Whatever was typed meanwhile belongs to the next message.
    this.box.value = this.box.value.startsWith(text) ? this.box.value.slice(text.length) : this.box.value;
    keep(`draft:${this.key}`, this.box.value);
    this.remembered();
    this.say('');
    this.grow();
  }

  /** The thread knows the choices now: what its newest message was sent with. */
  remembered() {
    keep(`agent:${this.key}`, '');
    keep(`delegation:${this.key}`, '');
  }

  faultOf(text) {
    if (!text.trim()) return t('empty');
    const length = [...text].length;
    const number = (value) => value.toLocaleString();
    return length > this.maxCharacters ? t('too_long', { n: number(length), limit: number(this.maxCharacters) }) : '';
  }

  setSending(sending) {
    this.sending = sending;
    setAttribute(this.button, 'aria-busy', sending ? 'true' : null);
  }

  say(message) {
    this.fault.textContent = message;
    this.fault.hidden = !message;
    setAttribute(this.box, 'aria-invalid', message ? 'true' : null);
  }

  grow() {
    this.box.style.height = 'auto';
    this.box.style.height = `${Math.min(this.box.scrollHeight, GROWS_TO_PIXELS)}px`;
  }
}

/** Local storage may be full or switched off; then a draft lives as long as the page. */
export function keep(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch { /* nothing to be done */ }
}

export function recall(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
