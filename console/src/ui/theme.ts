import { createStore, useStore } from '../api/store.ts';

export type Theme = 'light' | 'dark';

const STORAGE_ITEM = 'posthorn.theme';
const darkPreference = window.matchMedia('(prefers-color-scheme: dark)');
/** The theme that the user chose, or that of the operating system. */
const readTheme = (): Theme => {
  const stored = localStorage.getItem(STORAGE_ITEM);
  return stored === 'light' || stored === 'dark' ? stored : darkPreference.matches ? 'dark' : 'light';
};

const theme = createStore<Theme>(readTheme());
const applyTheme = (): void => {
  document.documentElement.dataset.theme = theme.get();
};
theme.subscribe(applyTheme);
darkPreference.addEventListener('change', () => theme.set(readTheme()));
applyTheme();

export const useTheme = (): Theme => useStore(theme);

export function toggleTheme(): void {
  const next = theme.get() === 'dark' ? 'light' : 'dark';
  localStorage.setItem(STORAGE_ITEM, next);
  theme.set(next);
}
