// A conversation: messages in a tree, of which one path is shown. To edit a message or to ask for
// another answer adds a sibling, so that nothing that was said is lost.

const ROOT = 0;

export class Tree {
  #nodes = new Map();

  // saved: what toJSON gave.
  constructor(saved = [{ id: ROOT, parent: null, children: [], chosen: null }]) {
    for (const node of saved) this.#nodes.set(node.id, node);
    for (const node of saved) this.#check(node);
  }

  toJSON() {
    return [...this.#nodes.values()];
  }

  get isEmpty() {
    return this.#nodes.size === 1;
  }

  // The messages shown, first to last.
  path() {
    const path = [];
    for (let node = this.#chosenOf(ROOT); node; node = this.#chosenOf(node.id)) path.push(node);
    return path;
  }

  // From the first message to this one, on whatever branch it is.
  pathTo(id) {
    const path = [];
    for (let node = this.#node(id); node.id !== ROOT; node = this.#node(node.parent)) {
      path.push(node);
    }
    return path.reverse();
  }

  // What the next message answers.
  leafId() {
    return this.path().at(-1)?.id ?? ROOT;
  }

  // As the last of its siblings, and shown.
  add(parentId, message) {
    const node = { ...message, id: this.#nodes.size, parent: parentId, children: [], chosen: null };
    this.#nodes.set(node.id, node);
    this.#node(parentId).children.push(node.id);
    this.#node(parentId).chosen = node.id;
    return node;
  }

  // The message that this one answers; null: it is the first.
  parentOf(id) {
    const { parent } = this.#node(id);
    return parent === ROOT ? null : this.#node(parent);
  }

  // Where a message stands among those at its place: {index, count}.
  place(id) {
    const { children } = this.#node(this.#node(id).parent);
    return { index: children.indexOf(id), count: children.length };
  }

  // Shows the sibling so many places on, and returns it; null where there is none.
  step(id, places) {
    const parent = this.#node(this.#node(id).parent);
    const sibling = parent.children[parent.children.indexOf(id) + places];
    if (sibling === undefined) return null;
    parent.chosen = sibling;
    return this.#node(sibling);
  }

  #chosenOf(id) {
    const { chosen } = this.#node(id);
    return chosen === null ? null : this.#node(chosen);
  }

  #node(id) {
    const node = this.#nodes.get(id);
    if (!node) throw new Error(`no message ${id}`);
    return node;
  }

  // What others wrote to the browser's storage may be anything.
  #check(node) {
    for (const child of node.children) {
      if (this.#node(child).parent !== node.id || child <= node.id) throw new Error('no tree');
    }
    if (node.chosen !== null && !node.children.includes(node.chosen)) throw new Error('no tree');
  }
}
