// The page's words, in the language the server chose.

let words = {};
let plural = new Intl.PluralRules('en');

export function useWords(strings, language) {
  words = strings ?? {};
  plural = new Intl.PluralRules(language || 'en');
}

/** A sentence with its named places filled: t('turn_of', { n: 3, limit: 50 }). */
export function t(key, values = {}) {
  const sentence = words[key] ?? key;
  return sentence.replace(/%\((\w+)\)s/g, (place, name) => (name in values ? String(values[name]) : place));
}

/** The form of a sentence that fits a number: many('subagents', 3). */
export function many(key, n) {
  const chosen = `${key}_${plural.select(n)}`;
  return t(chosen in words ? chosen : `${key}_other`, { n });
}
