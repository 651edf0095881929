// Elements without innerHTML: what a model writes is never read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

// children: nodes and texts, and lists of them, which may be longer than arguments can be.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// One of the symbols at the end of index.html.
export function icon(name) {
  return svg('svg', { class: 'icon', 'aria-hidden': 'true' },
    svg('use', { href: `#icon-${name}` }));
}

export function iconButton(name, label, onclick, className = 'icon-button') {
  return el('button', { type: 'button', className, onclick, title: label, 'aria-label': label },
    icon(name));
}

export function textButton(label, onclick, className = 'text-button') {
  return el('button', { type: 'button', className, onclick }, label);
}

// Says on the button for a moment that it was done.
export async function copyFrom(button, text) {
  const before = button.getAttribute('aria-label');
  const done = (await copy(text)) ? 'Copied' : 'Not copied, because the browser does not allow it';
  button.setAttribute('aria-label', done);
  button.classList.add('done');
  setTimeout(() => {
    button.setAttribute('aria-label', before);
    button.classList.remove('done');
  }, 2000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages over plain HTTP from another machine have no clipboard.
    const area = el('textarea', { value: text, className: 'visually-hidden' });
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}
