// Frames as the server sends them, with a clock that advances by a second each.

export class Log {
  constructor(runId = 'run-1') {
    this.seq = 0;
    this.runId = runId;
  }

  frame(type, payload = {}, runId = this.runId) {
    this.seq += 1;
    return { seq: this.seq, type, at: this.at(), run_id: runId, ...payload };
  }

  at(seconds = this.seq) {
    return new Date(Date.UTC(2026, 2, 1, 9, 0, seconds)).toISOString();
  }

  answer(id, calls = [], html = `<p>${id}</p>`) {
    return this.frame('message', { id, role: 'ai', html, calls: calls.map((call) => ({ id: call, name: 'task', argument: '' })) });
  }

  task(id, call, more = {}) {
    return this.frame('task.created', {
      task: id, thread: `thread-${id}`, tool_call_id: call, subagent: 'coder', display_name: 'Coder', title: `Task ${id}`,
      prompt: 'Do it.', model: 'm', max_turns: 50, timeout_seconds: 300, max_tokens: 1000, ...more,
    });
  }
}
