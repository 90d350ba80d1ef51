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

/** Sets the theme of this tab, without remembering it. */
export const setTheme = (next: Theme): void => theme.set(next);

/** Replaces the accent colour of both themes. The text on it is black or white, whichever is easier to read. */
export function applyAccent(colour: string): void {
  const { style } = document.documentElement;
  const colours = {
    '--accent': colour,
    '--accent-strong': `color-mix(in srgb, ${colour}, black 14%)`,
    '--accent-text': `color-mix(in srgb, ${colour}, var(--text) 35%)`,
    '--accent-soft': `color-mix(in srgb, ${colour}, var(--surface) 88%)`,
    '--on-accent': isLight(colour) ? '#000000' : '#ffffff',
    '--chart-1': colour,
  };
  for (const [name, value] of Object.entries(colours)) style.setProperty(name, value);
}

/** Whether black text has more contrast on the colour than white text has, by the luminance of WCAG. */
function isLight(colour: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(colour.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! > 0.179;
}

export function toggleTheme(): void {
  const next = theme.get() === 'dark' ? 'light' : 'dark';
  localStorage.setItem(STORAGE_ITEM, next);
  theme.set(next);
}
