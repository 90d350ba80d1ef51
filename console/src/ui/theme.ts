import { createStore, useStore } from '../api/store.ts';

export type Theme = 'light' | 'dark';

const STORED = 'posthorn.theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');
const chosen = (): Theme => {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : system.matches ? 'dark' : 'light';
};

const theme = createStore<Theme>(chosen());
const apply = (): void => {
  document.documentElement.dataset.theme = theme.get();
};
theme.subscribe(apply);
system.addEventListener('change', () => theme.set(chosen()));
apply();

export const useTheme = (): Theme => useStore(theme);

export function toggleTheme(): void {
  const next = theme.get() === 'dark' ? 'light' : 'dark';
  localStorage.setItem(STORED, next);
  theme.set(next);
}
