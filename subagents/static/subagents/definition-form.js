// What the forms of subagents and custom agents add when scripts run.

import { followPrompts } from './prompt-editor.js';
import { guardForm } from './unsaved-guard.js';

followPrompts();
for (const form of document.querySelectorAll('form[data-guarded]')) guardForm(form);
