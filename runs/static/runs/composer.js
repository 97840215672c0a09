// The box a person writes in. It stays usable while runs go on, and what is written survives until it is sent.

import { setAttribute } from './dom.js';
import { t } from './strings.js';

const GROWS_TO_PIXELS = 260;

export class Composer {
  /**
   * `key` names the draft and the switch in local storage; `onSend({ text, options })` resolves to { ok, message }.
   */
  constructor(form, { key, maxCharacters, onSend }) {
    Object.assign(this, { form, key, maxCharacters, onSend });
    this.box = form.querySelector('textarea');
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
    this.delegation.checked = recall(`delegation:${this.key}`) !== 'off';
    this.grow();
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
    this.delegation.addEventListener('change', () => keep(`delegation:${this.key}`, this.delegation.checked ? 'on' : 'off'));
  }

  put(text) {
    this.box.value = text;
    this.box.dispatchEvent(new Event('input', { bubbles: true }));
    this.box.focus();
  }

  options() {
    return { subagent_enabled: this.delegation.checked };
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
    this.say('');
    this.grow();
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
