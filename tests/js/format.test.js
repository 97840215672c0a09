import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ago, clock, hue, initials, seconds, tokens } from '../../runs/static/runs/format.js';
import { many, t, useWords } from '../../runs/static/runs/strings.js';

test('elapsed time reads like a clock', () => {
  assert.deepEqual([0, 9.9, 252, 3723, -5, NaN].map(clock), ['0:00', '0:09', '4:12', '1:02:03', '0:00', '0:00']);
});

test('tokens are short, and what was not reported is a dash and never a zero', () => {
  assert.deepEqual([0, 950, 46_200, 999_960, 1_000_000, 2_340_000].map(tokens), ['0', '950', '46.2k', '1M', '1M', '2.3M']);
  assert.deepEqual([null, undefined, NaN].map(tokens), ['–', '–', '–']);
});

test('durations and ages use the unit a person would', () => {
  assert.deepEqual([0.43, 1.9, 12.3].map(seconds), ['0.4', '1.9', '12']);
  assert.deepEqual([3.7, 61, 7300].map(ago), [['seconds_ago', 3], ['minutes_ago', 1], ['hours_ago', 2]]);
});

test('a subagent keeps its letters and its hue', () => {
  assert.deepEqual(['market-researcher', 'bash', '数据分析', 'SQL analyst', '', '🙂'].map(initials), ['MR', 'BA', '数据', 'SA', '?', '🙂']);
  assert.equal(hue('bash'), hue('bash'));
  assert.ok(['a', 'bash', '数据', ''].every((name) => hue(name) >= 0 && hue(name) < 360));
});

test('sentences take named places and the plural of their language', () => {
  useWords({ hi: 'Hello %(name)s of %(name)s, %(gone)s', cats_one: '%(n)s cat', cats_other: '%(n)s cats' }, 'en');
  assert.equal(t('hi', { name: '$& <b>' }), 'Hello $& <b> of $& <b>, %(gone)s');
  assert.deepEqual([many('cats', 1), many('cats', 2)], ['1 cat', '2 cats']);
  assert.equal(t('no_such_key'), 'no_such_key');
  useWords({ cats_one: '%(n)s 只猫', cats_other: '%(n)s 只猫' }, 'zh-hans');
  assert.equal(many('cats', 1), '1 只猫');
});
