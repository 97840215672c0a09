// Numbers as people read them. Pure.

/** 252 → "4:12", 3723 → "1:02:03". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds || 0));
  const two = (value) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** 950 → "950", 46200 → "46.2k", 1000000 → "1M"; nothing reported → "–", never 0. */
export function tokens(count) {
  if (!Number.isFinite(count)) return '–';
  if (count < 1000) return String(count);
  const [value, unit] = count < 999_950 ? [count / 1000, 'k'] : [count / 1_000_000, 'M'];
  return `${Number(value.toFixed(value < 100 ? 1 : 0))}${unit}`;
}

/** A short duration: 0.43 → "0.4", 12.3 → "12". */
export function seconds(value) {
  return value < 10 ? String(Number(value.toFixed(1))) : String(Math.round(value));
}

/** How long ago, as a key of the page's words and its number. */
export function ago(secondsPast) {
  const past = Math.max(0, Math.floor(secondsPast || 0));
  if (past < 60) return ['seconds_ago', past];
  return past < 3600 ? ['minutes_ago', Math.floor(past / 60)] : ['hours_ago', Math.floor(past / 3600)];
}

/** A moment of the past as short as it can be: "09:41" today, "Mon" this week, a date before. */
export function moment(at, now, language) {
  const [then, today] = [new Date(at), new Date(now)];
  if (then.toDateString() === today.toDateString()) return then.toLocaleTimeString(language, { hour: '2-digit', minute: '2-digit' });
  const days = (today - then) / 86_400_000;
  return then.toLocaleDateString(language, days < 6 ? { weekday: 'short' } : { day: 'numeric', month: 'short', year: then.getFullYear() === today.getFullYear() ? undefined : 'numeric' });
}

/** Two letters for a subagent's tile: "market-researcher" → "MR", "bash" → "BA", "数据分析" → "数据". */
export function initials(name) {
  const words = name.split(/[\s_-]+/u).filter(Boolean);
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...(words[0] ?? '?')].slice(0, 2);
  return letters.join('').toUpperCase();
}

/** A hue that belongs to a name on every page and every visit. */
export function hue(name) {
  let hash = 2166136261;
  for (const unit of name) hash = Math.imul(hash ^ unit.codePointAt(0), 16777619) >>> 0;
  return Math.round((hash / 2 ** 32) * 24) * 15 % 360;
}
