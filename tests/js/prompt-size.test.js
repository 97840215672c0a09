import assert from 'node:assert/strict';
import { test } from 'node:test';

import { characters, fill, grouped, tokens } from '../../subagents/static/subagents/prompt-size.js';

test('characters are counted as the server counts them', () => {
  assert.deepEqual(['', 'abc', 'a\r\nb', '🦊🦊', '研究'].map(characters), [0, 3, 3, 2, 2]);
});

test('tokens are estimated like those of a model that reports none', () => {
  assert.deepEqual(['', 'abcd', 'abcde', '研究员', '研究 abcd'].map(tokens), [0, 1, 2, 3, 4]);
});

test('sentences are filled, and what is not known stays', () => {
  assert.equal(fill('{a} of {b} {c}', { a: 1, b: '2' }), '1 of 2 {c}');
  assert.equal(grouped(200000), '200,000');
});
