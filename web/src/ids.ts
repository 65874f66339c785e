// Names for conversations and messages.

/** 96 random bits. crypto.randomUUID exists only on pages served over TLS or from this machine. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
