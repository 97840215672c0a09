// The line at the foot of a subagent's own conversation: what is sent there is picked up at its next turn.

import { setText } from './dom.js';
import { t } from './strings.js';

export class SteerBox {
  /** `steer(runId, text)` and `stop(runId)` resolve to whether the request got through. */
  constructor(form, instead, { steer, stop }) {
    Object.assign(this, { form, instead, steer });
    this.words = form.querySelector('input');
    this.cancel = form.querySelector('[data-part="steer-cancel"]');
    this.run = null;
    this.stopping = null;
    form.addEventListener('submit', (event) => { event.preventDefault(); this.send(); });
    this.cancel.addEventListener('click', async () => {
      const runId = this.stopping = this.run?.id;
      this.paint(this.run);
      if (!(await stop(runId)) && this.stopping === runId) this.stopping = null;
      this.paint(this.run);
    });
  }

  /** `run`: the one that works or is about to; null when nobody would read a message. */
  paint(run) {
    this.run = run;
    const stopping = run !== null && run.id === this.stopping;
    this.form.hidden = run === null;
    this.instead.hidden = run !== null;
    this.cancel.disabled = stopping;
    setText(this.cancel.lastElementChild, t(stopping ? 'stopping' : 'cancel'));
  }

  async send() {
    const words = this.words.value.trim();
    if (!words || this.run === null) return;
    this.words.disabled = true;
    const sent = await this.steer(this.run.id, words);
    this.words.disabled = false;
    if (sent) this.words.value = ''; // nothing a person typed is lost
    this.words.focus();
  }
}
