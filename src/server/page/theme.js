// Dark or light. Not a module: it runs before the first paint, so that no page flashes.

(() => {
  const root = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)');

  try {
    const kept = JSON.parse(localStorage.getItem('godwit.theme'));
    if (kept === 'dark' || kept === 'light') root.dataset.theme = kept;
  } catch {
    // Blocked: as the system has it.
  }

  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const theme = () => root.dataset.theme ?? (dark.matches ? 'dark' : 'light');
    const label = () => {
      const text = theme() === 'dark' ? 'Use light colors' : 'Use dark colors';
      button.title = text;
      button.setAttribute('aria-label', text);
    };
    label();
    dark.addEventListener('change', label);
    button.addEventListener('click', () => {
      root.dataset.theme = theme() === 'dark' ? 'light' : 'dark';
      label();
      try {
        localStorage.setItem('godwit.theme', JSON.stringify(root.dataset.theme));
      } catch {
        // Until the page is left.
      }
    });
  });
})();
