// Questions that have to be answered first.

// What was entered; null if nothing was.
export function askForKey() {
  const dialog = document.getElementById('key-dialog');
  const input = dialog.querySelector('input');
  input.value = '';
  return ask(dialog, () => input.value.trim() || null);
}

export async function confirmDeletion(title) {
  const dialog = document.getElementById('delete-dialog');
  dialog.querySelector('.title').textContent = title;
  return (await ask(dialog, () => true)) ?? false;
}

// Closes when there is a click beside it.
export function openPanel(dialog) {
  dialog.showModal();
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close();
  };
}

function ask(dialog, take) {
  const form = dialog.querySelector('form');
  return new Promise((resolve) => {
    let taken = null;
    form.onsubmit = (event) => {
      event.preventDefault();
      taken = take();
      dialog.close();
    };
    dialog.querySelector('.cancel').onclick = () => dialog.close();
    dialog.addEventListener('close', () => resolve(taken), { once: true });
    openPanel(dialog);
  });
}
