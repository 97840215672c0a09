// How large a prompt is. Pure.

const WIDE = /[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u{20000}-\u{3ffff}]/gu; // about one token each
const CHARACTERS_PER_TOKEN = 4;

/** Characters as the server counts them: an emoji is one, and a line end is one. */
export function characters(text) {
  return [...text.replaceAll('\r\n', '\n')].length;
}

/** About how many tokens a text is: one for each CJK character, one for four others. */
export function tokens(text) {
  const wide = (text.match(WIDE) || []).length;
  return wide + Math.ceil((characters(text) - wide) / CHARACTERS_PER_TOKEN);
}

/** "{count} of {all}", { count: 3 } → "3 of {all}" */
export function fill(sentence, facts) {
  return sentence.replace(/\{(\w+)\}/g, (found, name) => (name in facts ? facts[name] : found));
}

export function grouped(number) {
  return number.toLocaleString('en-US');
}
