// An answer: its text, how it is getting on, what went wrong, how fast it was.

import { branchArrows } from './branch_arrows.js';
import { copyFrom, el, iconButton } from './dom.js';
import { duration, percent, rate, tokens, whole } from './format.js';
import { LiveMarkdown } from './live_markdown.js';
import { noticeOf, sentenceOf } from './notice.js';
import { ReadingBar } from './reading_bar.js';
import { Thought } from './thought.js';

const MOST_FILES = 3;  // that have a button each

export class AnswerMessage {
  #thought = new Thought();
  #body = el('div', { className: 'markdown' });
  #state = el('div', { className: 'state' });
  #foot = el('div', { className: 'foot' });
  #stats = el('span', { className: 'stats' });
  #text = new LiveMarkdown(this.#body);
  #reading = null;
  #loading = null;  // where it says how far the model is
  #retryAt = 0;

  // actions: see MessageActions.
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.element = el('article', { className: 'message answer', 'aria-label': 'Answer' },
      this.#thought.element, this.#body, this.#state, this.#foot);
    this.#thought.show(node);
    this.#text.showNow(node.content);
  }

  // run: where it is being written; question: the message that it answers; forgetting: an attention
  // that the chat could have and that reads texts of any length; isLimited: the server has none.
  update({ place, isBusy, run, ...more }) {
    this.element.classList.toggle('writing', Boolean(run));
    this.element.setAttribute('aria-busy', Boolean(run));
    if (run) return this.#updateRun(run);
    this.#reading = null;
    this.#text.showNow(this.node.content);
    this.#thought.show(this.node);
    this.#state.replaceChildren(...this.#notices({ isBusy, ...more }));
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
      if (this.#state.childElementCount > 0) this.#showState();
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
    } else if (run.phase === 'later' || run.phase === 'lost') {
      this.#showLater(run);
    } else {
      this.#showState(el('p', { className: 'waiting' }, 'Waiting for the server'));
    }
  }

  #showState(...nodes) {
    this.#state.replaceChildren(...nodes);
  }

  #showLater({ phase, message, retryAt, loaded }) {
    if (this.#retryAt === retryAt) return;
    this.#retryAt = retryAt;
    if (loaded !== undefined) return this.#showLoading(loaded);
    const left = el('span');
    const tick = () => {
      const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
      left.textContent = ` Trying again in ${seconds} s.`;
      if (seconds > 0 && left.isConnected) setTimeout(tick, 250);
    };
    this.#showState(el('div', { className: 'notice' },
      el('p', {}, phase === 'lost' ? `${withoutStop(message)}. Looking for the rest of the answer.`
        : `The server is not ready: ${withoutStop(message)}.`, left)));
    tick();
  }

  // In place, each second anew: what appears, appears gently.
  #showLoading(loaded) {
    if (!this.#loading?.isConnected) {
      this.#loading = el('p', { className: 'waiting' });
      this.#showState(this.#loading);
    }
    this.#loading.textContent =
      `The model is being loaded (${percent(loaded, 1)}); the answer follows`;
  }

  // What is to be said of an answer that has ended.
  #notices({ isBusy, isLast, question, forgetting, isLimited }) {
    const { node, actions } = this;
    const again = { 'Try again': () => actions.retry(node) };
    const goOn = isLast ? { Continue: () => actions.continue(node) } : {};
    const choices = (some) => (isBusy ? {} : some);
    if (node.error?.kind === 'too_long') {
      return [noticeOf(sentenceOf(node.error), choices(this.#waysToFit(question, forgetting)),
        { detail: isLimited ? `On the server this can be changed: ${node.error.message}` : '' })];
    }
    if (node.error) {
      const { kind, retryAt } = node.error;
      if (kind === 'key') again['Enter the key'] = () => actions.askKey(node);
      const own = kind === 'lost' ? { 'Answer without': () => actions.retry(node, true) }
        : kind === 'broken' && node.content ? { ...goOn, ...again } : again;
      return [noticeOf(sentenceOf(node.error), choices(own), { retryAt })];
    }
    const text = endOf(node);
    if (!text) return [];
    const own = node.finish === 'cancelled' || !node.content ? again
      : node.finish === 'left' ? { ...goOn, ...again } : goOn;
    if (isFull(node) && isLast && forgetting) {
      const label = 'Continue, keeping beginning and end';
      return [noticeOf(text, choices({ [label]: () => actions.continueForgetting(node) }),
        { isError: false })];
    }
    return [noticeOf(text, choices(own), { isError: false })];
  }

  // Buttons, of a chat that is too long.
  #waysToFit(question, forgetting) {
    const { node, actions } = this;
    const ways = {};
    if (forgetting) ways['Keep beginning and end'] = () => actions.retryForgetting(node);
    const files = question?.attachments ?? [];
    for (const file of files.slice(0, MOST_FILES)) {
      ways[`Remove ${file.name}`] = () => actions.editWithout(question, file);
    }
    if (question) ways['Edit the message'] = () => actions.beginEdit(question);
    ways['Try again'] = () => actions.retry(node);
    return ways;
  }
}

const withoutStop = (sentence) => sentence.replace(/\.$/, '');

const isFull = ({ finish, timings, maxTokens }) =>
  finish === 'length' && !(maxTokens >= 0 && (timings?.predicted_n ?? 0) >= maxTokens);

// Why an answer ended, where that is not as its model ended it.
function endOf(node) {
  const { finish, content, maxTokens } = node;
  switch (finish) {
    case 'length':
      return isFull(node) ? 'The answer stopped because the context is full.'
        : `The answer stopped at the limit of the settings (${tokens(maxTokens)}).`;
    case 'timeout':
      return 'The answer stopped because its time limit was reached.';
    case 'cancelled':
      return 'The server cancelled the answer.';
    case 'left':
      return content ? 'You left the page before the answer was finished.'
        : 'You left the page before the first word.';
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
  const { cache_n: cached, prompt_n: read, prompt_per_second: speed } = timings;
  const at = read > 0 && speed > 0 ? ` at ${rate(speed)}` : '';
  if (cached > 0) {
    words.push(`prompt: ${tokens(cached + read)}, ${whole(cached)} of them cached` +
      `${at && `, the rest read${at}`}`);
  } else if (at) {
    words.push(`prompt: ${tokens(read)} read${at}`);
  }
  return words.join(' · ');
}
