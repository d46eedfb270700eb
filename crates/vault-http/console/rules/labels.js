// Labels as text.

/**
 * Labels, one in each line.
 * @param {string} text
 */
export function readLabels(text) {
  const lines = text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split(/[:=]/);
      return [name.trim(), value.join(':').trim()];
    }),
  );
}
