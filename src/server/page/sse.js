// Server-sent events, as far as completions use them.

// The events of a body, as they come: {id (that of an event before where it has none), data}.
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let id = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        // All else is comments, which keep the connection alive, and the blanks between events.
        if (line.startsWith('id:')) id = line.slice(3).trim();
        if (line.startsWith('data:')) yield { id, data: line.slice(5).trim() };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
