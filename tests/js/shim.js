// Stands in for node:test and node:assert/strict, so that the same tests run in a browser.

const results = [];

export function test(name, body) {
  try { body(); results.push({ name, ok: true }); } catch (fault) { results.push({ name, ok: false, fault: String(fault) }); }
}

const canonical = (value) => {
  if (value === undefined) return 'undefined';
  if (value === null || typeof value !== 'object') return typeof value === 'number' ? `#${value}` : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value).sort().map((key) => `${key}:${canonical(value[key])}`).join(',')}}`;
};

const same = (actual, expected, equal) => {
  if (!equal) throw new Error(`expected ${canonical(expected)}, got ${canonical(actual)}`);
};

export default {
  equal: (actual, expected) => same(actual, expected, Object.is(actual, expected)),
  deepEqual: (actual, expected) => same(actual, expected, canonical(actual) === canonical(expected)),
  ok: (value) => same(Boolean(value), true, Boolean(value)),
};

export { results };
