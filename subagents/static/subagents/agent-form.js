// What the form of a custom agent adds when scripts run: the list of whom it could call follows what is ticked.

import './definition-form.js';
import { followScope } from './scope-preview.js';

for (const place of document.querySelectorAll('[data-reach]')) followScope(place);
