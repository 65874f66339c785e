// Numbers and times as people read them.

const kNumber = new Intl.NumberFormat('en');

export function count(value: number): string {
  return kNumber.format(value);
}

export function rate(perSecond: number): string {
  return `${perSecond < 100 ? perSecond.toFixed(1) : count(Math.round(perSecond))} tok/s`;
}

export function seconds(value: number): string {
  if (value < 60) return `${Math.max(0, Math.floor(value))} s`;
  return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
}

/** The part of the list that a conversation of this time belongs to. */
export function dayGroup(time: number, now = new Date()): string {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const day = 24 * 3600 * 1000;
  if (time >= today) return 'Today';
  if (time >= today - day) return 'Yesterday';
  if (time >= today - 7 * day) return 'Last 7 days';
  if (time >= today - 30 * day) return 'Last 30 days';
  return 'Older';
}
