// Times as text. Nothing here needs a page, so that the tests run it for fixed times and time zones.

const DAY = 86_400_000;
/** From how many days on months are counted, and from how many years. */
const MONTHS = 60;
const YEARS = 548;

/** The time zone in which times are shown and entered. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/**
 * The number of a calendar day in this time zone.
 * @param {number} at
 */
function dayNumber(at) {
  const date = new Date(at);
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY;
}

/**
 * The distance of a time from now. Less than a day is rounded to hours or minutes. Further away, calendar days count:
 * "tomorrow" is the next date on the calendar, not the next 24 hours.
 * @param {string} text
 * @param {number} [now]
 */
export function relative(text, now = Date.now()) {
  const at = Date.parse(text);
  const minutes = Math.round((at - now) / 60_000);
  if (minutes === 0) return at > now ? 'in less than a minute' : 'just now';
  if (Math.abs(minutes) < 60) return RELATIVE.format(minutes, 'minute');
  const hours = Math.round(minutes / 60);
  const days = dayNumber(at) - dayNumber(now);
  if (Math.abs(hours) < 24 || days === 0) return RELATIVE.format(hours, 'hour');
  if (Math.abs(days) < MONTHS) return RELATIVE.format(days, 'day');
  return Math.abs(days) < YEARS
    ? RELATIVE.format(Math.round(days / 30.44), 'month')
    : RELATIVE.format(Math.round(days / 365.25), 'year');
}

/**
 * A time that matters soon, with its date: "in 2 days (Sat 28 Nov)", "in 5 hours (Fri 03:39)".
 * @param {string} text
 * @param {number} [now]
 * @param {string} [locale]
 */
export function deadline(text, now = Date.now(), locale = undefined) {
  const at = new Date(text);
  /** @type {Intl.DateTimeFormatOptions} */
  const shown =
    Math.abs(at.getTime() - now) < DAY
      ? { weekday: 'short', hour: 'numeric', minute: '2-digit' }
      : at.getFullYear() === new Date(now).getFullYear()
        ? { weekday: 'short', day: 'numeric', month: 'short' }
        : { day: 'numeric', month: 'short', year: 'numeric' };
  return `${relative(text, now)} (${new Intl.DateTimeFormat(locale, shown).format(at)})`;
}

/**
 * The same for the end of a period: "Sat 28 Nov (in 2 days)", "Fri 03:39 (in 5 hours)".
 * @param {string} text
 * @param {number} [now]
 * @param {string} [locale]
 */
export function until(text, now = Date.now(), locale = undefined) {
  const [, distance = '', date = ''] = /^(.*) \((.*)\)$/.exec(deadline(text, now, locale)) ?? [];
  return `${date} (${distance})`;
}

/**
 * A length of time in its two largest units: "2 d 4 h".
 * @param {number} milliseconds
 */
export function length(milliseconds) {
  const minutes = Math.max(0, Math.round(milliseconds / 60_000));
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24];
  if (days) return hours ? `${days} d ${hours} h` : `${days} d`;
  if (hours) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return minutes ? `${minutes} min` : 'less than a minute';
}

/**
 * The date and time in a field, in RFC 3339. A date without a time stands for the end of that day, or for `clock`.
 * @param {string} text
 * @param {string} [clock]
 */
export function readTime(text, clock = '23:59:59') {
  if (!text) return undefined;
  const time = new Date(text.includes('T') ? text : `${text}T${clock}`);
  if (Number.isNaN(time.getTime())) throw 'Enter a date.';
  return new Date(Math.ceil(time.getTime() / 1000) * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * When a signed link expires, by the parameters of S3, Google Cloud Storage, CloudFront and Azure, in RFC 3339.
 * @param {string} text
 */
export function linkExpiry(text) {
  if (!URL.canParse(text)) return undefined;
  const query = new Map([...new URL(text).searchParams].map(([name, value]) => [name.toLowerCase(), value]));
  const rfc = (/** @type {number} */ at) =>
    Number.isFinite(at) && at > 0 ? new Date(at).toISOString().replace(/\.\d+Z$/, 'Z') : undefined;
  for (const kind of ['x-amz-', 'x-goog-']) {
    const signed = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(query.get(`${kind}date`) ?? '');
    if (signed)
      return rfc(
        Date.parse(`${signed[1]}-${signed[2]}-${signed[3]}T${signed[4]}:${signed[5]}:${signed[6]}Z`) +
          1000 * Number(query.get(`${kind}expires`)),
      );
  }
  const seconds = query.get('expires');
  if (seconds && /^\d{9,11}$/.test(seconds)) return rfc(1000 * Number(seconds));
  return query.has('sig') && query.has('se') ? rfc(Date.parse(query.get('se') ?? '')) : undefined;
}

/**
 * The other way.
 * @param {string | undefined} time
 */
export function writeTime(time) {
  if (!time) return '';
  const at = new Date(time);
  const text = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
  return text.slice(11, 19) === '23:59:59' ? text.slice(0, 10) : text.slice(0, 16);
}
