// An answer: its text, how it is getting on, what went wrong, how fast it was.

import { branchArrows } from './branch_arrows.js';
import { copyFrom, el, iconButton } from './dom.js';
import { duration, rate, tokens } from './format.js';
import { LiveMarkdown } from './live_markdown.js';
import { noticeOf, sentenceOf } from './notice.js';
import { ReadingBar } from './reading_bar.js';
import { Thought } from './thought.js';

export class AnswerMessage {
  #thought = new Thought();
  #body = el('div', { className: 'markdown' });
  #state = el('div', { className: 'state' });
  #foot = el('div', { className: 'foot' });
  #stats = el('span', { className: 'stats' });
  #text = new LiveMarkdown(this.#body);
  #reading = null;
  #retryAt = 0;

  // actions: see App.
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.element = el('article', { className: 'message answer', 'aria-label': 'Answer' },
      this.#thought.element, this.#body, this.#state, this.#foot);
    this.#thought.show(node);
    this.#text.showNow(node.content);
  }

  // run: where it is being written.
  update({ place, isBusy, run, isLast }) {
    this.element.classList.toggle('writing', Boolean(run));
    this.element.setAttribute('aria-busy', Boolean(run));
    if (run) return this.#updateRun(run);
    this.#reading = null;
    this.#text.showNow(this.node.content);
    this.#thought.show(this.node);
    this.#state.replaceChildren(...this.#notices(isBusy, isLast));
    this.#stats.textContent = statsOf(this.node);
    this.#foot.replaceChildren(...this.#buttons(isBusy),
      ...branchArrows(this.node, place, this.actions), this.#stats);
  }

  // None where nothing came: the notice has the way out.
  #buttons(isBusy) {
    if (!this.node.content) return [];
    const copy = iconButton('copy', 'Copy', () => copyFrom(copy, this.node.content));
    const again = iconButton('again', 'Answer again', () => this.actions.regenerate(this.node));
    again.disabled = isBusy;
    return [copy, again];
  }

  #updateRun(run) {
    if (run.phase === 'writing') {
      if (this.#body.childElementCount === 0) this.#showState();
      this.#thought.show(this.node, true);
      this.#text.show(this.node.content);
      this.#stats.textContent = run.speed > 0 ? `about ${rate(run.speed)}` : '';
      if (this.#stats.parentElement !== this.#foot || this.#foot.childElementCount > 1) {
        this.#foot.replaceChildren(this.#stats);
      }
      return;
    }
    this.#foot.replaceChildren();
    if (run.phase === 'reading') {
      if (!this.#reading) this.#showState((this.#reading = new ReadingBar()).element);
      this.#reading.update(run.progress);
    } else if (run.phase === 'later') {
      this.#showLater(run);
    } else {
      this.#showState(el('p', { className: 'waiting' }, 'Waiting for the server'));
    }
  }

  #showState(...nodes) {
    this.#state.replaceChildren(...nodes);
  }

  #showLater({ message, retryAt }) {
    if (this.#retryAt === retryAt) return;
    this.#retryAt = retryAt;
    const left = el('span');
    const tick = () => {
      const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
      left.textContent = ` Trying again in ${seconds} s.`;
      if (seconds > 0 && left.isConnected) setTimeout(tick, 250);
    };
    this.#showState(el('div', { className: 'notice' },
      el('p', {}, `The server is not ready: ${withoutStop(message)}.`, left)));
    tick();
  }

  // What is to be said of an answer that has ended.
  #notices(isBusy, isLast) {
    const { node, actions } = this;
    const again = { 'Try again': () => actions.retry(node) };
    const goOn = isLast ? { Continue: () => actions.continue(node) } : {};
    const choices = (some) => (isBusy ? {} : some);
    if (node.error) {
      const { kind, retryAt } = node.error;
      if (kind === 'key') again['Enter the key'] = () => actions.askKey(node);
      const own = kind === 'lost' ? { 'Answer without': () => actions.retry(node, true) }
        : kind === 'broken' && node.content ? { ...goOn, ...again } : again;
      return [noticeOf(sentenceOf(node.error), choices(own), { retryAt })];
    }
    const text = endOf(node);
    if (!text) return [];
    const own = node.finish === 'cancelled' || !node.content ? again : goOn;
    return [noticeOf(text, choices(own), { isError: false })];
  }
}

const withoutStop = (sentence) => sentence.replace(/\.$/, '');

// Why an answer ended, where that is not as its model ended it.
function endOf({ finish, content, timings, maxTokens }) {
  const written = timings?.predicted_n ?? 0;
  switch (finish) {
    case 'length':
      return maxTokens >= 0 && written >= maxTokens
        ? `The answer stopped at max_tokens (${tokens(maxTokens)}).`
        : 'The answer stopped because the context is full.';
    case 'timeout':
      return 'The answer stopped because its time was over.';
    case 'cancelled':
      return 'The server cancelled the answer.';
    case 'stopped':
      return content ? 'You stopped the answer.' : 'You stopped before the first word.';
    default:
      return content ? '' : 'The model ended the answer without a word.';
  }
}

function statsOf({ timings, firstMs }) {
  if (!timings) return '';
  const words = [tokens(timings.predicted_n)];
  if (timings.predicted_per_second > 0) words.push(rate(timings.predicted_per_second));
  if (firstMs !== undefined) words.push(`first after ${duration(firstMs)}`);
  if (timings.prompt_n > 0 && timings.prompt_per_second > 0) {
    words.push(`prompt: ${tokens(timings.prompt_n)} at ${rate(timings.prompt_per_second)}`);
  }
  return words.join(' · ');
}
