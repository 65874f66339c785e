// Puts the page together.
import { Chats } from './chats';
import { Composer } from './composer';
import { ConversationView } from './conversation_view';
import { h, iconButton, setIcon } from './dom';
import { noticeAreas, notify } from './notices';
import * as preferences from './preferences';
import { Server } from './server';
import { askKey, SettingsDialog } from './settings';
import { Sidebar } from './sidebar';
import { Store } from './store';

// The script runs before the body is there, so that the page never shows in the wrong colors.
preferences.applyTheme();
document.addEventListener('DOMContentLoaded', () => void start());

async function start(): Promise<void> {
  const store = await Store.open();
  const server = new Server();
  const chats = new Chats(store, server);
  const narrow = matchMedia('(max-width: 720px)');

  const openNew = () => {
    if (location.hash.length > 1) location.hash = '';
    else void chats.open(null);
    if (narrow.matches) fold(true);
    composer.invite();
  };
  const chosen = () => {
    if (narrow.matches) fold(true);
  };
  const sidebar = new Sidebar(chats, openNew, chosen, () => fold(true));
  const scrim = h('div', { className: 'scrim', onclick: () => fold(true) });
  const menu = iconButton('menu', 'Conversations', () => fold(!folded()), 'menu-button');
  menu.setAttribute('aria-controls', 'sidebar');
  const title = h('h1');
  const theme = iconButton('sun', 'Colors', () => {
    preferences.setTheme(preferences.isDark() ? 'light' : 'dark');
    showTheme();
  });
  const settings = new SettingsDialog(chats, server);
  const settingsButton = iconButton('settings', 'Settings', () => settings.open());
  const composer = new Composer(chats, server);
  const view = new ConversationView(chats, {
    // What was pressed is gone with the message it belonged to.
    regenerate: (message) => {
      chats.regenerate(message);
      composer.invite();
    },
    edit: (message, text) => {
      chats.edit(message, text);
      composer.invite();
    },
    show: (version) => chats.show(version),
    sendResults: (results) => {
      chats.sendResults(results);
      composer.invite();
    },
  });
  composer.onEditLast = () => view.editLast();

  function folded(): boolean {
    return document.body.classList.contains('folded');
  }

  /** On narrow pages the list covers the rest and is closed at first; on wide ones it stays as it was left. */
  function fold(value: boolean): void {
    document.body.classList.toggle('folded', value);
    sidebar.element.inert = value;
    main.inert = !value && narrow.matches;
    menu.setAttribute('aria-expanded', String(!value));
    if (!narrow.matches) preferences.setSidebarFolded(value);
    if (value && document.activeElement === document.body) menu.focus();
  }

  function showTheme(): void {
    setIcon(theme, preferences.isDark() ? 'sun' : 'moon', preferences.isDark() ? 'Light colors' : 'Dark colors');
  }

  function showServer(): void {
    view.setWelcome(
      h('p', { className: 'greeting' }, 'What is on your mind?'),
      h(
        'p',
        { className: 'quiet' },
        server.reachable
          ? 'Everything you write stays between this browser and your server.'
          : 'The server cannot be reached. The page goes on by itself as soon as it can.',
      ),
    );
    composer.update();
  }

  const main = h('main', null, h('header', null, menu, title, theme, settingsButton), view.element, composer.element);
  document.body.append(
    h(
      'a',
      {
        className: 'skip',
        href: '#message',
        onclick: (event: Event) => {
          event.preventDefault();
          composer.focus();
        },
      },
      'To the message field',
    ),
    sidebar.element,
    scrim,
    main,
    settings.element,
    ...noticeAreas(),
  );

  chats.onList = () => sidebar.update();
  chats.onPath = () => {
    const name = chats.current.title;
    title.textContent = name || 'New conversation';
    document.title = name ? `${name} – Hearth` : 'Hearth';
    // The address follows without an entry of its own: the first message turned this page into that conversation.
    if (chats.current.messages.length && location.hash.slice(1) !== chats.current.id) {
      history.replaceState(null, '', `#${chats.current.id}`);
    }
    settingsButton.classList.toggle('marked', settings.differ);
    view.showPath();
    composer.update();
  };
  chats.onAnswer = () => view.answerGrew();
  view.onRendered = () => composer.updateNumbers();
  chats.onProblem = (text) => notify(text);
  server.onChange = showServer;
  server.askKey = askKey;
  settings.onTheme = showTheme;
  settings.element.onclose = () => settingsButton.classList.toggle('marked', settings.differ);

  addEventListener('hashchange', () => void followAddress());
  addEventListener('pagehide', () => chats.leave());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);
  narrow.addEventListener('change', () => fold(narrow.matches || preferences.sidebarFolded()));
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
    const command = event.ctrlKey || event.metaKey;
    if (event.key === 'Escape') {
      if (!folded() && narrow.matches) fold(true);
      else chats.stop();
    } else if (command && !event.shiftKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      fold(false);
      sidebar.search.focus();
      sidebar.search.select();
    } else if (command && event.shiftKey && event.key.toLowerCase() === 'o') {
      event.preventDefault();
      openNew();
    }
  });

  async function followAddress(): Promise<void> {
    const id = location.hash.slice(1) || null;
    if (id === null && !chats.current.messages.length) return;
    if (await chats.open(id)) return;
    history.replaceState(null, '', '#');
    await chats.open(null);
    notify('This conversation is not in this browser.');
  }

  fold(narrow.matches || preferences.sidebarFolded());
  showTheme();
  showServer();
  chats.onPath();
  await chats.readList();
  await followAddress();
  if (!store.persistent) notify('This browser keeps no data: conversations end with this page.');
  composer.invite();
  await server.refresh();
}
